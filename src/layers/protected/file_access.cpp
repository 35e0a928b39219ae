#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/meter.hpp"
#include "layers/protected/agreement.hpp"
#include "layers/protected/file.hpp"

namespace holdfast::layers {

namespace {

constexpr uint64_t direct_batch_bytes = 8 << 20;   // full rows that are coded before their writes are waited for
constexpr uint64_t fold_round_bytes = 16 << 20;    // of the file, in one round of folding in

// Calls `each(row, offset in row, length, position in the packed bytes)` for every part of the extents in one row.
template <class Each>
Status for_each_part(std::span<const Extent> extents, uint64_t row_bytes, Each each) {
  uint64_t position = 0;
  for (const Extent& extent : extents) {
    for (uint64_t offset = extent.offset; offset < extent.end();) {
      const uint64_t row = offset / row_bytes, in_row = offset % row_bytes;
      const uint64_t length = std::min(extent.end() - offset, row_bytes - in_row);
      HF_TRY(each(row, in_row, length, position + (offset - extent.offset)));
      offset += length;
    }
    position += extent.length;
  }
  return Status();
}

uint64_t end_of(std::span<const Extent> extents) {
  uint64_t end = 0;
  for (const Extent& extent : extents)
    if (extent.length) end = std::max(end, extent.end());
  return end;
}

RowImage image_of(uint64_t row, const std::byte* bytes, const layout::Geometry& g, uint64_t valid) {
  RowImage image{row, {}, valid};
  for (int u = 0; u < g.scheme.k; ++u) image.data.push_back(bytes + uint64_t(u) * g.unit_bytes);
  return image;
}

}  // namespace

uint64_t File::size() {
  std::lock_guard guard(mutex_);
  return file_end_;
}

// Fresh: no synced data in the row, so that it may be written in place.
bool File::is_fresh(uint64_t row, Status& status) {
  if (row >= located_.manifest.rows) return true;
  auto record = rows_.record(row);
  if (!record.ok()) {
    status = record.status();
    return false;
  }
  return record->generation == 0 || !located_.manifest.is_synced(record->generation);
}

Status File::write_direct(std::span<const RowImage> images) {
  std::vector<CodedRow> coded;
  for (const RowImage& image : images) coded.push_back(rows_.code(image, session_));
  return rows_.write_in_place(coded);
}

Status File::write_pending_row(uint64_t row) {
  Pending::Row* pending = pending_.find(row);
  HF_TRY(pending_.load(*pending));
  const RowImage image = image_of(row, pending->buffer->data(), rows_.geometry(), rows_.geometry().row_bytes());
  HF_TRY(write_direct(std::span(&image, 1)));
  pending_.drop(row);
  return Status();
}

// Full fresh rows go to the members at once, straight from the program's memory; all else becomes pending.
Status File::take(std::span<const Extent> extents, ByteView data) {
  const layout::Geometry& g = rows_.geometry();
  const uint64_t row_bytes = g.row_bytes();
  const size_t batch = std::max<uint64_t>(1, direct_batch_bytes / row_bytes);
  std::vector<RowImage> direct;
  auto flush = [&] {
    Status status = write_direct(direct);
    direct.clear();
    return status;
  };
  HF_TRY(for_each_part(extents, row_bytes, [&](uint64_t row, uint64_t offset, uint64_t length, uint64_t position) {
    Status status;
    const bool fresh = is_fresh(row, status);
    HF_TRY(status);
    if (fresh && length == row_bytes) {
      pending_.drop(row);
      direct.push_back(image_of(row, data.data() + position, g, row_bytes));
      return direct.size() >= batch ? flush() : Status();
    }
    HF_TRY(pending_.add(row, offset, data.data() + position, length));
    if (fresh && pending_.find(row)->covered.covers(0, row_bytes)) return write_pending_row(row);
    return Status();
  }));
  HF_TRY(flush());
  file_end_ = std::max(file_end_, end_of(extents));
  return Status();
}

Status File::write(std::span<const Extent> extents, ByteView data) {
  const LayerTime measured;
  std::lock_guard guard(mutex_);
  if (!access_.write) return Status(Kind::access, located_.manifest.path + ": opened for reading only");
  dirty_ = true;
  if (!atomic_) return take(extents, data);
  auto locks = lock_file(members_, located_);
  if (!locks.ok()) return locks.status();
  HF_TRY(look_again());
  HF_TRY(take(extents, data));
  return commit(*alone_, {.durable = false, .keep_session = true, .locked = true});
}

Status File::read_pieces(std::span<const Extent> extents, ByteSpan into, uint64_t& before_end) {
  std::vector<Piece> pieces;
  std::vector<Piece> overlays;
  before_end = 0;
  bool ended = false;
  HF_TRY(for_each_part(extents, rows_.geometry().row_bytes(), [&](uint64_t row, uint64_t offset, uint64_t length, uint64_t position) {
    const uint64_t at = row * rows_.geometry().row_bytes() + offset;
    const uint64_t there = at < file_end_ ? std::min(length, file_end_ - at) : 0;
    if (!ended) before_end += there;
    ended |= there < length;
    if (there == 0) return Status();
    const Piece piece{row, offset, there, into.data() + position};
    Pending::Row* pending = pending_.find(row);
    if (!pending || !pending->covered.covers(offset, offset + there)) pieces.push_back(piece);
    if (pending) overlays.push_back(piece);
    return Status();
  }));
  HF_TRY(rows_.read(pieces));
  for (const Piece& piece : overlays) HF_TRY(pending_.overlay(piece.row, piece.offset, piece.length, piece.into));
  return Status();
}

Result<uint64_t> File::read(std::span<const Extent> extents, ByteSpan into) {
  const LayerTime measured;
  std::lock_guard guard(mutex_);
  if (!access_.read) return Status(Kind::access, located_.manifest.path + ": opened for writing only");
  uint64_t before_end = 0;
  if (!atomic_) {
    HF_TRY(read_pieces(extents, into, before_end));
    return before_end;
  }
  auto locks = lock_file(members_, located_);
  if (!locks.ok()) return locks.status();
  HF_TRY(look_again());
  HF_TRY(read_pieces(extents, into, before_end));
  return before_end;
}

// A row at its owner: all ranks' pieces over what the row held, coded once.
Status File::fold_row(uint64_t row, std::span<const OutExtent> pieces, uint64_t generation, uint64_t file_end, Journal* journal) {
  const layout::Geometry& g = rows_.geometry();
  const uint64_t row_bytes = g.row_bytes(), begin = row * row_bytes;
  const uint64_t valid = std::min(row_bytes, file_end > begin ? file_end - begin : 0);
  if (valid == 0) return Status();
  Buffer buffer(row_bytes);
  if (!buffer.valid())
    return Status(Kind::internal, fmt::format("no memory for a row of {} bytes of {}", row_bytes, located_.manifest.path));
  Intervals covered;
  for (const OutExtent& piece : pieces) covered.add(piece.offset - begin, piece.offset - begin + piece.length);
  auto before = rows_.record(row);
  if (!before.ok()) return before.status();
  if (!buffer.fresh() && !covered.covers(0, row_bytes)) std::memset(buffer.data(), 0, row_bytes);
  if (!covered.covers(0, valid) && !before->hole()) {
    const Piece old{row, 0, valid, buffer.data()};
    if (current_meter) Meter::add(current_meter->read_modify_writes, 1);
    HF_TRY(rows_.read(std::span(&old, 1)));
  }
  for (const OutExtent& piece : pieces) std::memcpy(buffer.data() + (piece.offset - begin), piece.from, piece.length);
  // A cut (set_size) folds zeros in; nothing beyond the new end may stay.
  if (covered.end() > valid) std::memset(buffer.data() + valid, 0, covered.end() - valid);
  const CodedRow coded = rows_.code(image_of(row, buffer.data(), g, valid), generation);
  const bool fresh = before->generation == 0 || !located_.manifest.is_synced(before->generation);
  if (fresh || !journal) return rows_.write_in_place(std::span(&coded, 1));
  return journal->append(std::span(&coded, 1));
}

// In rounds of rows that all ranks agree on: what is parked comes back into memory a round at a time, and all ranks'
// pieces of a row meet in one round.
Status File::fold_pending(exchange::Exchange& ranks, bool fresh_rows_only, std::vector<OutExtent> more, uint64_t generation,
                          uint64_t file_end, Journal* journal) {
  const uint64_t row_bytes = rows_.geometry().row_bytes(), rows_in_round = std::max<uint64_t>(1, fold_round_bytes / row_bytes);
  std::sort(more.begin(), more.end(), [](const OutExtent& a, const OutExtent& b) { return a.offset < b.offset; });
  Status status;
  std::vector<uint64_t> going;
  for (auto& [row, pending] : pending_.rows())
    if (!fresh_rows_only || is_fresh(row, status)) going.push_back(row);
  size_t next_more = 0, next_going = 0;
  for (;;) {
    int64_t first = std::numeric_limits<int64_t>::max();
    if (next_more < more.size()) first = int64_t(more[next_more].offset / row_bytes);
    if (next_going < going.size()) first = std::min(first, int64_t(going[next_going]));
    first = -ranks.all_max({-first})[0];
    if (first == std::numeric_limits<int64_t>::max()) break;
    const uint64_t end = uint64_t(first) + rows_in_round;
    std::vector<OutExtent> out;
    const size_t round_begin = next_going;
    for (; next_going < going.size() && going[next_going] < end; ++next_going) {
      const uint64_t row = going[next_going];
      Pending::Row& pending = *pending_.find(row);
      if (Status loaded = pending_.load(pending); !loaded.ok()) {
        if (status.ok()) status = loaded;
        continue;
      }
      for (const Pending::Piece& piece : pending.pieces)
        out.push_back({row * row_bytes + piece.begin, piece.end - piece.begin, pending.buffer->data() + piece.begin, piece.time_ns});
    }
    for (; next_more < more.size() && more[next_more].offset / row_bytes < end; ++next_more) out.push_back(more[next_more]);
    Status folded = exchange_rows(ranks, settings_.cb_nodes, rows_.geometry(), std::move(out), [&](uint64_t row, std::span<const OutExtent> pieces) {
      return fold_row(row, pieces, generation, file_end, journal);
    });
    if (status.ok()) status = folded;
    // What failed stays pending: the program may still read it, and a later sync may find the targets back.
    for (size_t i = round_begin; i < next_going && status.ok(); ++i) pending_.drop(going[i]);
  }
  return status;
}

Status File::write_all(std::span<const Extent> extents, ByteView data, bool& more) {
  const LayerTime measured;
  std::lock_guard guard(mutex_);
  const bool mine_goes_on = std::exchange(more, false);
  if (!access_.write) return Status(Kind::access, located_.manifest.path + ": opened for reading only");
  if (atomic_) {
    Status status;
    auto locks = lock_file(members_, located_);
    status = locks.ok() ? look_again() : locks.status();
    if (status.ok()) status = take(extents, data);
    if (status.ok()) status = commit(*alone_, {.durable = false, .keep_session = true, .locked = true});
    if (locks.ok()) locks->clear();
    more = ranks_.all_max({mine_goes_on})[0] != 0;
    return agree(ranks_, members_, status);
  }
  dirty_ = true;
  const uint64_t row_bytes = rows_.geometry().row_bytes();
  std::vector<OutExtent> out;
  const uint64_t now = now_ns();
  // Rows that one rank writes whole need no exchange, unless only some ranks are to write; parts of fresh rows go to their owners now;
  // parts of rows that hold synced data stay pending until sync, where the journal is.
  const bool some_write = settings_.cb_nodes > 0 && settings_.cb_nodes < ranks_.size();
  // Parts of one rank's own that follow each other in `data` are taken together, so that rows are written in batches.
  std::vector<Extent> own;
  uint64_t own_begin = 0, own_bytes = 0;
  auto take_own = [&] {
    Status status = take(own, data.subspan(own_begin, own_bytes));
    own.clear();
    return status;
  };
  Status status = for_each_part(extents, row_bytes, [&](uint64_t row, uint64_t offset, uint64_t length, uint64_t position) {
    Status why;
    const bool fresh = is_fresh(row, why);
    HF_TRY(why);
    const Extent part{row * row_bytes + offset, length};
    if ((some_write || length != row_bytes) && fresh && !pending_.find(row)) {
      out.push_back({part.offset, length, data.data() + position, now});
      return own.empty() ? Status() : take_own();
    }
    if (own.empty()) own_begin = position, own_bytes = 0;
    own_bytes += length;
    own.push_back(part);
    return Status();
  });
  if (status.ok() && !own.empty()) status = take_own();
  file_end_ = std::max(file_end_, end_of(extents));
  const std::vector<int64_t> facts =
      ranks_.all_max({int64_t(file_end_), !out.empty() || !pending_.empty(), !status.ok(), mine_goes_on});
  more = facts[3] != 0;
  file_end_ = uint64_t(facts[0]);
  if (facts[1] && !facts[2]) {
    Status folded = fold_pending(ranks_, true, std::move(out), session_, file_end_, nullptr);
    if (status.ok()) status = folded;
    records_.forget_all();  // other ranks have rewritten rows that this one may remember
  }
  return facts[1] || facts[2] ? agree(ranks_, members_, status) : status;
}

Result<uint64_t> File::read_all(std::span<const Extent> extents, ByteSpan into) {
  const LayerTime measured;
  Result<uint64_t> mine = read(extents, into);
  ranks_.barrier();
  return mine;
}

Status File::look_again() {
  auto reading = read_manifest(members_, located_, settings_);
  if (!reading.ok()) return reading.status();
  lose_stale_members(members_, *reading);
  if (reading->manifest.epoch != located_.manifest.epoch) {
    located_.manifest = std::move(reading->manifest);
    file_end_ = atomic_ ? located_.manifest.size : std::max(file_end_, located_.manifest.size);
    use_journals();
  }
  records_.forget_all();
  return Status();
}

void File::use_journals() {
  rows_.journal.clear();
  rows_.journal_records.clear();
  for (const std::string& name : located_.manifest.journals) overlay_journal(members_, records_, located_, name, rows_);
}

std::vector<int> File::lost_members() const {
  std::vector<int> lost;
  for (int member = 0; member < members_.count(); ++member)
    if (!members_.available(member)) lost.push_back(member);
  return lost;
}

}  // namespace holdfast::layers
