// `env NAME=VALUE... PROGRAM`: the variables that a command begins with, as env(1) takes them.
#pragma once
#include <string>
#include <vector>

#include "base/status.hpp"

namespace holdfast::cli {

struct EnvWords {
  std::vector<std::string> variables;  // NAME=VALUE
  std::vector<std::string> command;    // without them
};
// A command that begins with an option of env, or has nothing behind the variables, is left as it is.
EnvWords env_words(std::vector<std::string> command);

// A command whose variables are in this process's environment from now on.
std::vector<std::string> with_variables_set(const std::vector<std::string>& command);

}  // namespace holdfast::cli
