#include "frontend/mpi/descriptor.hpp"

#include <dirent.h>

#include <algorithm>
#include <cstdlib>

#include "base/meter.hpp"

namespace holdfast::frontend {

namespace {

// File systems where one process's write is at once what all others read, on whichever node: local ones, and those that keep
// their clients' caches coherent. On others (NFS) MPI knows what to do besides.
bool coherent(int fd) {
  struct statfs about;
  if (raw::fstatfs(fd, &about) != 0) return false;
  switch (static_cast<uint32_t>(about.f_type)) {
    case 0x01021994:  // tmpfs
    case 0x858458f6:  // ramfs
    case 0x0000ef53:  // ext2, ext3, ext4
    case 0x58465342:  // xfs
    case 0x9123683e:  // btrfs
    case 0xf2f52010:  // f2fs
    case 0x2fc12fc1:  // zfs
    case 0x794c7630:  // overlayfs
    case 0x0bd00bd3:  // Lustre
    case 0x47504653:  // GPFS
      return true;
    default: return false;
  }
}

bool suits(int fd, const struct stat& file, bool reads, bool writes) {
  struct stat about;
  if (raw::fstat(fd, &about) != 0 || about.st_dev != file.st_dev || about.st_ino != file.st_ino) return false;
  const int flags = raw::fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & (O_APPEND | O_DIRECT | O_PATH)) != 0) return false;
  const int mode = flags & O_ACCMODE;
  return (mode == O_RDWR || mode == (writes ? O_WRONLY : O_RDONLY)) && !(reads && mode == O_WRONLY) && coherent(fd);
}

}  // namespace

Descriptor Descriptor::find(const std::string& path, bool reads, bool writes) {
  Descriptor found;
  struct stat file;
  if (raw::fstatat(AT_FDCWD, path.c_str(), &file, 0) != 0 || !S_ISREG(file.st_mode)) return found;
  DIR* mine = opendir("/proc/self/fd");
  if (mine == nullptr) return found;
  while (const dirent* entry = readdir(mine)) {
    if (entry->d_name[0] == '.') continue;
    const int fd = std::atoi(entry->d_name);
    if (!suits(fd, file, reads, writes)) continue;
    found.fd_.reset(raw::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    break;
  }
  closedir(mine);
  return found;
}

bool Descriptor::write(const std::byte* from, uint64_t bytes, uint64_t offset) const {
  while (bytes != 0) {
    const ssize_t done =
        metered(&Meter::write_calls, &Meter::write_ns, &Meter::write_bytes, [&] { return raw::pwrite(fd_.get(), from, bytes, offset); });
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    from += done, bytes -= static_cast<uint64_t>(done), offset += static_cast<uint64_t>(done);
  }
  return true;
}

bool Descriptor::read(std::byte* into, uint64_t bytes, uint64_t offset, uint64_t& got) const {
  got = 0;
  while (got < bytes) {
    const ssize_t done = metered(&Meter::read_calls, &Meter::read_ns, &Meter::read_bytes,
                                 [&] { return raw::pread(fd_.get(), into + got, bytes - got, offset + got); });
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return false;
    if (done == 0) break;
    got += static_cast<uint64_t>(done);
  }
  return true;
}

}  // namespace holdfast::frontend
