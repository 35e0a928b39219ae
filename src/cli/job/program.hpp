// Looking things up: commands on the PATH, what executables are linked with, what a command prints.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace holdfast::cli {

// The file that execvp would run for `name`, or nothing.
std::optional<std::string> find_on_path(const std::string& name);
std::string base_name(const std::string& path);
std::string directory_of(const std::string& path);
// libexec/holdfast/NAME of the prefix that this command lies in.
std::string installed_beside(const std::string& name);
// Whether it is there to be run; else what comes of that.
Status is_installed(const std::string& name, const std::string& else_what);

// The dynamic linker that an ELF executable asks for; nothing for scripts, static executables and all else.
std::optional<std::string> interpreter_of(const std::string& executable);
// What `#!` names in a script's first line, found on the PATH where it goes by way of env.
std::optional<std::string> script_interpreter(const std::string& path);

// Library name -> file, for all that a dynamically linked executable or shared library loads; asks the
// dynamic linker, as ldd does.
std::map<std::string, std::string> loaded_libraries(const std::string& executable);

// What a process has begun with; nothing where it has ended or is another user's.
std::map<std::string, std::string> environment_of(pid_t process);

// Standard output of a command; nothing where it cannot be run or takes longer than `patience`.
std::optional<std::string> output_of(const std::vector<std::string>& command, std::chrono::seconds patience = std::chrono::seconds(10));

}  // namespace holdfast::cli
