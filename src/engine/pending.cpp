#include "engine/pending.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "coding/checksum.hpp"
#include "engine/waiting.hpp"

namespace holdfast::engine {

namespace {
// Of a row that was written over and over the order of its pieces among each other is given up. One with many pieces beside each other keeps it: to find
// out at each of them what they cover together would take longer than all else.
bool are_too_many(const Pending::Row& row) {
  constexpr size_t most_pieces = 64;
  return row.pieces.size() > std::max(most_pieces, 2 * row.covered.ranges().size());
}
}  // namespace

uint64_t now_ns() { return clock_ns(); }

Status Pending::add(uint64_t number, uint64_t offset, const std::byte* from, uint64_t length) {
  Row& row = rows_[number];
  if (!row.buffer) row.buffer = std::make_unique<Buffer>(row_bytes_);
  if (!row.buffer->valid()) {
    row.buffer.reset();
    return Status(Kind::internal, "no memory for a row of " + std::to_string(row_bytes_) + " bytes");
  }
  const uint64_t before = row.in_memory.bytes(), end = offset + length, now = now_ns();
  std::memcpy(row.buffer->data() + offset, from, length);
  row.in_memory.add(offset, end);
  row.covered.add(offset, end);
  bytes_ += row.in_memory.bytes() - before;
  if (!row.pieces.empty() && row.pieces.back().end == offset) {
    row.pieces.back().end = end;
    row.pieces.back().time_ns = now;
  } else {
    row.pieces.push_back({offset, end, now});
  }
  if (are_too_many(row)) {
    row.pieces.clear();
    for (auto& [begin, stop] : row.covered.ranges()) row.pieces.push_back({begin, stop, now});
  }
  return bytes_ > limit_ ? make_room(number) : Status();
}

Status Pending::make_room(uint64_t but_not_row) {
  for (auto& [number, row] : rows_) {
    if (bytes_ <= limit_ / 2) break;
    if (number != but_not_row && row.buffer) HF_TRY(park(row));
  }
  return Status();
}

Status Pending::park(Row& row) {
  for (auto& [begin, end] : row.in_memory.ranges()) {
    const ByteView bytes(row.buffer->data() + begin, end - begin);
    auto at = spill_.write(bytes);
    if (!at.ok()) return at.status();
    row.parked.push_back({begin, end, *at, coding::plain_checksum(bytes)});
  }
  bytes_ -= row.in_memory.bytes();
  row.in_memory = {};
  row.buffer.reset();
  return Status();
}

Result<const std::byte*> Pending::bytes_of(const Row& row, std::unique_ptr<Buffer>& room) {
  if (row.parked.empty()) return row.buffer->data();
  room = std::make_unique<Buffer>(row_bytes_);
  if (!room->valid()) return Status(Kind::internal, "no memory for a row of " + std::to_string(row_bytes_) + " bytes");
  for (const SpilledRange& range : row.parked) HF_TRY(spill_.read(range, room->data() + range.begin));
  for (auto& [begin, end] : row.in_memory.ranges()) std::memcpy(room->data() + begin, row.buffer->data() + begin, end - begin);
  return room->data();
}

Pending::Row* Pending::find(uint64_t row) {
  auto it = rows_.find(row);
  return it == rows_.end() ? nullptr : &it->second;
}

void Pending::drop(uint64_t row) {
  auto it = rows_.find(row);
  if (it == rows_.end()) return;
  bytes_ -= it->second.in_memory.bytes();
  rows_.erase(it);
  if (rows_.empty()) spill_.clear();
}

void Pending::drop_all() {
  rows_.clear();
  bytes_ = 0;
  spill_.clear();
}

Status Pending::overlay(uint64_t number, uint64_t offset, uint64_t length, std::byte* into) {
  Row* row = find(number);
  if (!row) return Status();
  for (const SpilledRange& range : row->parked) {
    const uint64_t from = std::max(range.begin, offset), to = std::min(range.end, offset + length);
    if (from >= to) continue;
    Buffer whole(range.end - range.begin);  // the checksum is of the whole range
    if (!whole.valid()) return Status(Kind::internal, "no memory");
    HF_TRY(spill_.read(range, whole.data()));
    std::memcpy(into + (from - offset), whole.data() + (from - range.begin), to - from);
  }
  for (const auto& [begin, end] : row->in_memory.ranges()) {
    const uint64_t from = std::max(begin, offset), to = std::min(end, offset + length);
    if (from < to) std::memcpy(into + (from - offset), row->buffer->data() + from, to - from);
  }
  return Status();
}

}  // namespace holdfast::engine
