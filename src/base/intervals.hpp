// A set of byte ranges, kept merged: which bytes of a row are there.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace holdfast {

class Intervals {
 public:
  void add(uint64_t begin, uint64_t end) {
    if (begin >= end) return;
    auto it = ranges_.upper_bound(begin);
    // What goes on where the range before ends, as most writes do, makes that one longer.
    if (it != ranges_.begin() && (it == ranges_.end() || end < it->first) && begin <= std::prev(it)->second) {
      std::prev(it)->second = std::max(std::prev(it)->second, end);
      return;
    }
    if (it != ranges_.begin() && std::prev(it)->second >= begin) --it;
    while (it != ranges_.end() && it->first <= end) {
      begin = std::min(begin, it->first);
      end = std::max(end, it->second);
      it = ranges_.erase(it);
    }
    ranges_.emplace(begin, end);
  }
  bool covers(uint64_t begin, uint64_t end) const {
    auto it = ranges_.upper_bound(begin);
    return it != ranges_.begin() && std::prev(it)->second >= end;
  }
  bool touches(uint64_t begin, uint64_t end) const {
    auto it = ranges_.upper_bound(begin);
    if (it != ranges_.begin() && std::prev(it)->second > begin) return true;
    return it != ranges_.end() && it->first < end;
  }
  uint64_t bytes() const {
    uint64_t sum = 0;
    for (auto& [begin, end] : ranges_) sum += end - begin;
    return sum;
  }
  uint64_t end() const { return ranges_.empty() ? 0 : ranges_.rbegin()->second; }
  const std::map<uint64_t, uint64_t>& ranges() const { return ranges_; }  // begin -> end

 private:
  std::map<uint64_t, uint64_t> ranges_;
};

}  // namespace holdfast
