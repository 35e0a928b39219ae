// One row: which of its units and records are not whole where they belong, and what may be written beside a running job.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/repair_batch.hpp"

namespace holdfast::engine {

using layout::Manifest;
using layout::RowRecord;

struct RepairBatch::Row {
  RowRecord record;
  uint64_t rebuilt = 0;  // units
  bool whole = true;
};

// A range of blocks of one row: what is to be written, by unit; null and empty where nothing is.
struct RepairBatch::Range {
  Range(std::shared_ptr<Row> whose, uint32_t first_block, uint32_t count, int width)
      : row(std::move(whose)),
        first(first_block),
        blocks(count),
        seen(first_block, count, width),
        into(size_t(width), nullptr),
        buffers(size_t(width)),
        sums(size_t(width)) {
    seen.only_look = true;
  }
  std::shared_ptr<Row> row;
  uint32_t first, blocks;
  bool last = false;   // of the row
  bool asked = false;  // what it lacks is on its way
  Survey seen;         // what lies there
  std::vector<std::byte*> into;
  std::vector<Bytes> buffers;
  std::vector<std::shared_ptr<NodeSums::Unit>> sums;
  struct UnitWrite {
    int unit;
    uint64_t bytes;
    Write write;
  };
  std::vector<UnitWrite> units;  // on their way to where they belong
  SlotReads slots;               // of the row, with its last range
  std::vector<Write> slot_writes;
  const RowRecord& record() const { return row->record; }
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
// running job at any moment. Beside one it is left alone, units and records. Where nobody writes, what was not synced goes along as far as it
// verifies. With a record of before in its place, a member that was away would make it another row, and a synced one.
void RepairBatch::mend(uint64_t row, const Manifest* since) {
  auto record = look_.rows.record(row);
  if (!record.ok()) {
    ledger_.lost_rows.insert(row);
    ledger_.records_lost = true;
    ledger_.lacks(MemberSet::first(onto_.count()), fmt::format("what row {} holds is not known", row));
    return;
  }
  if (since && !may_have_changed(*record, *since)) return;
  ledger_.lost_rows.erase(row);
  const bool synced = manifest().is_synced(record->generation);
  if (look_.journals.holds(row)) {
    ledger_.lacks(newcomers(), "a commit of the running job waits to be put in its place; repair again when the job has ended");
  } else if (synced || alone_) {
    if (!record->hole()) return mend_units(*record);
    mend_rest();  // records in their order: what lies between them would be holes
    mend_slots(*record);
  } else {
    distrust_old_slots(*record);
  }
}

void RepairBatch::mend_slots(const RowRecord& record) {
  note_slots(write_slots(record, read_slots(onto_, look_.records, record.row, slot_targets(record.row))));
}

MemberSet RepairBatch::slot_targets(uint64_t row) const { return targets() & look_.records.holders(row); }

std::vector<RepairBatch::Write> RepairBatch::write_slots(const RowRecord& record, const std::vector<Bytes>& slots) {
  const Bytes sound = look_.records.encode(std::span(&record, 1));
  std::vector<Write> writes;
  for (const int member : slot_targets(record.row)) {
    const Bytes& slot = slots[size_t(member)];
    if (slot == sound || (record.generation == 0 && slot.empty())) continue;
    // Beyond the end of what the member has, everything before would become holes there, also the rows of which nothing is known.
    if (slot.empty() && ledger_.records_lost) continue;
    writes.push_back(begin_to_write(member, look_.records.object_name(member), record.row * look_.records.slot_bytes(), sound));
  }
  return writes;
}

void RepairBatch::note_slots(const std::vector<Write>& writes) {
  for (const Write& one : writes) ledger_.report.records_rewritten += end(one).ok();
}

// A member that was away may have a record of before. It is of a row that was cut off since, or that was never synced and whose generation was given
// up since. It must not count again, also where the running job has written the row and dies before its sync; and beside that job it cannot be taken
// away.
void RepairBatch::distrust_old_slots(const RowRecord& record) {
  if (newcomers().none()) return;
  const std::vector<Bytes> slots = read_slots(onto_, look_.records, record.row, newcomers() & look_.records.holders(record.row));
  for (int member = 0; member < onto_.count(); ++member) {
    if (slots[size_t(member)].empty()) continue;
    auto old = layout::decode_record(manifest().geometry, look_.records.key(), record.row, slots[size_t(member)]);
    if (old.ok() && old->generation != 0 && manifest().is_synced(old->generation))
      ledger_.lacks(member, "it holds rows that were given up while it was away; repair again when the job has ended");
  }
}

// Where nodes rebuild it, one range is looked at, the ones before it are on their way here, and those before them to where they belong. Else one
// after another.
void RepairBatch::mend_units(const RowRecord& record) {
  constexpr size_t ranges_at_once = 6;
  constexpr uint64_t bytes_by_nodes =
      512 << 10;  // of a unit: until the first ones are there, and after the last ones are, half of the links are idle
  const layout::Geometry& g = manifest().geometry;
  const uint32_t step = std::max<uint32_t>(1, uint32_t((by_nodes() ? bytes_by_nodes : inspected_bytes) / g.block_bytes));
  const auto row = std::make_shared<Row>(record);
  for (uint32_t block = 0; block < g.blocks_per_unit(); block += step) {
    going_.push_back(std::make_shared<Range>(row, block, std::min(step, g.blocks_per_unit() - block), g.scheme.width()));
    going_.back()->last = block + step >= g.blocks_per_unit();
    look_at(*going_.back());
    if (going_.size() > 1) ask_for(*going_[going_.size() - 2]);
    while (going_.size() >= (by_nodes() ? ranges_at_once : 1)) {
      written_.push_back(std::move(going_.front()));
      going_.pop_front();
      finish(*written_.back());
      end_all_but(by_nodes() ? 2 : 0);
    }
  }
}

void RepairBatch::mend_rest() {
  for (const auto& range : going_) ask_for(*range);
  for (; !going_.empty(); going_.pop_front()) {
    written_.push_back(going_.front());
    finish(*written_.back());
  }
  end_all_but(0);
}

void RepairBatch::end_all_but(size_t count) {
  for (; written_.size() > count; written_.pop_front()) end(*written_.front());
}

void RepairBatch::look_at(Range& range) {
  there_.start_units(range.record(), targets(), range.seen);
  if (range.last && by_nodes()) range.slots = begin_to_read_slots(onto_, look_.records, range.record().row, slot_targets(range.record().row));
}

void RepairBatch::ask_for(Range& range) {
  if (std::exchange(range.asked, true)) return;
  there_.finish_units(range.record(), range.seen);
  if (!find_missing(range)) return;
  take_over(range);
  uint64_t not_whole = 0;
  for (size_t unit = 0; unit < range.into.size(); ++unit) not_whole |= uint64_t(!range.seen.whole(int(unit))) << unit;
  for (size_t unit = 0; unit < range.into.size(); ++unit)
    if (range.into[unit]) range.sums[unit] = sums_.begin(range.record(), range.first, range.blocks, int(unit), not_whole);
}

// All of it is on its way then.
void RepairBatch::finish(Range& range) {
  ask_for(range);
  Row& row = *range.row;
  row.whole &= mend_range(range);
  if (!by_nodes()) return;
  if (range.last) range.slot_writes = write_slots(row.record, slots_of(range.slots));
}

void RepairBatch::end(Range& range) {
  Row& row = *range.row;
  for (const Range::UnitWrite& one : range.units) {
    if (!end(one.write).ok()) continue;
    ledger_.report.bytes_rebuilt += one.bytes;
    if (!(row.rebuilt >> one.unit & 1)) ++ledger_.report.units_rebuilt, ++ledger_.report.per_member_units[size_t(one.write.member)];
    row.rebuilt |= 1ull << one.unit;
  }
  if (!range.last) return;
  if (!row.whole && manifest().is_synced(row.record.generation)) ledger_.lost_rows.insert(row.record.row);
  if (by_nodes()) note_slots(range.slot_writes);
  else mend_slots(row.record);
}

// False where the row is lost.
bool RepairBatch::mend_range(Range& range) {
  const RowRecord& record = range.record();
  take_sums(range);
  bool whole = true;
  if (range.any() && !look_.rows.reconstruct(record, range.first, range.blocks, range.into.data()).ok()) {
    whole = false;
    for (size_t unit = 0; unit < range.into.size(); ++unit) {
      if (!range.into[unit]) continue;
      if (manifest().is_synced(record.generation))
        ledger_.lacks(layout::place(manifest().geometry, record.row, int(unit)).member, "some of its rows cannot be rebuilt");
      range.buffers[unit].clear();
    }
  }
  write_range(range);
  return whole;
}

// The units that are not whole where they belong get a buffer. False where there are none.
bool RepairBatch::find_missing(Range& range) {
  const layout::Geometry& g = manifest().geometry;
  for (int unit = 0; unit < g.scheme.width(); ++unit) {
    const int member = layout::place(g, range.record().row, unit).member;
    const UnitBlocks& read = *range.seen.reads[size_t(unit)];
    if (read.whole() || !targets().has(member)) continue;
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
void RepairBatch::take_over(Range& range) {
  const RowRecord& record = range.record();
  const layout::Geometry& g = manifest().geometry;
  MemberSet sources;
  for (int unit = 0; unit < g.scheme.width(); ++unit) {
    const int member = layout::place(g, record.row, unit).member;
    if (range.into[size_t(unit)] && moved_.has(member) && look_.members.available(member)) sources.add(member);
  }
  if (sources.none()) return;
  const auto reads = look_.rows.read_units(record, range.first, range.blocks, sources);
  for (size_t unit = 0; unit < range.into.size(); ++unit) {
    if (!range.into[unit] || !reads[unit]->whole()) continue;
    const ByteSpan found = reads[unit]->buffer.span();
    std::copy(found.begin(), found.end(), range.buffers[unit].begin());
    range.into[unit] = nullptr;
  }
}

// What nodes have made of the others' units; where they could not, it is rebuilt here.
void RepairBatch::take_sums(Range& range) {
  for (size_t unit = 0; unit < range.into.size(); ++unit)
    if (range.sums[unit] && sums_.finish(range.record(), *range.sums[unit], range.buffers[unit])) range.into[unit] = nullptr;
}

void RepairBatch::write_range(Range& range) {
  const RowRecord& record = range.record();
  const layout::Geometry& g = manifest().geometry;
  const uint64_t at = uint64_t(range.first) * g.block_bytes;
  for (int unit = 0; unit < g.scheme.width(); ++unit) {
    Bytes& buffer = range.buffers[size_t(unit)];
    const uint64_t stored = stored_bytes(g, record, unit, manifest().size);
    if (buffer.empty() || at >= stored) continue;
    buffer.resize(std::min<uint64_t>(buffer.size(), stored - at));
    const uint64_t bytes = buffer.size();
    const layout::UnitPlace place = layout::place(g, record.row, unit);
    range.units.push_back({unit, bytes, begin_to_write(place.member, look_.located.data_name(place.object), place.offset + at, std::move(buffer))});
  }
}

}  // namespace holdfast::engine
