// Rows in memory: one that was read or rebuilt whole and from which the next reads are served, and for a reader that goes
// through slow targets in order the row after it, on its way. Two rows and what one of them lacked, never more.
#include <cstring>

#include "engine/row_survey.hpp"

namespace holdfast::engine {

using layout::RowRecord;

namespace {
constexpr uint64_t most_held_row_bytes = 16 << 20;
constexpr uint64_t most_ahead_row_bytes = 8 << 20;  // with two rows in memory
}  // namespace

struct RowIo::HeldRow {
  HeldRow(const RowRecord& r, uint64_t v, const layout::Geometry& g)
      : record(r), version(v), seen(0, g.blocks_per_unit(), g.scheme.width()), units(g.scheme.k, nullptr) {}
  const RowRecord record;
  const uint64_t version;
  Survey seen;
  std::unique_ptr<Buffer> rebuilt;
  std::vector<const std::byte*> units;  // data units, whole; null where not held
  bool is(uint64_t row, uint64_t now) const { return record.row == row && version == now; }
};

bool RowIo::may_hold() const { return geometry_.row_bytes() <= most_held_row_bytes; }

bool RowIo::take_held(const Piece& piece) {
  if (!held_ || !held_->is(piece.row, records_.version())) return false;
  const uint64_t s = geometry_.unit_bytes, end = piece.offset + piece.length;
  for (uint64_t unit = piece.offset / s; unit * s < end; ++unit)
    if (!held_->units[unit]) return false;
  for (uint64_t offset = piece.offset; offset < end;) {
    const uint64_t length = std::min(end - offset, s - offset % s);
    std::memcpy(piece.into + (offset - piece.offset), held_->units[offset / s] + offset % s, length);
    offset += length;
  }
  return true;
}

// A reader that goes on where it stopped, in small steps, from targets that are slow to answer: each row is read once, from
// all its targets side by side, and while the steps are served from it the next one is on its way. False: nothing was read.
bool RowIo::read_sequentially(const Piece& piece) {
  if (piece.length * 2 > geometry_.row_bytes() || !may_hold()) return false;
  if (take_held(piece)) return true;
  auto record = this->record(piece.row);
  if (!record.ok() || record->hole()) return false;
  const bool under_way = ahead_ && ahead_->is(piece.row, records_.version());
  if (!under_way && lies_in_memory(*record, piece)) return false;
  held_ = nullptr;
  const auto row = row_under_way(*record);
  start_ahead(piece.row + 1);
  // What fails where all should be whole may have been changed meanwhile: the common way looks again before it rebuilds.
  if (!finish_row(*row, lacks_unit(piece.row, 0, geometry_.scheme.k - 1)).ok()) return false;
  held_ = row;
  return take_held(piece);
}

// Whether the first bytes can be had at once: then reading ahead would only copy twice.
bool RowIo::lies_in_memory(const RowRecord& record, const Piece& piece) {
  const std::vector<int> order = sources_of(record.row, 1ull << piece.offset / geometry_.unit_bytes);
  if (order.empty()) return false;
  const UnitSource source = source_of(record.row, order.front());
  std::byte probe;
  return members_.read_cached(source.member, source.object, source.offset + piece.offset % geometry_.unit_bytes, {&probe, 1});
}

// The units to read for these data units, the best first: for a mirror any copy will do.
std::vector<int> RowIo::sources_of(uint64_t row, uint64_t data_units) const {
  return reading_order(row, geometry_.scheme.k == 1 ? 1ull << pick_copy(row) : data_units, 0);
}

std::shared_ptr<RowIo::HeldRow> RowIo::start_row(const RowRecord& record) {
  auto row = std::make_shared<HeldRow>(record, records_.version(), geometry_);
  const int k = geometry_.scheme.k;
  const std::vector<int> order = sources_of(record.row, (1ull << k) - 1);
  for (size_t i = 0; i < std::min(order.size(), size_t(k)); ++i) start_range(record, order[i], row->seen);
  return row;
}

std::shared_ptr<RowIo::HeldRow> RowIo::row_under_way(const RowRecord& record) {
  std::shared_ptr<HeldRow> row = std::move(ahead_);
  ahead_ = nullptr;
  return row && row->is(record.row, records_.version()) ? row : start_row(record);
}

void RowIo::start_ahead(uint64_t row) {
  if (geometry_.row_bytes() > most_ahead_row_bytes || row >= located_.manifest.rows) return;
  if (ahead_ && ahead_->is(row, records_.version())) return;
  auto record = this->record(row);
  if (record.ok() && !record->hole() && !lies_in_memory(*record, {row, 0, 1, nullptr})) ahead_ = start_row(*record);
}

// Waits for the row's units. With `rebuild` those that lack are decoded; without, lacking any is a failure.
Status RowIo::finish_row(HeldRow& row, bool rebuild) {
  const int k = geometry_.scheme.k, width = geometry_.scheme.width();
  uint64_t asked = 0;
  for (int unit = 0; unit < width; ++unit)
    if (row.seen.tickets[unit]) finish_range(row.record, unit, row.seen), asked |= 1ull << unit;
  if (rebuild && !row.seen.suffices(k)) survey(row.record, reading_order(row.record.row, 0, asked), row.seen);
  std::vector<int> lacking;
  for (int data = 0; data < k; ++data) {
    for (int unit = data; unit < (k == 1 ? width : data + 1) && !row.units[data]; ++unit)
      if (row.seen.whole(unit)) row.units[data] = row.seen.reads[unit]->buffer.data();
    if (!row.units[data]) lacking.push_back(data);
  }
  if (lacking.empty()) return Status();
  if (!rebuild) return lost_row(row.record.row);
  row.rebuilt = std::make_unique<Buffer>(lacking.size() * geometry_.unit_bytes);
  std::vector<std::byte*> into(width, nullptr);
  for (size_t i = 0; i < lacking.size(); ++i) into[lacking[i]] = row.rebuilt->data() + i * geometry_.unit_bytes;
  HF_TRY(rebuild_all(row.record, row.seen, into.data()));
  for (int data : lacking) row.units[data] = into[data];
  for (int unit = k; unit < width; ++unit) row.seen.reads[unit] = nullptr;
  return Status();
}

// A row that has to be rebuilt and whose other units are in memory. Units that a piece wants whole go straight to it; the
// others are held for the reads that follow.
bool RowIo::hold_from_memory(const RowRecord& record, std::span<const Piece> pieces) {
  const uint64_t s = geometry_.unit_bytes;
  held_ = nullptr;
  auto row = std::make_shared<HeldRow>(record, records_.version(), geometry_);
  std::vector<std::byte*> into(geometry_.scheme.width(), nullptr);
  uint64_t direct = 0;
  for (const Piece& piece : pieces)
    for (uint64_t unit = divide_up(piece.offset, s); (unit + 1) * s <= piece.offset + piece.length; ++unit) {
      into[unit] = piece.into + (unit * s - piece.offset);
      direct |= 1ull << unit;
    }
  const int k = geometry_.scheme.k, others = k - __builtin_popcountll(direct);
  if (others) row->rebuilt = std::make_unique<Buffer>(uint64_t(others) * s);
  for (int unit = 0, next = 0; unit < k; ++unit)
    if (!(direct >> unit & 1)) row->units[unit] = into[unit] = row->rebuilt->data() + uint64_t(next++) * s;
  if (rebuild_cached(record, row->seen.first_block, row->seen.blocks, into.data(), 0) < row->seen.blocks) return false;
  held_ = row;
  for (const Piece& piece : pieces) copy_columns(piece, 0, s, into);
  return true;
}

Status RowIo::hold_from_lanes(const RowRecord& record, std::span<const Piece> pieces, uint64_t next_row) {
  held_ = nullptr;
  const auto row = row_under_way(record);
  start_ahead(next_row);
  HF_TRY(finish_row(*row, true));
  held_ = row;
  for (const Piece& piece : pieces) (void)take_held(piece);
  return Status();
}

}  // namespace holdfast::engine
