// Independent reads and writes.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "base/meter.hpp"
#include "engine/file.hpp"
#include "engine/object_limit.hpp"
#include "engine/parts.hpp"

namespace holdfast::engine {

namespace {
constexpr size_t most_waiting_journals = 32;
constexpr uint64_t direct_batch_bytes = 8 << 20;  // full rows that are coded before their writes are waited for
}  // namespace

Result<uint64_t> File::size() {
  {
    std::shared_lock beside(mutex_);
    if (!atomic_) return file_end_;
  }
  std::lock_guard guard(mutex_);
  if (atomic_) HF_TRY(adopt_commits());  // a write of another rank that has returned counts
  return file_end_;
}

// Before anything of it is kept: a commit could not tell it from a failure of the targets.
Status File::check_held(uint64_t end) {
  const layout::Geometry& g = reader_.geometry();
  if (end <= always_held_bytes(g)) return Status();
  if (object_limit_ == 0) object_limit_ = largest_object_bytes(members_, located_);
  if (fits(g, end, object_limit_)) return Status();
  return Status(Kind::invalid,
                fmt::format("{}: its targets cannot hold {} bytes: they take objects of at most {} bytes", located_.manifest.path, end,
                            object_limit_),
                EFBIG);
}

// Whole rows go to their place outside the file's lock only where this opener is the lone one, and only where nothing synced lies there. A
// generation that this process has never heard of is somebody's commit.
bool File::may_write_in_place(uint64_t row, Status& status, bool looked_again) {
  if (!lone() || atomic_ || commit_failed_) return false;
  if (located_.manifest.cut_to) return false;  // what was synced behind it counts again if too few targets know of the cut
  if (journals_.holds(row)) return false;
  if (row >= located_.manifest.rows) return true;
  auto record = reader_.record(row);
  if (!record.ok()) {
    if (!looked_again && look_again()) return may_write_in_place(row, status, true);  // another opener may have cut it off
    status = record.status();
    return false;
  }
  const layout::Manifest& known = located_.manifest;
  return record->generation == 0 || (record->generation < known.next_generation && !known.is_synced(record->generation));
}

Status File::write_direct(std::span<const RowImage> images) {
  std::vector<CodedRow> coded;
  for (const RowImage& image : images) coded.push_back(writer_.code(image, session_));
  HF_TRY(writer_.write_in_place(coded));
  for (const RowImage& image : images) {
    pending_.drop(image.row);
    direct_.add(image.row, now_ns());
    rows_told_ = false;
  }
  return Status();
}

Status File::write_pending_row(uint64_t row) {
  std::unique_ptr<Buffer> room;
  auto bytes = pending_.bytes_of(*pending_.find(row), room);
  if (!bytes.ok()) return bytes.status();
  const RowImage image = image_of(row, *bytes, reader_.geometry(), reader_.geometry().row_bytes());
  return write_direct(std::span(&image, 1));
}

void File::reaches(uint64_t end) {
  own_end_ = std::max(own_end_, end);
  file_end_ = std::max(file_end_, end);
}

// Whole rows that may be written in place go to the members at once, straight from the program's memory; all else becomes pending.
Status File::take(std::span<const Extent> extents, ByteView data) {
  if (!journals_.unread().ok()) use_journals();
  const layout::Geometry& g = reader_.geometry();
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
    const bool in_place = may_write_in_place(row, status);
    HF_TRY(status);
    if (in_place && length == row_bytes) {
      direct.push_back(image_of(row, data.data() + position, g, row_bytes));
      return direct.size() >= batch ? flush() : Status();
    }
    HF_TRY(pending_.add(row, offset, data.data() + position, length));
    if (in_place && pending_.find(row)->covered.covers(0, row_bytes)) return write_pending_row(row);
    return Status();
  }));
  HF_TRY(flush());
  reaches(end_of(extents));
  return Status();
}

