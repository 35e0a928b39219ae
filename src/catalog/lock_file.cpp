#include "catalog/lock_file.hpp"

#include <cerrno>

#include "base/raw_syscalls.hpp"
#include "catalog/user_files.hpp"

namespace holdfast::catalog {

namespace {

std::string lock_file_of(const std::string& path) { return sidecar_of(path) + "/locks"; }

}  // namespace

Result<int> open_lock_file(const std::string& path) {
  const std::string name = lock_file_of(path);
  raw::Fd file(raw::openat(AT_FDCWD, name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file && (errno == EACCES || errno == EROFS)) file = raw::Fd(raw::openat(AT_FDCWD, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file) return Status(Kind::io, name + " cannot be opened, so the file cannot be locked; give the program the right to write there", ENOLCK);
  return file.release();
}

bool is_lock_file(int descriptor, const std::string& path) {
  struct stat held{};
  const auto there = look(lock_file_of(path), false);
  return there && raw::fstat(descriptor, &held) == 0 && held.st_dev == there->device && held.st_ino == there->inode;
}

}  // namespace holdfast::catalog
