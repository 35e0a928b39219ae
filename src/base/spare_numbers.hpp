// Descriptors that are kept for the moment when the program has used up all others. What Holdfast opens for a file that is open already must not fail
// for want of a number. To the file that would be a lost target. One of them is closed to make room, and the next descriptor of Holdfast's that is
// closed takes its place. Shared by all threads and lanes; a forked child has its own.
#pragma once
#include <array>

#include "base/own_numbers.hpp"
#include "base/raw_syscalls.hpp"

namespace holdfast::raw {

// `none`: too few are free now. `forbidden`: the limit is too low.
enum class Reserve { kept, none, forbidden };
// Who only reads loses no target, and takes what it gets.
enum class Need { to_read, to_write };

constexpr int left_to_program = 12;
// What a file that wants so many spare ones has open all the time, as it was counted: 15 for 18 on two targets, 26 for 38 on six.
constexpr int open_beside(int wanted) { return wanted * 3 / 4 + 2; }
// The lowest limit with which such a file is opened to be written.
constexpr int least_allowed(int wanted) { return wanted + open_beside(wanted) + left_to_program; }

// Where the spare ones begin: with the others of Holdfast's own, or lower where the limit leaves too few there.
inline int lowest_spare(uint64_t allowed, int wanted) {
  const int64_t begin = int64_t(std::min<uint64_t>(allowed, 1 << 30)) - wanted - open_beside(wanted);
  return int(std::min<int64_t>(own_numbers_begin(), std::max<int64_t>(left_to_program, begin)));
}

// What Holdfast opens lies from there on, too. Were it looked for higher up, spare ones would be closed until one of these is.
inline void begin_at(int lowest) {
  spares.lowest = lowest;
  if (lowest_own.load() > 0) lowest_own = lowest;
}

// The program may have changed its limit since. Spare ones beyond a lower limit make room for nothing.
inline void follow_limit(uint64_t allowed, int wanted) {
  static std::atomic<uint64_t> before{RLIM_INFINITY};
  const uint64_t was = before.exchange(allowed);
  if (was == allowed) return;
  if (lowest_own.load() > 0) lowest_own = own_numbers_begin();
  if (spares.pattern.load() < 0) return;
  if (allowed < was) {
    while (spares.give_up()) continue;
    spares.wanted = int(std::min<uint64_t>(uint64_t(spares.wanted.load()), allowed / 2));
  }
  begin_at(lowest_spare(allowed, std::max(wanted, spares.wanted.load())));
}

// What they are duplicates of. False where there is no room even for that.
inline bool make_pattern(int lowest) {
  const int root = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC));
  if (root < 0) return false;
  const int pattern = static_cast<int>(syscall(SYS_fcntl, root, F_DUPFD_CLOEXEC, lowest));
  raw::close(root);
  if (pattern < 0) return true;  // only low numbers are left: without
  mark_own(pattern, true);
  int none = -1;
  if (spares.pattern.compare_exchange_strong(none, pattern)) return true;
  mark_own(pattern, false);  // another thread has been quicker
  raw::close(pattern);
  return true;
}

// Whether so many more can be made at this moment, wherever they come to lie.
inline bool are_free(int wanted) {
  std::array<int, Spares::most> made{};
  int count = 0;
  const int from = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC));
  if (from >= 0) made[size_t(count++)] = from;
  while (from >= 0 && count < wanted) {
    const int fd = static_cast<int>(syscall(SYS_fcntl, from, F_DUPFD_CLOEXEC, 0));
    if (fd < 0) break;
    made[size_t(count++)] = fd;
  }
  for (int i = 0; i < count; ++i) raw::close(made[size_t(i)]);
  return count >= wanted;
}

// Keeps `wanted` from here on. Who reads has at most a quarter of what the process may have.
inline Reserve keep_spares(int wanted, Need need) {
  constexpr uint64_t readers_share = 4;
  const uint64_t allowed = allowed_numbers();
  wanted = std::min(wanted, Spares::most);
  follow_limit(allowed, wanted);
  if (spares.kept.load() >= wanted) return Reserve::kept;
  if (need == Need::to_read) wanted = int(std::min<uint64_t>(uint64_t(wanted), allowed / readers_share));
  else if (uint64_t(least_allowed(wanted)) > allowed) return Reserve::forbidden;
  const int lowest = lowest_spare(allowed, wanted);
  if (spares.pattern.load() < 0 && !make_pattern(lowest)) return Reserve::none;
  if (spares.lowest.load() == 0 || lowest < spares.lowest.load()) begin_at(lowest);
  if (spares.pattern.load() >= 0) {
    spares.wanted = std::max(spares.wanted.load(), wanted);
    spares.refill();
  }
  const int lacking = wanted - spares.kept.load();
  // The program has files of its own at all high numbers. While there are low ones it goes on without.
  return lacking <= 0 || are_free(need == Need::to_read ? 1 : lacking) ? Reserve::kept : Reserve::none;
}

}  // namespace holdfast::raw
