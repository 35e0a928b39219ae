// Descriptors that are kept for the moment when the program has used up all others. What Holdfast opens for a file that is open already must not fail
// for want of a number. To the file that would be a lost target. One of them is closed to make room, and the next descriptor of Holdfast's that is
// closed takes its place. Shared by all threads and lanes; a forked child has its own.
#pragma once
#include <time.h>

#include <array>
#include <bit>

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

// Holdfast's own that are open beside the spare ones. Where so many are allowed that they are not all watched, nobody has to know.
inline int open_of_own(uint64_t allowed) {
  const size_t words = size_t(std::min<uint64_t>(allowed, watched_descriptors) / 64);
  int count = 0;
  for (size_t i = 0; i < words; ++i) count += std::popcount(own_descriptors[i].load(std::memory_order_relaxed));
  return std::max(0, count - spares.kept.load());
}

// Where the spare ones begin: with the others of Holdfast's own, or lower where the limit leaves too few there for `wanted` of them, for what is
// open, and for what one more file of `largest` opens.
inline int lowest_spare(uint64_t allowed, int wanted, int largest) {
  constexpr uint64_t room_for_all = 1 << 14;
  if (allowed >= room_for_all) return own_numbers_begin();
  const int64_t begin = int64_t(allowed) - wanted - open_beside(largest) - open_of_own(allowed) - 2;  // and what is being moved
  return int(std::min<int64_t>(own_numbers_begin(), std::max<int64_t>(left_to_program, begin)));
}

// What Holdfast opens lies from there on, too. Were it looked for higher up, spare ones would be closed until one of these is.
inline void begin_at(int lowest) {
  spares.lowest = lowest;
  if (lowest_own.load() > 0) lowest_own = lowest;
}

