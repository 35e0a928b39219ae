// The parts of one file that somebody has locked, as fcntl(2) keeps them: each byte by the newest lock.
#pragma once
#include <fcntl.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace holdfast::file {

class HeldRanges {
 public:
  struct Range {
    int64_t begin = 0, end = 0;  // which is behind the last byte
    short type = F_RDLCK;
    bool operator==(const Range&) const = default;
  };
  static constexpr int64_t to_the_end = std::numeric_limits<int64_t>::max();

  // `lock` counts from the file's beginning. F_UNLCK gives its part up, of several locks or in the middle of one.
  void set(const struct flock& lock);
  const std::vector<Range>& all() const { return ranges_; }

 private:
  std::vector<Range> ranges_;
};

HeldRanges::Range range_of(const struct flock& lock);
struct flock as_lock(const HeldRanges::Range& range);

}  // namespace holdfast::file
