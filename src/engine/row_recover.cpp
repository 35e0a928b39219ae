// What does not verify, or lies on a lost member, is recovered from the row's other units.
#include <algorithm>
#include <cstring>
#include <map>

#include "engine/row_reader.hpp"
#include "engine/waiting.hpp"

namespace holdfast::engine {

using layout::RowRecord;

namespace {
constexpr int most_recoveries_again = 6;
constexpr auto read_again_after = std::chrono::milliseconds(1);
constexpr uint64_t recover_chunk_bytes = 1 << 20;  // per unit, when a row is reconstructed
}  // namespace

Status RowReader::recover(const Begun& read) {
  std::map<uint64_t, std::vector<RowRange>> by_row;
  for (const RowRange& range : read.failed) by_row[range.row].push_back(range);
  for (auto it = by_row.begin(); it != by_row.end();) {
    const auto& [row, ranges] = *it++;
    const uint64_t next_row = it != by_row.end() ? it->first : read.sequential ? row + 1 : ~0ull;
    Status status = recover_as_known_now(row, ranges, next_row);
    HF_TRY(status.kind() == Kind::lost ? recover_before_giving_up(status, row, ranges, next_row) : status);
  }
  return Status();
}

// Another opener may have changed the row, or be changing it, since its record was read.
Status RowReader::recover_before_giving_up(Status status, uint64_t row, std::span<const RowRange> ranges, uint64_t next_row) {
  for (int again = 0; status.kind() == Kind::lost && again < most_recoveries_again; ++again) {
    if (again > 0) wait_while_busy(read_again_after * again);
    others_.look_again();
    auto record = this->record(row);
    if (!record.ok()) return record.status();
    rebuilder_.take_gaps_for_zeros(others_.have_not_synced(record->generation));
    status = recover_as_known_now(row, ranges, next_row);
    rebuilder_.take_gaps_for_zeros(false);
  }
  return status;
}

Status RowReader::recover_as_known_now(uint64_t row, std::span<const RowRange> ranges, uint64_t next_row) {
  auto record = this->record(row);
  if (!record.ok()) return record.status();
  if (!record->hole()) return recover_row(*record, ranges, next_row);
  for (const RowRange& range : ranges) std::memset(range.into, 0, range.length);
  return Status();
}

RowReader::Want RowReader::want_of(std::span<const RowRange> ranges) const {
  Want want;
  const uint64_t c = geometry().block_bytes;
  for (const RowRange& range : ranges)
    for_each_unit(range, geometry().unit_bytes, [&](int unit, uint64_t offset, uint64_t length, uint64_t) {
      want.units |= 1ull << unit;
      want.first = std::min(want.first, offset / c);
      want.last = std::max(want.last, (offset + length - 1) / c);
    });
  return want;
}

// `next_row` is the row that will be wanted after this one.
Status RowReader::recover_row(const RowRecord& record, std::span<const RowRange> ranges, uint64_t next_row) {
  // Whoever reads much of a degraded row, or the same row again, is likely to read the rest of it. So the whole row is rebuilt once and kept, and
  // each surviving unit is read once.
  const Want want = want_of(ranges);
  const bool again = last_recovered_ == record.row;
  last_recovered_ = record.row;
  const bool whole = again || (want.last - want.first + 1) * 4 >= geometry().blocks_per_unit();
  if (geometry().scheme.k == 1 || !held_.may_hold() || !whole) return recover_blocks(record, ranges, want);
  return held_.hold_from_memory(record, ranges) ? Status() : held_.hold_from_lanes(record, ranges, next_row);
}

Status RowReader::recover_blocks(const RowRecord& record, std::span<const RowRange> ranges, const Want& want) {
  const layout::Geometry& g = geometry();
  const uint64_t c = g.block_bytes, most = std::max<uint64_t>(1, recover_chunk_bytes / c);
  Buffer arena(uint64_t(__builtin_popcountll(want.units)) * std::min(most, want.last - want.first + 1) * c);
  for (uint64_t block = want.first; block <= want.last; block += most) {
    const uint64_t blocks = std::min(most, want.last - block + 1);
    std::vector<std::byte*> into(size_t(g.scheme.width()), nullptr);
    size_t next = 0;
    for (int u = 0; u < g.scheme.k; ++u)
      if (want.units >> u & 1) into[u] = arena.data() + next++ * blocks * c;
    HF_TRY(reconstruct(record, uint32_t(block), uint32_t(blocks), into.data()));
    for (const RowRange& range : ranges) copy_columns(range, g.unit_bytes, block * c, (block + blocks) * c, into);
  }
  return Status();
}

}  // namespace holdfast::engine