// The program may have changed its limit since. Spare ones beyond a lower limit make room for nothing.
inline void follow_limit(uint64_t allowed, int wanted, int largest) {
  static std::atomic<uint64_t> before{RLIM_INFINITY};
  const uint64_t was = before.exchange(allowed);
  if (was == allowed) return;
  if (lowest_own.load() > 0) lowest_own = own_numbers_begin();
  if (spares.pattern.load() < 0) return;
  if (allowed < was) {
    while (spares.give_up()) continue;
    spares.wanted = int(std::min<uint64_t>(uint64_t(spares.wanted.load()), allowed / 2));
  }
  begin_at(lowest_spare(allowed, std::max(wanted, spares.wanted.load()), largest));
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

// What a file that wants so many spare ones opens at its first commit and keeps open: data and records on each target.
constexpr int opened_later(int wanted) { return wanted * 2 / 5; }

// What has to be there: the largest file's, and what the files that are open to be written have not opened yet.
inline std::atomic<int> of_the_largest{0}, opened_later_by_all{0};
inline int needed_by_all() {
  const int largest = of_the_largest.load();
  return std::min(largest + std::max(0, opened_later_by_all.load() - opened_later(largest)), Spares::most);
}
// What is better: as much as if all of them committed at the same moment, by a thread each. At most a quarter of what is allowed.
inline std::atomic<int> in_commits_of_all{0};
inline int wanted_by_all(uint64_t allowed) {
  const auto quarter = int(std::min<uint64_t>(allowed / 4, Spares::most));
  return std::max(needed_by_all(), std::min(in_commits_of_all.load(), quarter));
}

// One commit of this process. Several of them at once, by threads of the program, may need more than the reserve and all that is free. Then one waits for
// the others: a target that it could not open would be lost to its file.
class CommitTurn {
 public:
  // `wanted`: what it opens at most. Whoever must not wait, because others wait for him, does not. Nor does anybody wait for him: who waits may hold up the
  // very rank that he waits for.
  CommitTurn(int wanted, bool may_wait) : wanted_(may_wait ? wanted : 0) {
    if (!may_wait) return;
    uint64_t others = under_way.load();
    bool fits = fits_beside(count_of(others));
    for (int tries = 0;;) {
      if (fits || tries == most_tries) {
        if (under_way.compare_exchange_strong(others, of_this_process(count_of(others) + wanted_))) return;
        fits = fits_beside(count_of(others));
        continue;
      }
      ++tries;
      const timespec moment{0, 1000000};
      (void)syscall(SYS_nanosleep, &moment, nullptr);
      const uint64_t now = under_way.load();
      if (now != others) fits = fits_beside(count_of(others = now));
    }
  }
  CommitTurn(const CommitTurn&) = delete;
  ~CommitTurn() {
    uint64_t all = under_way.load();
    while (wanted_ > 0 && count_of(all) > 0 && !under_way.compare_exchange_weak(all, of_this_process(count_of(all) - wanted_))) continue;
  }

 private:
  static constexpr int most_tries = 30000;  // half a minute: with something else wrong nobody waits for ever
  // What those open that are under way, and whose they are: a forked child has none. No mutex, for another thread may hold it when the process forks.
  static inline std::atomic<uint64_t> under_way{0};
  static uint64_t of_this_process(int count) { return uint64_t(getpid()) << 32 | uint64_t(count); }
  static int count_of(uint64_t all) { return all >> 32 == uint64_t(getpid()) ? int(all & 0xffffffff) : 0; }
  // So many that they are not counted are taken for free where the process may have several times as many.
  bool fits_beside(int others) const {
    const int all = others + wanted_, lacking = all - spares.kept.load();
    if (others == 0 || lacking <= 0) return true;
    const bool are_few = lacking <= Spares::most || uint64_t(all) <= allowed_numbers() / 4;
    return are_few && are_free(std::min(lacking, Spares::most));
  }
  const int wanted_;
};

// A file's share of the reserve while it is open to be written. Without it, several files that are open before the program's table is full would
// take their numbers from a reserve that is enough for one.
class Share {
 public:
  explicit Share(int wanted) : in_commit_(wanted), later_(opened_later(wanted)) {
    in_commits_of_all += in_commit_;
    opened_later_by_all += later_.load();
  }
  Share(const Share&) = delete;
  ~Share() {
    in_commits_of_all -= in_commit_;
    opened_later_by_all -= later_.load();
    give_up_what_is_too_much();
  }
  int in_commit() const { return in_commit_; }
  // The file has committed for the first time: what it keeps open is open.
  void opened() {
    const int later = later_.exchange(0);
    opened_later_by_all -= later;
    if (later > 0) give_up_what_is_too_much();
  }

 private:
  static void give_up_what_is_too_much() {
    const int wanted = wanted_by_all(allowed_numbers());
    if (wanted >= spares.wanted.load()) return;
    spares.wanted = wanted;
    while (spares.kept.load() > wanted && spares.give_up()) continue;
  }

  const int in_commit_;
  std::atomic<int> later_;
};

// Keeps `wanted` for one more file from here on. Who reads has at most a quarter of what the process may have.
inline Reserve keep_spares(int wanted, Need need) {
  constexpr uint64_t readers_share = 4;
  const uint64_t allowed = allowed_numbers();
  const int largest = std::min(wanted, Spares::most);
  const bool writes = need == Need::to_write, too_low = uint64_t(least_allowed(largest)) > allowed;
  if (writes && !too_low && of_the_largest.load() < largest) of_the_largest = largest;
  int all = writes && !too_low ? wanted_by_all(allowed) : largest;
  follow_limit(allowed, all, largest);
  const int lowest = lowest_spare(allowed, all, largest);
  if (spares.lowest.load() > 0 && lowest < spares.lowest.load()) begin_at(lowest);
  if (spares.kept.load() >= all) return Reserve::kept;
  if (!writes) all = int(std::min<uint64_t>(uint64_t(all), allowed / readers_share));
  else if (too_low) return Reserve::forbidden;
  if (spares.pattern.load() < 0 && !make_pattern(lowest)) return Reserve::none;
  if (spares.lowest.load() == 0) begin_at(lowest);
  if (spares.pattern.load() >= 0) {
    spares.wanted = std::max(spares.wanted.load(), all);
    spares.refill();
  }
  const int lacking = (writes ? needed_by_all() : all) - spares.kept.load();
  // The program has files of its own at all high numbers. While there are low ones it goes on without.
  return lacking <= 0 || are_free(writes ? lacking : 1) ? Reserve::kept : Reserve::none;
}

}  // namespace holdfast::raw
