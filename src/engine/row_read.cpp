// Reads of what verifies: from memory in the caller, else through the lanes. What does not verify goes to row_recover.cpp.
#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/row_io.hpp"

namespace holdfast::engine {

using layout::RowRecord;

namespace {
constexpr uint64_t read_chunk_bytes = 256 << 10;  // stays in the second-level cache between read, check and copy
}  // namespace

// What one read wants of one unit.
struct RowIo::UnitRead {
  std::shared_ptr<const RowRecord> record;
  int unit = 0;       // the unit that is read
  int data_unit = 0;  // the data unit that `parts` speak of (for a mirror, `unit` may be another copy)
  UnitSource source;
  struct Part {
    uint64_t offset;  // in the unit
    uint64_t length;
    std::byte* into;
    uint64_t end() const { return offset + length; }
  };
  std::vector<Part> parts;  // ascending
  bool continues(uint64_t row, int other_unit, uint64_t offset) const {
    return record->row == row && unit == other_unit && parts.back().end() <= offset;
  }
  Piece piece_of(const layout::Geometry& g, uint64_t offset, uint64_t length, std::byte* into) const {
    return {record->row, uint64_t(data_unit) * g.unit_bytes + offset, length, into};
  }
};

// All that one read asks of one member. Shared with the lane; once abandoned, a late answer touches nothing.
struct RowIo::MemberRead {
  MemberRead(const layout::Geometry& g, const RowBlocks& b) : geometry(g), blocks(b) {}

  const layout::Geometry geometry;
  const RowBlocks blocks;
  std::vector<UnitRead> units;
  std::mutex mutex;
  bool abandoned = false;
  std::vector<Piece> failed;

  // In the lane.
  Status run(MemberHandle& handle) {
    for (const UnitRead& unit : units) HF_TRY(read_unit(handle, unit));
    return Status();
  }

 private:
  // Blocks [first, last] that parts [begin, end) touch without a gap.
  struct Run {
    uint64_t first, last;
    size_t begin, end;
  };
  uint64_t most_blocks() const { return std::max<uint64_t>(1, read_chunk_bytes / blocks.bytes()); }

  Run run_from(const UnitRead& unit, size_t begin) const {
    const uint64_t c = blocks.bytes();
    Run run{unit.parts[begin].offset / c, unit.parts[begin].offset / c, begin, begin};
    do run.last = std::max(run.last, (unit.parts[run.end++].end() - 1) / c);
    while (run.end < unit.parts.size() && unit.parts[run.end].offset / c <= run.last + 1 && run.last - run.first + 1 < most_blocks());
    return run;
  }

  Status read_unit(MemberHandle& handle, const UnitRead& unit) {
    static auto* const kept = new ThreadBytes;
    Bytes& buffer = kept->get();  // the lane's own
    const uint64_t c = blocks.bytes();
    for (Run run{0, 0, 0, 0}; run.end < unit.parts.size();) {
      run = run_from(unit, run.end);
      for (uint64_t block = run.first; block <= run.last; block += most_blocks()) {
        const uint64_t count = std::min(most_blocks(), run.last - block + 1);
        buffer.resize(most_blocks() * c);
        const ByteSpan chunk(buffer.data(), count * c);
        HF_TRY(fetch(handle, unit, block, chunk));
        for (uint64_t i = 0; i < count; ++i)
          if (!hand_out(unit, run, block + i, chunk.subspan(i * c, c))) return Status();
      }
    }
    return Status();
  }

  Status fetch(MemberHandle& handle, const UnitRead& unit, uint64_t block, ByteSpan chunk) const {
    const uint64_t at = block * blocks.bytes();
    uint64_t bytes = 0;
    if (blocks.any_written(*unit.record, unit.unit, block, chunk.size() / blocks.bytes())) {
      bytes = unit.source.stored(at, chunk.size());
      HF_TRY(handle.read(unit.source.object, unit.source.offset + at, chunk.first(bytes)));
    }
    std::memset(chunk.data() + bytes, 0, chunk.size() - bytes);
    return Status();
  }

