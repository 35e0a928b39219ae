#include "layers/buffered/buffer.hpp"

#include <algorithm>
#include <cstring>

namespace holdfast::layers {

void Buffer::put(uint64_t at, ByteView data) {
  std::memcpy(storage_.get() + at, data.data(), data.size());
  valid_.add(at, at + data.size());
  dirty_.add(at, at + data.size());
}

void Buffer::get(uint64_t at, ByteSpan into) const { std::memcpy(into.data(), storage_.get() + at, into.size()); }

std::vector<Extent> Buffer::gaps(uint64_t at, uint64_t count) const {
  std::vector<Extent> found;
  const uint64_t end = at + count;
  for (const auto& [from, to] : valid_.ranges()) {
    if (to <= at) continue;
    if (from >= end) break;
    if (from > at) found.push_back({at, from - at});
    at = std::max(at, to);
  }
  if (at < end) found.push_back({at, end - at});
  return found;
}

std::vector<Extent> Buffer::dirty_ranges() const {
  std::vector<Extent> ranges;
  for (const auto& [from, to] : dirty_.ranges()) ranges.push_back({from, to - from});
  return ranges;
}

}  // namespace holdfast::layers
