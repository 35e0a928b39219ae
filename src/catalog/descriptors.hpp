// What a file of so many members needs of the process's descriptors (docs/decisions/0013). The calls are in user_files.cpp, beside the one for readers.
#pragma once
#include <memory>
#include <string>

#include "base/status.hpp"

namespace holdfast::raw {
class Share;
}

namespace holdfast::catalog {

// What is kept for a file while it is open to be written.
using Descriptors = std::shared_ptr<raw::Share>;
// Who writes has all that a commit needs in reserve, or fails before anything is written: a target that cannot be opened would be lost to the file.
Result<Descriptors> keep_descriptors_to_write(const std::string& path, size_t members);
// The limit (ulimit -n) that such a process needs.
int least_descriptors(size_t members);

}  // namespace holdfast::catalog
