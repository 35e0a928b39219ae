// A range of one row that a reader wants, and where to put it.
#pragma once
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/bytes.hpp"

namespace holdfast::engine {

struct RowRange {
  uint64_t row = 0;
  uint64_t offset = 0;  // in the row
  uint64_t length = 0;
  std::byte* into = nullptr;
};

// Calls `each(unit, offset in the unit, length, position in the range)` for every unit that the range touches.
template <class Each>
void for_each_unit(const RowRange& range, uint64_t unit_bytes, Each each) {
  for (uint64_t done = 0; done < range.length;) {
    const uint64_t offset = range.offset + done, length = std::min(range.length - done, unit_bytes - offset % unit_bytes);
    each(int(offset / unit_bytes), offset % unit_bytes, length, done);
    done += length;
  }
}

// Copies what `range` has of columns [begin, end) from the units' buffers, which begin at column `begin`.
inline void copy_columns(const RowRange& range, uint64_t unit_bytes, uint64_t begin, uint64_t end, const std::vector<std::byte*>& units) {
  for_each_unit(range, unit_bytes, [&](int unit, uint64_t offset, uint64_t length, uint64_t position) {
    const uint64_t from = std::max(offset, begin), to = std::min(offset + length, end);
    if (from >= to) return;
    std::byte* into = range.into + position + (from - offset);
    if (into != units[size_t(unit)] + (from - begin)) std::memcpy(into, units[size_t(unit)] + (from - begin), to - from);
  });
}

}  // namespace holdfast::engine
