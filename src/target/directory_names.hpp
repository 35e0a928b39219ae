// Names in an open directory: what is listed there, and locks by name.
#pragma once
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/raw_syscalls.hpp"
#include "base/status.hpp"
#include "target/name_lock.hpp"

namespace holdfast::target {

// All but "." and "..", in the file system's order; `path` is for messages. The descriptor must be one to read with.
Result<std::vector<std::string>> directory_entries(int directory, const std::string& path);
// `mode`: permission bits of the files that say who holds a lock.
std::shared_ptr<NameStore> names_in(raw::Fd directory, std::string path, mode_t mode);

}  // namespace holdfast::target
