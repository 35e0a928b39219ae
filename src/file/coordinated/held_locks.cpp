#include "file/coordinated/held_locks.hpp"

#include <unistd.h>

#include <algorithm>

namespace holdfast::file {

HeldRanges::Range range_of(const struct flock& lock) {
  const int64_t start = lock.l_start, other_end = start + lock.l_len;
  if (lock.l_len == 0) return {start, HeldRanges::to_the_end, lock.l_type};
  return {std::min(start, other_end), std::max(start, other_end), lock.l_type};
}

void HeldRanges::set(const struct flock& lock) {
  const Range now = range_of(lock);
  std::vector<Range> left;
  for (const Range& range : ranges_) {
    if (range.begin < now.begin) left.push_back({range.begin, std::min(range.end, now.begin), range.type});
    if (range.end > now.end) left.push_back({std::max(range.begin, now.end), range.end, range.type});
  }
  if (now.type != F_UNLCK) left.push_back(now);
  ranges_ = std::move(left);
}

struct flock as_lock(const HeldRanges::Range& range) {
  struct flock lock {};
  lock.l_type = range.type, lock.l_whence = SEEK_SET;
  lock.l_start = range.begin, lock.l_len = range.end == HeldRanges::to_the_end ? 0 : range.end - range.begin;
  return lock;
}

}  // namespace holdfast::file
