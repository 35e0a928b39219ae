#include "layers/protected/pending.hpp"

#include <algorithm>
#include <cstring>

namespace holdfast::layers {

bool Pending::add(uint64_t row, uint64_t offset, const std::byte* from, uint64_t length) {
  auto it = rows_.find(row);
  if (it == rows_.end()) it = rows_.emplace(row, Row(row_bytes_)).first;
  if (!it->second.buffer.valid()) {
    rows_.erase(it);
    return false;
  }
  const uint64_t before = it->second.covered.bytes();
  std::memcpy(it->second.buffer.data() + offset, from, length);
  it->second.covered.add(offset, offset + length);
  bytes_ += it->second.covered.bytes() - before;
  return true;
}

Pending::Row* Pending::find(uint64_t row) {
  auto it = rows_.find(row);
  return it == rows_.end() ? nullptr : &it->second;
}

void Pending::drop(uint64_t row) {
  auto it = rows_.find(row);
  if (it == rows_.end()) return;
  bytes_ -= it->second.covered.bytes();
  rows_.erase(it);
}

void Pending::overlay(uint64_t row, uint64_t offset, uint64_t length, std::byte* into) {
  Row* pending = find(row);
  if (!pending) return;
  for (const auto& [begin, end] : pending->covered.ranges()) {
    const uint64_t from = std::max(begin, offset), to = std::min(end, offset + length);
    if (from < to) std::memcpy(into + (from - offset), pending->buffer.data() + from, to - from);
  }
}

}  // namespace holdfast::layers
