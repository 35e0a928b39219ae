#include "engine/held_rows.hpp"

#include <cstring>

namespace holdfast::engine {

using layout::RowRecord;

namespace {
constexpr uint64_t most_held_row_bytes = 16 << 20;
constexpr uint64_t most_ahead_row_bytes = 8 << 20;  // with two rows in memory
}  // namespace

struct HeldRows::Row {
  Row(const RowRecord& r, uint64_t v, const layout::Geometry& g)
      : record(r), version(v), seen(0, g.blocks_per_unit(), g.scheme.width()), units(g.scheme.k, nullptr) {}
  const RowRecord record;
  const uint64_t version;
  Survey seen;
  std::unique_ptr<Buffer> rebuilt;
  std::vector<const std::byte*> units;  // data units, whole; null where not held
  bool is(uint64_t row, uint64_t now) const { return record.row == row && version == now; }
};

HeldRows::HeldRows(Members& members, RecordStore& records, const catalog::Located& located, RowSources& sources, RowRebuilder& rebuilder)
    : members_(members), records_(records), located_(located), sources_(sources), rebuilder_(rebuilder) {}

bool HeldRows::may_hold() const { return sources_.geometry().row_bytes() <= most_held_row_bytes; }

bool HeldRows::take(const RowRange& range) const {
  if (!held_ || !held_->is(range.row, records_.version())) return false;
  const uint64_t s = sources_.geometry().unit_bytes, end = range.offset + range.length;
  for (uint64_t unit = range.offset / s; unit * s < end; ++unit)
    if (!held_->units[unit]) return false;
  for (uint64_t offset = range.offset; offset < end;) {
    const uint64_t length = std::min(end - offset, s - offset % s);
    std::memcpy(range.into + (offset - range.offset), held_->units[offset / s] + offset % s, length);
    offset += length;
  }
  return true;
}

bool HeldRows::read_sequentially(const RowRange& range) {
  if (!serves_steps_of(range)) return false;
  if (take(range)) return true;
  auto record = sources_.record(range.row);
  if (!record.ok() || record->hole()) return false;
  const bool under_way = ahead_ && ahead_->is(range.row, records_.version());
  if (!under_way && lies_in_memory(*record, range)) return false;
  held_ = nullptr;
  const auto row = row_under_way(*record);
  start_ahead(range.row + 1);
  // What fails where all should be whole may have been changed meanwhile: the common way looks again before it rebuilds.
  if (!finish_row(*row, sources_.lacks_unit(range.row, 0, sources_.geometry().scheme.k - 1)).ok()) return false;
  held_ = row;
  return take(range);
}

// Whether the first bytes can be had at once: then reading ahead would only copy twice.
bool HeldRows::lies_in_memory(const RowRecord& record, const RowRange& range) const {
  const std::vector<int> order = order_for(record.row, 1ull << range.offset / sources_.geometry().unit_bytes);
  if (order.empty()) return false;
  const UnitSource source = sources_.of(record.row, order.front());
  std::byte probe;
  return members_.read_cached(source.member, source.object, source.offset + range.offset % sources_.geometry().unit_bytes, {&probe, 1});
}

// The units to read for these data units, the best first: for a mirror any copy will do.
std::vector<int> HeldRows::order_for(uint64_t row, uint64_t data_units) const {
  return sources_.reading_order(row, sources_.geometry().scheme.k == 1 ? 1ull << sources_.pick_copy(row) : data_units);
}

std::shared_ptr<HeldRows::Row> HeldRows::start_row(const RowRecord& record) {
  auto row = std::make_shared<Row>(record, records_.version(), sources_.geometry());
  const int k = sources_.geometry().scheme.k;
  const std::vector<int> order = order_for(record.row, (1ull << k) - 1);
  for (size_t i = 0; i < std::min(order.size(), size_t(k)); ++i) rebuilder_.start(record, order[i], row->seen);
  return row;
}

std::shared_ptr<HeldRows::Row> HeldRows::row_under_way(const RowRecord& record) {
  std::shared_ptr<Row> row = std::move(ahead_);
  ahead_ = nullptr;
  return row && row->is(record.row, records_.version()) ? row : start_row(record);
}

void HeldRows::start_ahead(uint64_t row) {
  if (sources_.geometry().row_bytes() > most_ahead_row_bytes || row >= located_.manifest.rows) return;
  if (ahead_ && ahead_->is(row, records_.version())) return;
  auto record = sources_.record(row);
  if (record.ok() && !record->hole() && !lies_in_memory(*record, {row, 0, 1, nullptr})) ahead_ = start_row(*record);
}

// Waits for the row's units. With `rebuild` those that lack are decoded; without, lacking any is a failure.
Status HeldRows::finish_row(Row& row, bool rebuild) {
  const int k = sources_.geometry().scheme.k, width = sources_.geometry().scheme.width();
  uint64_t asked = 0;
  for (int unit = 0; unit < width; ++unit)
    if (row.seen.tickets[unit]) rebuilder_.finish(row.record, unit, row.seen), asked |= 1ull << unit;
  if (rebuild && !row.seen.suffices(k)) rebuilder_.survey(row.record, sources_.reading_order(row.record.row, 0, asked), row.seen);
  std::vector<int> lacking;
  for (int data = 0; data < k; ++data) {
    for (int unit = data; unit < (k == 1 ? width : data + 1) && !row.units[data]; ++unit)
      if (row.seen.whole(unit)) row.units[data] = row.seen.reads[unit]->buffer.data();
    if (!row.units[data]) lacking.push_back(data);
  }
  if (lacking.empty()) return Status();
  if (!rebuild) return lost_row(members_, located_.manifest, row.record.row);
  row.rebuilt = std::make_unique<Buffer>(lacking.size() * sources_.geometry().unit_bytes);
  std::vector<std::byte*> into(width, nullptr);
  for (size_t i = 0; i < lacking.size(); ++i) into[lacking[i]] = row.rebuilt->data() + i * sources_.geometry().unit_bytes;
  HF_TRY(rebuilder_.rebuild(row.record, row.seen, into.data()));
  for (int data : lacking) row.units[data] = into[data];
  for (int unit = k; unit < width; ++unit) row.seen.reads[unit] = nullptr;
  return Status();
}

bool HeldRows::hold_from_memory(const RowRecord& record, std::span<const RowRange> ranges) {
  const uint64_t s = sources_.geometry().unit_bytes;
  held_ = nullptr;
  auto row = std::make_shared<Row>(record, records_.version(), sources_.geometry());
  std::vector<std::byte*> into(sources_.geometry().scheme.width(), nullptr);
  uint64_t direct = 0;
  for (const RowRange& range : ranges)
    for (uint64_t unit = divide_up(range.offset, s); (unit + 1) * s <= range.offset + range.length; ++unit) {
      into[unit] = range.into + (unit * s - range.offset);
      direct |= 1ull << unit;
    }
  const int k = sources_.geometry().scheme.k, others = k - __builtin_popcountll(direct);
  if (others) row->rebuilt = std::make_unique<Buffer>(uint64_t(others) * s);
  for (int unit = 0, next = 0; unit < k; ++unit)
    if (!(direct >> unit & 1)) row->units[unit] = into[unit] = row->rebuilt->data() + uint64_t(next++) * s;
  if (rebuilder_.rebuild_cached(record, row->seen.first_block, row->seen.blocks, into.data()) < row->seen.blocks) return false;
  held_ = row;
  for (const RowRange& range : ranges) copy_columns(range, s, 0, s, into);
  return true;
}

Status HeldRows::hold_from_lanes(const RowRecord& record, std::span<const RowRange> ranges, uint64_t next_row) {
  held_ = nullptr;
  const auto row = row_under_way(record);
  start_ahead(next_row);
  HF_TRY(finish_row(*row, true));
  held_ = row;
  for (const RowRange& range : ranges) (void)take(range);
  return Status();
}

}  // namespace holdfast::engine
