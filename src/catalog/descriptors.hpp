// What a file of so many members needs of the process's descriptors (docs/decisions/0013). The calls are in user_files.cpp, beside the one for readers.
#pragma once
#include <string>

#include "base/status.hpp"

namespace holdfast::catalog {

// Who writes has all that a commit needs in reserve, or fails before anything is written: a target that cannot be opened would be lost to the file.
Status keep_descriptors_to_write(const std::string& path, size_t members);
// The limit (ulimit -n) that such a process needs.
int least_descriptors(size_t members);

}  // namespace holdfast::catalog