// Each write in atomic mode leaves a journal until the next sync; not more than so many.
Status File::fold_many_journals() {
  layout::Manifest manifest = located_.manifest;
  if (manifest.journals.size() <= most_waiting_journals || (manifest.lone != 0 && !lone())) return Status();
  HF_TRY(finish_commits(manifest));
  HF_TRY(write_manifest(members_, located_, manifest, true));
  for (const std::string& name : located_.manifest.journals) remove_journal(members_, located_, name);
  located_.manifest = std::move(manifest);
  forget_rows();
  use_journals();
  return Status();
}

// Under the file's lock, and committed before it goes.
Status File::write_atomic(std::span<const Extent> extents, ByteView data) {
  auto locks = lock_and_look();
  if (!locks.ok()) return locks.status();
  HF_TRY(take(extents, data));
  HF_TRY(commit(*alone_, {.durable = false, .keep_session = true, .locked = true}));
  return fold_many_journals();
}

Status File::write(std::span<const Extent> extents, ByteView data) {
  const LayerTime measured;
  std::lock_guard guard(mutex_);
  if (!access_.write) return Status(Kind::access, located_.manifest.path + ": opened for reading only");
  HF_TRY(check_held(end_of(extents)));
  dirty_ = true;
  return atomic_ ? write_atomic(extents, data) : take(extents, data);
}

// Whose bytes are read of a row of which another opener has committed parts. What this opener, the lone one until now, has written there is its own
// until the next commit merges the two.
File::RowOrigin File::origin_of(uint64_t row) {
  if (!journals_.holds(row)) return RowOrigin::as_committed;
  auto record = records_.get(row);
  // The time may be that of the rows on either side of it (DirectRows).
  if (record.ok() && record->generation != session_) return RowOrigin::as_committed;
  const uint64_t written = direct_.time_of(row);
  const Intervals vouched = journals_.vouched_since(row, written);
  if (vouched.ranges().empty()) return RowOrigin::in_place;
  if (vouched.covers(0, reader_.geometry().row_bytes())) return RowOrigin::as_committed;
  return written != 0 || (access_.write && record.ok()) ? RowOrigin::parts_over_own : RowOrigin::as_committed;
}

// What the journal vouches for, over the row as it lies. Where another rank is writing that at this moment, the journal's row is enough.
Status File::read_parts_over_own(const RowRange& piece) {
  const Intervals vouched = journals_.vouched_since(piece.row, direct_.time_of(piece.row));  // a read may come to know other journals
  if (const Status status = reader_.read_in_place(std::span(&piece, 1)); !status.ok())
    return direct_.time_of(piece.row) ? status : reader_.read(std::span(&piece, 1));
  std::vector<RowRange> parts;
  for (const auto& [from, to] : vouched.ranges()) {
    const uint64_t begin = std::max<uint64_t>(from, piece.offset), end = std::min<uint64_t>(to, piece.offset + piece.length);
    if (begin < end) parts.push_back({piece.row, begin, end - begin, piece.into + (begin - piece.offset)});
  }
  return reader_.read(parts);
}

// The journals may come to be known in the middle of a read.
Status File::read_rows(std::span<const RowRange> pieces) {
  for (;;) {
    const std::vector<std::string> known = journals_.known();
    std::vector<RowRange> in_place, as_committed;
    for (const RowRange& piece : pieces) {
      switch (origin_of(piece.row)) {
        case RowOrigin::in_place: in_place.push_back(piece); break;
        case RowOrigin::as_committed: as_committed.push_back(piece); break;
        case RowOrigin::parts_over_own: HF_TRY(read_parts_over_own(piece)); break;
      }
    }
    HF_TRY(reader_.read(as_committed));
    if (!in_place.empty()) HF_TRY(reader_.read_in_place(in_place));
    if (!access_.write || journals_.known() == known) return Status();
  }
}

// What one read is about.
struct File::Reading {
  std::vector<RowRange> ranges;    // that the rows have to give
  std::vector<RowRange> overlays;  // of which this rank has something pending
  uint64_t before_end = 0;         // of the bytes that are asked for, those before the end of the file
};

