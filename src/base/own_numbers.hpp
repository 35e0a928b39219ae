// Which numbers the descriptors have that Holdfast keeps for itself. Programs ask for low ones by name (a shell's `exec 5>`, dup2) and expect the
// lowest free one from open. A file of ours there would be closed under us, and its number be given to a file of theirs.
#pragma once
#include <sys/resource.h>

#include <algorithm>

#include "base/raw_syscalls.hpp"

namespace holdfast::raw {

// How many the process may have by now: programs change it.
inline uint64_t allowed_numbers() {
  struct rlimit most {};
  return syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &most) == 0 ? most.rlim_cur : RLIM_INFINITY;
}

// In the upper half of what the process may have, or from 512 on.
inline int own_numbers_begin() { return int(std::min<uint64_t>(512, allowed_numbers() / 2)); }

// Lower where the spare ones begin lower (spare_numbers.hpp): above them may be no room but theirs.
inline int own_numbers_from() {
  const int begin = own_numbers_begin(), spare = spares.lowest.load();
  return spare > 0 ? std::min(begin, spare) : begin;
}

// -1 and errno.
inline int duplicate_out_of_the_way(int fd) {
  const int there = raw::fcntl(fd, F_DUPFD_CLOEXEC, own_numbers_from());
  return there >= 0 ? there : raw::fcntl(fd, F_DUPFD_CLOEXEC);
}

// For what is kept; where there is no room it stays where it is.
inline Fd out_of_the_way(Fd fd) {
  if (!fd || fd.get() >= own_numbers_from()) return fd;
  Fd there(raw::fcntl(fd.get(), F_DUPFD_CLOEXEC, own_numbers_from()));
  return there ? std::move(there) : std::move(fd);
}

}  // namespace holdfast::raw