  // Checks one block and gives each part its share. False: nobody waits any more.
  bool hand_out(const UnitRead& unit, const Run& run, uint64_t block, ByteSpan content) {
    const bool written = blocks.written(*unit.record, unit.unit, block);
    if (!written) std::memset(content.data(), 0, content.size());
    const bool good = !written || blocks.holds(*unit.record, unit.unit, block, content);
    const uint64_t begin = block * content.size(), end = begin + content.size();
    for (size_t p = run.begin; p < run.end && unit.parts[p].offset < end; ++p) {
      const UnitRead::Part& part = unit.parts[p];
      const uint64_t from = std::max(part.offset, begin), to = std::min(part.end(), end);
      if (from >= to) continue;
      std::lock_guard guard(mutex);
      if (abandoned) return false;
      std::byte* into = part.into + (from - part.offset);
      if (good) std::memcpy(into, content.data() + (from - begin), to - from);
      else failed.push_back(unit.piece_of(geometry, from, to - from, into));
    }
    return true;
  }
};

// Whether one of these units lies on a member that is lost, or that failed its last reads.
bool RowIo::lacks_unit(uint64_t row, int first_unit, int last_unit) const {
  for (int unit = first_unit; unit <= last_unit; ++unit) {
    const int member = member_of(row, unit);
    if (!members_.available(member) || members_.avoid(member)) return true;
  }
  return false;
}

// Reads are spread over the copies of a mirror by row and rank.
int RowIo::pick_copy(uint64_t row) const {
  const int width = geometry_.scheme.width();
  const int first = int((row + uint64_t(rank_)) % uint64_t(width));
  int fallback = first;
  for (int i = 0; i < width; ++i) {
    const int unit = (first + i) % width;
    const int member = member_of(row, unit);
    if (!members_.available(member)) continue;
    if (!members_.avoid(member)) return unit;
    fallback = unit;
  }
  return fallback;
}

Status RowIo::read(std::span<const Piece> pieces) {
  if (pieces.empty()) return Status();
  const uint64_t row_bytes = geometry_.row_bytes();
  sequential_ = pieces[0].row * row_bytes + pieces[0].offset == read_to_ && read_version_ == records_.version();
  read_to_ = pieces.back().row * row_bytes + pieces.back().offset + pieces.back().length;
  read_version_ = records_.version();
  if (pieces.size() == 1 && read_small(pieces[0])) return Status();
  if (sequential_ && pieces.size() == 1 && read_sequentially(pieces[0])) return Status();
  std::vector<Piece> failed;
  HF_TRY(read_once(pieces, failed));
  return recover(failed);
}

// While it lives rows are read as they lie in their places.
class RowIo::WithoutJournals {
 public:
  explicit WithoutJournals(RowIo& rows) : rows_(rows), units_(std::exchange(rows.journal, {})), records_(std::exchange(rows.journal_records, {})) {
    rows_.held_ = rows_.ahead_ = nullptr;
  }
  WithoutJournals(const WithoutJournals&) = delete;
  ~WithoutJournals() {
    rows_.held_ = rows_.ahead_ = nullptr;
    rows_.journal = std::move(units_);
    rows_.journal_records = std::move(records_);
  }

