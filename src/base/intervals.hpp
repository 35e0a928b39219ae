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
      uint64_t& last = std::prev(it)->second;
      bytes_ += std::max(last, end) - last;
      last = std::max(last, end);
      return;
    }
    if (it != ranges_.begin() && std::prev(it)->second >= begin) --it;
    while (it != ranges_.end() && it->first <= end) {
      begin = std::min(begin, it->first);
      end = std::max(end, it->second);
      bytes_ -= it->second - it->first;
      it = ranges_.erase(it);
    }
    ranges_.emplace(begin, end);
    bytes_ += end - begin;
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
  uint64_t bytes() const { return bytes_; }
  uint64_t end() const { return ranges_.empty() ? 0 : ranges_.rbegin()->second; }
  const std::map<uint64_t, uint64_t>& ranges() const { return ranges_; }  // begin -> end

 private:
  std::map<uint64_t, uint64_t> ranges_;
  uint64_t bytes_ = 0;  // in all of them
};

}  // namespace holdfast
