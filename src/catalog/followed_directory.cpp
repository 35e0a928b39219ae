#include "catalog/followed_directory.hpp"

#include "base/own_numbers.hpp"
#include "catalog/user_files.hpp"

namespace holdfast::catalog {

FollowedDirectory::FollowedDirectory(const std::string& absolute)
    : directory_(raw::out_of_the_way(raw::Fd(raw::openat(AT_FDCWD, absolute.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)))) {}

std::string FollowedDirectory::path_of(const std::string& file) const {
  struct stat state {};
  if (!directory_ || raw::fstat(directory_.get(), &state) != 0 || state.st_nlink == 0) return file;
  const auto now = read_link("/proc/self/fd/" + std::to_string(directory_.get()));
  if (!now || now->front() != '/') return file;
  return (*now == "/" ? "" : *now) + "/" + name_of(file);
}

}  // namespace holdfast::catalog
