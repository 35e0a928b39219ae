#include "layers/buffered/window_buffer.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace holdfast::layers {

// Large pages where the kernel has any: filling a buffer for the first time is mostly page faults otherwise.
WindowBuffer::WindowBuffer(uint64_t bytes) : bytes_(bytes) {
  constexpr std::align_val_t large_page{2 << 20};
  storage_ = static_cast<std::byte*>(::operator new(bytes, large_page));
  (void)madvise(storage_, bytes, MADV_HUGEPAGE);
}
WindowBuffer::~WindowBuffer() { ::operator delete (storage_, std::align_val_t{2 << 20}); }

void WindowBuffer::put(uint64_t at, ByteView data) {
  std::memcpy(storage_ + at, data.data(), data.size());
  valid_.add(at, at + data.size());
  dirty_.add(at, at + data.size());
}

void WindowBuffer::get(uint64_t at, ByteSpan into) const { std::memcpy(into.data(), storage_ + at, into.size()); }

std::vector<Extent> WindowBuffer::gaps(uint64_t at, uint64_t count) const {
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

std::vector<Extent> WindowBuffer::dirty_ranges() const {
  std::vector<Extent> ranges;
  for (const auto& [from, to] : dirty_.ranges()) ranges.push_back({from, to - from});
  return ranges;
}

}  // namespace holdfast::layers