 private:
  RowIo& rows_;
  decltype(rows_.journal) units_;
  decltype(rows_.journal_records) records_;
};

Status RowIo::read_in_place(std::span<const Piece> pieces) {
  const WithoutJournals in_place(*this);
  return read(pieces);
}

Status RowIo::reconstruct_in_place(const layout::RowRecord& record, uint32_t blocks, std::byte* const* into) {
  const WithoutJournals in_place(*this);
  return reconstruct(record, 0, blocks, into, 0);
}

std::vector<std::shared_ptr<RowIo::RangeRead>> RowIo::read_units_in_place(const layout::RowRecord& record, uint32_t first_block, uint32_t blocks,
                                                                          uint64_t members) {
  const WithoutJournals in_place(*this);
  return read_units(record, first_block, blocks, members);
}

// A part of one unit that lies in memory: nothing has to be planned.
bool RowIo::read_small(const Piece& piece) {
  const uint64_t s = geometry_.unit_bytes, in_unit = piece.offset % s;
  if (in_unit + piece.length > s) return false;
  auto record = this->record(piece.row);
  if (!record.ok() || record->hole()) return false;
  if (take_held(piece)) return true;
  if (goes_to_recovery(piece)) return false;
  const int unit = geometry_.scheme.k == 1 ? pick_copy(piece.row) : int(piece.offset / s);
  const UnitSource source = source_of(piece.row, unit);
  return members_.available(source.member) && !members_.avoid(source.member) &&
         read_part_cached(source, *record, unit, in_unit, piece.length, piece.into) == piece.length;
}

Status RowIo::read_once(std::span<const Piece> pieces, std::vector<Piece>& failed) {
  Asked asked(members_.count());
  std::shared_ptr<const RowRecord> record;
  for (const Piece& piece : pieces) {
    if (piece.length == 0) continue;
    if (!record || record->row != piece.row) {
      auto got = this->record(piece.row);
      if (!got.ok()) return got.status();
      record = std::make_shared<const RowRecord>(std::move(*got));
    }
    if (record->hole()) std::memset(piece.into, 0, piece.length);
    else if (take_held(piece)) continue;
    else if (goes_to_recovery(piece)) failed.push_back(piece);
    else plan(piece, record, asked, failed);
  }
  serve_from_cache(asked);
  // What another opener changed since we read the records is no damage: look again before rebuilding anything.
  if (!ask_lanes(asked, failed) || !refresh()) return Status();
  std::vector<Piece> again;
  again.swap(failed);
  auto once = std::move(refresh);
  refresh = [] { return false; };
  Status status = read_once(again, failed);
  refresh = std::move(once);
  return status;
}

// A row of which a wanted unit is out of reach goes to recovery whole: each surviving unit is then read once.
// So does a row that lacks any data unit, for a reader that comes from the row before and will want the rest too.
bool RowIo::goes_to_recovery(const Piece& piece) const {
  if (geometry_.scheme.k == 1) return false;
  const uint64_t s = geometry_.unit_bytes;
  if (last_recovered_ + 1 == piece.row && piece.length * 4 >= s) return lacks_unit(piece.row, 0, geometry_.scheme.k - 1);
  return lacks_unit(piece.row, int(piece.offset / s), int((piece.offset + piece.length - 1) / s));
}

// Parts the piece by units and adds it to what is asked of their members.
void RowIo::plan(const Piece& piece, const std::shared_ptr<const RowRecord>& record, Asked& asked, std::vector<Piece>& failed) {
  const uint64_t s = geometry_.unit_bytes;
  for (uint64_t offset = piece.offset, end = piece.offset + piece.length; offset < end;) {
    const uint64_t length = std::min(end - offset, s - offset % s);
    const int data_unit = int(offset / s);
    const int unit = geometry_.scheme.k == 1 ? pick_copy(piece.row) : data_unit;
    const int member = member_of(piece.row, unit);
    std::byte* into = piece.into + (offset - piece.offset);
    if (!members_.available(member)) {
      failed.push_back({piece.row, offset, length, into});
    } else {
      auto& read = asked[member];
      if (!read) read = std::make_shared<MemberRead>(geometry_, blocks_);
      if (read->units.empty() || !read->units.back().continues(piece.row, unit, offset % s))
        read->units.push_back({record, unit, data_unit, source_of(piece.row, unit), {}});
      read->units.back().parts.push_back({offset % s, length, into});
    }
    offset += length;
  }
}

// Whether anything may fail only because it was changed meanwhile: a block that does not verify, a journal that is gone.
bool RowIo::ask_lanes(Asked& asked, std::vector<Piece>& failed) {
  std::vector<std::pair<int, std::shared_ptr<target::Ticket>>> tickets;
  for (int member = 0; member < members_.count(); ++member)
    if (asked[member])
      tickets.emplace_back(member, members_.submit(member, [read = asked[member]](MemberHandle& handle) { return read->run(handle); }));
  bool mismatch = false;
  for (auto& [member, ticket] : tickets) {
    const Status status = ticket->wait();
    MemberRead& read = *asked[member];
    std::lock_guard guard(read.mutex);
    members_.note_read(member, status.ok() && read.failed.empty(), status.sentence());
    if (status.ok()) {
      mismatch |= !read.failed.empty();
      failed.insert(failed.end(), read.failed.begin(), read.failed.end());
      continue;
    }
    read.abandoned = true;
    if (status.kind() == Kind::timed_out) members_.lose(member, status);
    mismatch |= status.kind() == Kind::not_found;
    for (const UnitRead& unit : read.units)
      for (const auto& part : unit.parts) failed.push_back(unit.piece_of(geometry_, part.offset, part.length, part.into));
  }
  return mismatch;
}

// What is in memory is read here and now, straight to where it is wanted: a hand-over to a lane and back costs more than the
// read. Whatever is not there, or does not verify, is left to the lanes, which alone judge.
void RowIo::serve_from_cache(Asked& asked) {
  for (auto& read : asked) {
    if (!read) continue;
    bool all = true;
    for (UnitRead& unit : read->units) {
      size_t done = 0;
      for (; all && done < unit.parts.size(); done += all) {
        UnitRead::Part& part = unit.parts[done];
        const uint64_t served = read_part_cached(unit.source, *unit.record, unit.unit, part.offset, part.length, part.into);
        part = {part.offset + served, part.length - served, part.into + served};
        all = part.length == 0;
      }
      unit.parts.erase(unit.parts.begin(), unit.parts.begin() + long(done));
    }
    std::erase_if(read->units, [](const UnitRead& unit) { return unit.parts.empty(); });
    if (all) read.reset();
  }
}

// Returns how many bytes, from the first on, were in memory and verify.
uint64_t RowIo::read_part_cached(const UnitSource& source, const RowRecord& record, int unit, uint64_t offset, uint64_t length, std::byte* into) {
  static auto* const kept = new ThreadBytes;
  Bytes& scratch = kept->get();
  const uint64_t c = geometry_.block_bytes, end = offset + length;
  uint64_t at = offset;
  while (at < end) {
    const uint64_t block = at / c, begin = block * c;
    const bool partial = at != begin || end - begin < c;
    const uint64_t count = partial ? 1 : std::min(std::max<uint64_t>(1, read_chunk_bytes / c), (end - begin) / c);
    if (partial) scratch.resize(c);
    const ByteSpan content(partial ? scratch.data() : into + (at - offset), count * c);
    if (!read_blocks_cached(source, record, unit, block, content)) break;
    const uint64_t taken = std::min(end, begin + count * c) - at;
    if (partial) std::memcpy(into + (at - offset), scratch.data() + (at - begin), taken);
    at += taken;
  }
  return at - offset;
}

// Whole blocks; false where not all of them are in memory, or one does not verify.
bool RowIo::read_blocks_cached(const UnitSource& source, const RowRecord& record, int unit, uint64_t block, ByteSpan into) {
  const uint64_t c = geometry_.block_bytes, count = into.size() / c;
  if (!blocks_.any_written(record, unit, block, count)) {
    std::memset(into.data(), 0, into.size());
    return true;
  }
  if (source.stored(block * c, into.size()) < into.size()) return false;
  if (!members_.read_cached(source.member, source.object, source.offset + block * c, into)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    const ByteSpan content = into.subspan(i * c, c);
    if (!blocks_.written(record, unit, block + i)) std::memset(content.data(), 0, c);
    else if (!blocks_.holds(record, unit, block + i, content)) return false;
  }
  return true;
}

}  // namespace holdfast::engine
