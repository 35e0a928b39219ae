// The file by which programs lock a protected file: an empty one in the sidecar, for what stands at the path is replaced while the file lives.
#pragma once
#include <string>

#include "base/status.hpp"

namespace holdfast::catalog {

// Of the file at this absolute path; for reading alone where nothing else is allowed. The caller closes it.
Result<int> open_lock_file(const std::string& path);
bool is_lock_file(int descriptor, const std::string& path);

// The same of a file that grows elsewhere and has an id, and no sidecar at its path: one beside it that no program sees.
Result<int> open_lock_file_of_growing(const std::string& path, const std::string& file_id);
bool is_lock_file_of_growing(int descriptor, const std::string& path, const std::string& file_id);
// Nobody opens it to write any more.
void remove_lock_file_of_growing(const std::string& path, const std::string& file_id);

}  // namespace holdfast::catalog
