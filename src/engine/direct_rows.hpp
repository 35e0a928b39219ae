// Which rows this rank has written whole, outside the file's lock, since its opener's last commit, and when.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>

namespace holdfast::engine {

class DirectRows {
 public:
  // Neighbours that follow each other at once share one entry, with the later time.
  void add(uint64_t row, uint64_t time_ns) {
    auto next = ranges_.upper_bound(row);
    if (next != ranges_.begin()) {
      auto& [first, range] = *std::prev(next);
      if (row == range.end && (next == ranges_.end() || next->first > row) && time_ns - range.time_ns < together_ns) {
        range = {row + 1, time_ns};
        return;
      }
      if (row < range.end) split(std::prev(next), row);
    }
    ranges_[row] = {row + 1, time_ns};
    if (ranges_.size() > most_ranges) *this = spanning(*this);
  }
  // 0 where the row was not written so.
  uint64_t time_of(uint64_t row) const {
    auto next = ranges_.upper_bound(row);
    if (next == ranges_.begin()) return 0;
    const Range& range = std::prev(next)->second;
    return row < range.end ? range.time_ns : 0;
  }
  void clear() { ranges_.clear(); }
  bool empty() const { return ranges_.empty(); }
  template <class Each>
  void each_row(Each each) const {
    for (const auto& [first, range] : ranges_)
      for (uint64_t row = first; row < range.end; ++row) each(row);
  }

 private:
  struct Range {
    uint64_t end = 0, time_ns = 0;
  };
  static constexpr uint64_t together_ns = 50'000'000;
  static constexpr size_t most_ranges = 1 << 16;  // beyond, only the latest time of all is kept

  // Makes room for `row` inside a range: what comes before and behind it keeps its time.
  void split(std::map<uint64_t, Range>::iterator at, uint64_t row) {
    const Range whole = at->second;
    if (row + 1 < whole.end) ranges_[row + 1] = whole;
    at->second.end = row;
    if (at->first == row) ranges_.erase(at);
  }
  static DirectRows spanning(const DirectRows& of) {
    DirectRows one;
    Range all;
    for (const auto& [first, range] : of.ranges_) all = {std::max(all.end, range.end), std::max(all.time_ns, range.time_ns)};
    one.ranges_[of.ranges_.begin()->first] = all;
    return one;
  }

  std::map<uint64_t, Range> ranges_;  // by first row
};

}  // namespace holdfast::engine
