// Descriptors that are kept for the moment when the program has used up all others. What Holdfast opens for a file that is open already must not fail
// for want of a number. To the file that would be a lost target. One of them is closed to make room, and the next descriptor of Holdfast's that is
// closed takes its place. Shared by all threads and lanes; a forked child has its own.
#pragma once
#include "base/own_numbers.hpp"
#include "base/raw_syscalls.hpp"

namespace holdfast::raw {

// Keeps `wanted` from here on, and at most a quarter of what the process may have. False where there is no room for them: whoever is about
// to open a file refuses with EMFILE.
inline bool keep_spares(int wanted) {
  wanted = std::min(wanted, Spares::most);
  if (spares.kept.load() >= wanted) return true;
  struct rlimit most {};
  if (syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &most) == 0) wanted = int(std::min<uint64_t>(uint64_t(wanted), most.rlim_cur / 4));
  if (spares.pattern.load() < 0) {
    const int root = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC));
    if (root < 0) return false;
    spares.lowest = std::max(own_numbers_begin(), lowest_own.load());
    const int pattern = static_cast<int>(syscall(SYS_fcntl, root, F_DUPFD_CLOEXEC, spares.lowest.load()));
    raw::close(root);
    if (pattern < 0) return true;  // only low numbers are left: without
    mark_own(pattern, true);
    int none = -1;
    if (!spares.pattern.compare_exchange_strong(none, pattern)) {  // another thread has been quicker
      mark_own(pattern, false);
      raw::close(pattern);
    }
  }
  spares.wanted = std::max(spares.wanted.load(), wanted);
  spares.refill();
  if (spares.kept.load() >= wanted) return true;
  // The program has files of its own at all high numbers. While there are low ones it goes on without.
  const int low = static_cast<int>(syscall(SYS_fcntl, spares.pattern.load(), F_DUPFD_CLOEXEC, 0));
  return low >= 0 && raw::close(low) == 0;
}

}  // namespace holdfast::raw
