// One row: which of its units and records are not whole where they belong, and what may be written beside a running job.
#include <algorithm>

#include <fmt/format.h>

#include "engine/repair_batch.hpp"

namespace holdfast::engine {

using layout::Manifest;
using layout::RowRecord;

// A range of blocks of one row: what is to be written, by unit; null and empty where nothing is.
struct RepairBatch::Range {
  Range(uint32_t first_block, uint32_t count, int width) : first(first_block), blocks(count), into(size_t(width), nullptr), buffers(size_t(width)) {}
  uint32_t first, blocks;
  std::vector<std::byte*> into;
  std::vector<Bytes> buffers;
  bool any() const {
    return std::any_of(into.begin(), into.end(), [](const std::byte* at) { return at != nullptr; });
  }
};

namespace {

bool may_have_changed(const RowRecord& record, const Manifest& since) {
  const auto& open = since.open_generations;
  return record.hole() || record.generation >= since.next_generation || std::find(open.begin(), open.end(), record.generation) != open.end();
}

}  // namespace

// A synced row is written by nobody who does not hold the lock that we hold. A hole, or a row that is not synced, is written by a
// running job at any moment: beside one it is left alone, units and records. Where nobody writes, what was not synced goes along as far
// as it verifies: with a record of before in its place, a member that was away would make it another row, and a synced one.
void RepairBatch::mend(uint64_t row, const Manifest* since) {
  auto record = look_.rows.record(row);
  if (!record.ok()) {
    ledger_.lost_rows.insert(row);
    ledger_.records_lost = true;
    ledger_.lacks(~0ull, fmt::format("what row {} holds is not known", row));
    return;
  }
  if (since && !may_have_changed(*record, *since)) return;
  ledger_.lost_rows.erase(row);
  const bool synced = manifest().is_synced(record->generation);
  if (look_.journals.holds(row)) {
    ledger_.lacks(newcomers(), "a commit of the running job waits to be put in its place; repair again when the job has ended");
  } else if (synced || alone_) {
    if (!record->hole()) mend_units(*record);
    mend_slots(*record);
  } else {
    distrust_old_slots(*record);
  }
}

void RepairBatch::mend_slots(const RowRecord& record) {
  const std::vector<Bytes> slots = read_slots(onto_, look_.records, record.row, targets());
  const Bytes sound = look_.records.encode(std::span(&record, 1));
  for (int member = 0; member < onto_.count(); ++member) {
    const Bytes& slot = slots[size_t(member)];
    if (!(targets() >> member & 1) || slot == sound || (record.generation == 0 && slot.empty())) continue;
    // Beyond the end of what the member has, everything before would become holes there, also the rows of which nothing is known.
    if (slot.empty() && ledger_.records_lost) continue;
    if (write(member, look_.records.object_name(member), record.row * look_.records.slot_bytes(), sound).ok()) ++ledger_.report.records_rewritten;
  }
}

// A member that was away may have a record of before: of a row that was cut off since, or that was never synced and whose generation was
// given up since. It must not count again, also where the running job has written the row and dies before its sync; and beside that job
// it cannot be taken away.
void RepairBatch::distrust_old_slots(const RowRecord& record) {
  if (!newcomers()) return;
  const std::vector<Bytes> slots = read_slots(onto_, look_.records, record.row, newcomers());
  for (int member = 0; member < onto_.count(); ++member) {
    if (slots[size_t(member)].empty()) continue;
    auto old = layout::decode_record(manifest().geometry, look_.records.key(), record.row, slots[size_t(member)]);
    if (old.ok() && old->generation != 0 && manifest().is_synced(old->generation))
      ledger_.lacks(1ull << member, "it holds rows that were given up while it was away; repair again when the job has ended");
  }
}

void RepairBatch::mend_units(const RowRecord& record) {
  const layout::Geometry& g = manifest().geometry;
  const uint32_t step = std::max<uint32_t>(1, uint32_t(inspected_bytes / g.block_bytes));
  rebuilt_ = 0;
  bool whole = true;
  for (uint32_t block = 0; block < g.blocks_per_unit(); block += step) {
    Range range(block, std::min(step, g.blocks_per_unit() - block), g.scheme.width());
    whole &= mend_range(record, range);
  }
  if (!whole && manifest().is_synced(record.generation)) ledger_.lost_rows.insert(record.row);
}

// False where the row is lost.
bool RepairBatch::mend_range(const RowRecord& record, Range& range) {
  if (!find_missing(record, range)) return true;
  take_over(record, range);
  bool whole = true;
  if (range.any() && !look_.rows.reconstruct(record, range.first, range.blocks, range.into.data()).ok()) {
    whole = false;
    for (size_t unit = 0; unit < range.into.size(); ++unit) {
      if (!range.into[unit]) continue;
      if (manifest().is_synced(record.generation))
        ledger_.lacks(1ull << layout::place(manifest().geometry, record.row, int(unit)).member, "some of its rows cannot be rebuilt");
      range.buffers[unit].clear();
    }
  }
  write_range(record, range);
  return whole;
}

// The units that are not whole where they belong get a buffer. False where there are none.
bool RepairBatch::find_missing(const RowRecord& record, Range& range) {
  const layout::Geometry& g = manifest().geometry;
  const auto reads = there_.read_units(record, range.first, range.blocks, targets());
  for (int unit = 0; unit < g.scheme.width(); ++unit) {
    const int member = layout::place(g, record.row, unit).member;
    const UnitBlocks& read = *reads[size_t(unit)];
    if (read.whole() || !(targets() >> member & 1)) continue;
    if (read.status.kind() == Kind::timed_out) {
      ledger_.give_up(member, read.status.sentence());
      continue;
    }
    range.buffers[size_t(unit)].resize(size_t(range.blocks) * g.block_bytes);
    range.into[size_t(unit)] = range.buffers[size_t(unit)].data();
  }
  return range.any();
}

// What a replaced member still has whole is copied: that asks less of the others than to rebuild it.
void RepairBatch::take_over(const RowRecord& record, Range& range) {
  const layout::Geometry& g = manifest().geometry;
  uint64_t sources = 0;
  for (int unit = 0; unit < g.scheme.width(); ++unit) {
    const int member = layout::place(g, record.row, unit).member;
    if (range.into[size_t(unit)] && (moved_ >> member & 1) && look_.members.available(member)) sources |= 1ull << member;
  }
  if (!sources) return;
  const auto reads = look_.rows.read_units(record, range.first, range.blocks, sources);
  for (size_t unit = 0; unit < range.into.size(); ++unit) {
    if (!range.into[unit] || !reads[unit]->whole()) continue;
    const ByteSpan found = reads[unit]->buffer.span();
    std::copy(found.begin(), found.end(), range.buffers[unit].begin());
    range.into[unit] = nullptr;
  }
}

void RepairBatch::write_range(const RowRecord& record, Range& range) {
  const layout::Geometry& g = manifest().geometry;
  const uint64_t at = uint64_t(range.first) * g.block_bytes;
  for (int unit = 0; unit < g.scheme.width(); ++unit) {
    Bytes& buffer = range.buffers[size_t(unit)];
    const uint64_t stored = stored_bytes(g, record, unit, manifest().size);
    if (buffer.empty() || at >= stored) continue;
    buffer.resize(std::min<uint64_t>(buffer.size(), stored - at));
    const uint64_t bytes = buffer.size();
    const layout::UnitPlace place = layout::place(g, record.row, unit);
    if (!write(place.member, look_.located.data_name(place.object), place.offset + at, std::move(buffer)).ok()) continue;
    ledger_.report.bytes_rebuilt += bytes;
    if (!(rebuilt_ >> unit & 1)) ++ledger_.report.units_rebuilt, ++ledger_.report.per_member_units[size_t(place.member)];
    rebuilt_ |= 1ull << unit;
  }
}

}  // namespace holdfast::engine
