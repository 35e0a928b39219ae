#include "catalog/disk_space.hpp"

#include <fcntl.h>
#include <sys/vfs.h>

#include "catalog/environment.hpp"

namespace holdfast::catalog {

std::optional<uint64_t> free_bytes_at(const std::string& directory) {
  const Descriptor open(environment().openat(AT_FDCWD, directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
  struct statfs disk;
  if (!open || environment().fstatfs(open.get(), &disk) != 0 || disk.f_blocks == 0) return {};
  return uint64_t(disk.f_bavail) * uint64_t(disk.f_bsize);
}

}  // namespace holdfast::catalog