File::Reading File::look_up(std::span<const Extent> extents, ByteSpan into) {
  const uint64_t row_bytes = reader_.geometry().row_bytes();
  Reading reading;
  bool ended = false;
  (void)for_each_part(extents, row_bytes, [&](uint64_t row, uint64_t offset, uint64_t length, uint64_t position) {
    const uint64_t at = row * row_bytes + offset;
    const uint64_t there = at < file_end_ ? std::min(length, file_end_ - at) : 0;
    if (!ended) reading.before_end += there;
    ended |= there < length;
    if (there == 0) return Status();
    const RowRange range{row, offset, there, into.data() + position};
    const Pending::Row* pending = pending_.find(row);
    if (!pending || !pending->covered.covers(offset, offset + there)) reading.ranges.push_back(range);
    if (pending) reading.overlays.push_back(range);
    return Status();
  });
  return reading;
}

Status File::lay_pending_over(const Reading& reading) {
  for (const RowRange& range : reading.overlays) HF_TRY(pending_.overlay(range.row, range.offset, range.length, range.into));
  return Status();
}

// Another opener may have cut the file since its end was read. Then rows behind the new end have no record any more, or read as zeros.
Status File::read_pieces(std::span<const Extent> extents, ByteSpan into, uint64_t& before_end) {
  for (bool looked_again = false;; looked_again = true) {
    if (!journals_.unread().ok()) use_journals();
    const uint64_t end = file_end_;
    const Reading reading = look_up(extents, into);
    before_end = reading.before_end;
    const Status status = read_rows(reading.ranges);
    if (status.kind() == Kind::lost && !looked_again && look_again()) continue;
    if (file_end_ != end) continue;
    HF_TRY(status);
    return lay_pending_over(reading);
  }
}

// Rows that no journal holds and whose records are known, with nothing over them that is parked on targets.
bool File::may_begin_beside(const Reading& reading) {
  const auto in_journal = [&](const RowRange& range) { return journals_.holds(range.row); };
  const auto parked = [&](const RowRange& range) { return !pending_.find(range.row)->parked.empty(); };
  return !atomic_ && reader_.may_begin_beside(reading.ranges) && std::none_of(reading.ranges.begin(), reading.ranges.end(), in_journal) &&
         std::none_of(reading.overlays.begin(), reading.overlays.end(), parked);
}

// Alone, and nothing has changed since the beginning. The journals may come to be known in the middle.
Status File::finish(Reading& reading, RowReader::Begun& begun) {
  const std::vector<std::string> known = journals_.known();
  HF_TRY(reader_.finish(reading.ranges, begun));
  if (access_.write && journals_.known() != known) HF_TRY(read_rows(reading.ranges));
  return lay_pending_over(reading);
}

// As far as nothing that is remembered changes a read goes on beside others. What is left of it goes on alone.
Result<uint64_t> File::read(std::span<const Extent> extents, ByteSpan into) {
  const LayerTime measured;
  Reading reading;
  RowReader::Begun begun;
  std::optional<uint64_t> turn;  // whose the beginning is
  {
    std::shared_lock beside(mutex_);
    if (!access_.read) return Status(Kind::access, located_.manifest.path + ": opened for writing only");
    reading = look_up(extents, into);
    if (may_begin_beside(reading)) {
      turn = mutex_.taken();
      HF_TRY(reader_.begin(reading.ranges, begun));
      if (begun.stage == RowReader::Begun::Stage::done) {
        HF_TRY(lay_pending_over(reading));
        return reading.before_end;
      }
    }
  }
  std::lock_guard alone(mutex_);
  if (const uint64_t end = file_end_; turn && mutex_.taken() == *turn + 1) {
    HF_TRY(finish(reading, begun));
    if (file_end_ == end) return reading.before_end;
  }
  uint64_t before_end = 0;
  if (!atomic_) {
    HF_TRY(read_pieces(extents, into, before_end));
    return before_end;
  }
  auto locks = lock_and_look();
  if (!locks.ok()) return locks.status();
  HF_TRY(read_pieces(extents, into, before_end));
  return before_end;
}

}  // namespace holdfast::engine
