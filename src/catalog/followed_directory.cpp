#include "catalog/followed_directory.hpp"

#include "catalog/user_files.hpp"

namespace holdfast::catalog {

FollowedDirectory::FollowedDirectory(const std::string& absolute, int flags)
    : directory_(environment().openat(AT_FDCWD, absolute.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | flags, 0)) {
  directory_.move_out_of_the_way();
}

std::optional<std::string> FollowedDirectory::where() const {
  struct stat state {};
  if (!directory_ || environment().fstat(directory_.get(), &state) != 0 || state.st_nlink == 0) return {};
  const auto now = read_link("/proc/self/fd/" + std::to_string(directory_.get()));
  if (!now || now->front() != '/') return {};
  return *now;
}

bool FollowedDirectory::is_at(const std::string& path) const {
  if (!directory_) return false;
  const auto now = read_link("/proc/self/fd/" + std::to_string(directory_.get()));
  return now && *now == path;
}

std::string FollowedDirectory::path_of(const std::string& file) const {
  const auto now = where();
  if (!now) return file;
  return (*now == "/" ? "" : *now) + "/" + name_of(file);
}

}  // namespace holdfast::catalog
