// Reads of what verifies: from memory in the caller, else through the lanes. What does not verify goes to row_recover.cpp.
#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/row_reader.hpp"

namespace holdfast::engine {

using layout::RowRecord;

namespace {
constexpr uint64_t read_chunk_bytes = 256 << 10;  // stays in the second-level cache between read, check and copy
}  // namespace

// What one read wants of one unit.
struct RowReader::UnitRead {
  std::shared_ptr<const RowRecord> record;
  int unit = 0;       // the unit that is read
  int data_unit = 0;  // the data unit that `ranges` speak of (for a mirror, `unit` may be another copy)
  UnitSource source;
  struct Range {
    uint64_t offset;  // in the unit
    uint64_t length;
    std::byte* into;
    uint64_t end() const { return offset + length; }
  };
  std::vector<Range> ranges;  // ascending
  bool continues(uint64_t row, int other_unit, uint64_t offset) const {
    return record->row == row && unit == other_unit && ranges.back().end() <= offset;
  }
  RowRange range_of(const layout::Geometry& g, uint64_t offset, uint64_t length, std::byte* into) const {
    return {record->row, uint64_t(data_unit) * g.unit_bytes + offset, length, into};
  }
};

// All that one read asks of one member. Shared with the lane; once abandoned, a late answer touches nothing.
struct RowReader::MemberRead {
  MemberRead(const layout::Geometry& g, const RowBlocks& b) : geometry(g), blocks(b) {}

  const layout::Geometry geometry;
  const RowBlocks blocks;
  std::vector<UnitRead> units;
  std::mutex mutex;
  bool abandoned = false;
  std::vector<RowRange> failed;

  // In the lane.
  Status run(MemberHandle& handle) {
    for (const UnitRead& unit : units) HF_TRY(read_unit(handle, unit));
    return Status();
  }

 private:
  // Blocks [first, last] that ranges [begin, end) touch without a gap.
  struct Run {
    uint64_t first, last;
    size_t begin, end;
  };
  uint64_t most_blocks() const { return std::max<uint64_t>(1, read_chunk_bytes / blocks.bytes()); }

  Run run_from(const UnitRead& unit, size_t begin) const {
    const uint64_t c = blocks.bytes();
    Run run{unit.ranges[begin].offset / c, unit.ranges[begin].offset / c, begin, begin};
    do run.last = std::max(run.last, (unit.ranges[run.end++].end() - 1) / c);
    while (run.end < unit.ranges.size() && unit.ranges[run.end].offset / c <= run.last + 1 && run.last - run.first + 1 < most_blocks());
    return run;
  }

  Status read_unit(MemberHandle& handle, const UnitRead& unit) {
    static auto* const kept = new ThreadBytes;
    Bytes& buffer = kept->get();  // the lane's own
    const uint64_t c = blocks.bytes();
    for (Run run{0, 0, 0, 0}; run.end < unit.ranges.size();) {
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

  // Checks one block and gives each range its share. False: nobody waits any more.
  bool hand_out(const UnitRead& unit, const Run& run, uint64_t block, ByteSpan content) {
    const bool written = blocks.written(*unit.record, unit.unit, block);
    if (!written) std::memset(content.data(), 0, content.size());
    const bool good = !written || blocks.holds(*unit.record, unit.unit, block, content);
    const uint64_t begin = block * content.size(), end = begin + content.size();
    for (size_t i = run.begin; i < run.end && unit.ranges[i].offset < end; ++i) {
      const UnitRead::Range& range = unit.ranges[i];
      const uint64_t from = std::max(range.offset, begin), to = std::min(range.end(), end);
      if (from >= to) continue;
      std::lock_guard guard(mutex);
      if (abandoned) return false;
      std::byte* into = range.into + (from - range.offset);
      if (good) std::memcpy(into, content.data() + (from - begin), to - from);
      else failed.push_back(unit.range_of(geometry, from, to - from, into));
    }
    return true;
  }
};

RowReader::RowReader(Members& members, RecordStore& records, const catalog::Located& located, const JournalOverlay& journals, OtherOpeners& others,
                     int rank)
    : members_(members),
      records_(records),
      journals_(journals),
      others_(others),
      sources_(members, records, located, journals, rank),
      rebuilder_(members, located, sources_),
      held_(members, records, located, sources_, rebuilder_) {}

Status RowReader::read(std::span<const RowRange> ranges) {
  Begun read;
  HF_TRY(begin(ranges, read));
  return finish(ranges, read);
}

bool RowReader::may_begin_beside(std::span<const RowRange> ranges) const {
  return journals_.unread().ok() && std::all_of(ranges.begin(), ranges.end(), [&](const RowRange& range) { return records_.knows(range.row); });
}

bool RowReader::goes_on_from_the_last(std::span<const RowRange> ranges) {
  const uint64_t row_bytes = geometry().row_bytes(), version = records_.version();
  std::lock_guard guard(place_);
  const bool sequential = ranges[0].row * row_bytes + ranges[0].offset == read_to_ && read_version_ == version;
  read_to_ = ranges.back().row * row_bytes + ranges.back().offset + ranges.back().length;
  read_version_ = version;
  return sequential;
}

namespace {

class Counted {
 public:
  explicit Counted(std::atomic<int>& count) : count_(count), is_alone_(count_++ == 0) {}
  Counted(const Counted&) = delete;
  ~Counted() { --count_; }
  bool is_alone() const { return is_alone_; }

 private:
  std::atomic<int>& count_;
  const bool is_alone_;
};

}  // namespace

Status RowReader::begin(std::span<const RowRange> ranges, Begun& read) {
  read.stage = Begun::Stage::done;
  if (ranges.empty()) return Status();
  // Several threads that share out a file look like one that goes through it. Holding rows for them would make them wait for each other.
  const Counted beginning(beginning_);
  read.sequential = goes_on_from_the_last(ranges) && beginning.is_alone();
  if (ranges.size() == 1 && read_small(ranges[0])) return Status();
  read.stage = Begun::Stage::not_in_memory;
  // The row that is held becomes another one: by who is alone.
  if (read.sequential && ranges.size() == 1 && held_.serves_steps_of(ranges[0])) return Status();
  return read_once(ranges, read);
}

Status RowReader::finish(std::span<const RowRange> ranges, Begun& read) {
  if (read.stage == Begun::Stage::done) return Status();
  if (read.stage == Begun::Stage::not_in_memory) {
    if (held_.read_sequentially(ranges[0])) return Status();
    HF_TRY(read_once(ranges, read));
  }
  note_answers(read);
  // What another opener changed since we read the records is no damage: look again before rebuilding anything.
  if (read.may_have_changed && others_.look_again()) {
    Begun again;
    again.sequential = read.sequential;
    HF_TRY(read_once(read.failed, again));
    note_answers(again);
    return recover(again);
  }
  return recover(read);
}

// While it lives rows are read as they lie in their places, and nothing that was held counts, nor will what is held then.
class RowReader::InPlace {
 public:
  explicit InPlace(RowReader& reader) : reader_(reader), in_place_(reader.sources_) { reader_.held_.drop(); }
  InPlace(const InPlace&) = delete;
  ~InPlace() { reader_.held_.drop(); }

 private:
  RowReader& reader_;
  RowSources::InPlace in_place_;
};

Status RowReader::read_in_place(std::span<const RowRange> ranges) {
  const InPlace in_place(*this);
  return read(ranges);
}

Status RowReader::reconstruct_in_place(const RowRecord& record, std::byte* const* into) {
  const InPlace in_place(*this);
  return reconstruct(record, 0, geometry().blocks_per_unit(), into);
}

UnitReads RowReader::read_units_in_place(const RowRecord& record, const MemberSet& members) {
  const InPlace in_place(*this);
  return read_units(record, 0, geometry().blocks_per_unit(), members);
}

// A range of one unit that lies in memory: nothing has to be planned.
bool RowReader::read_small(const RowRange& range) {
  const uint64_t s = geometry().unit_bytes, in_unit = range.offset % s;
  if (in_unit + range.length > s) return false;
  auto record = this->record(range.row);
  if (!record.ok() || record->hole()) return false;
  if (held_.take(range)) return true;
  if (goes_to_recovery(range)) return false;
  const int unit = geometry().scheme.k == 1 ? sources_.pick_copy(range.row) : int(range.offset / s);
  const UnitSource source = sources_.of(range.row, unit);
  return members_.available(source.member) && !members_.avoid(source.member) &&
         sources_.read_part_cached(source, *record, unit, in_unit, range.length, range.into) == range.length;
}

Status RowReader::read_once(std::span<const RowRange> ranges, Begun& read) {
  Asked asked(members_.count());
  std::shared_ptr<const RowRecord> record;
  for (const RowRange& range : ranges) {
    if (range.length == 0) continue;
    if (!record || record->row != range.row) {
      auto got = this->record(range.row);
      if (!got.ok()) return got.status();
      record = std::make_shared<const RowRecord>(std::move(*got));
    }
    if (record->hole()) std::memset(range.into, 0, range.length);
    else if (held_.take(range)) continue;
    else if (goes_to_recovery(range)) read.failed.push_back(range);
    else plan(range, record, asked, read.failed);
  }
  serve_from_cache(asked);
  ask_lanes(asked, read);
  read.stage = read.failed.empty() && read.answers.empty() ? Begun::Stage::done : Begun::Stage::asked;
  return Status();
}

// A row of which a wanted unit is out of reach goes to recovery whole: each surviving unit is then read once.
// So does a row that lacks any data unit, for a reader that comes from the row before and will want the rest too.
bool RowReader::goes_to_recovery(const RowRange& range) const {
  if (geometry().scheme.k == 1) return false;
  const uint64_t s = geometry().unit_bytes;
  if (last_recovered_ + 1 == range.row && range.length * 4 >= s) return sources_.lacks_unit(range.row, 0, geometry().scheme.k - 1);
  return sources_.lacks_unit(range.row, int(range.offset / s), int((range.offset + range.length - 1) / s));
}

// Cuts the range at the borders of units and adds it to what is asked of their members.
void RowReader::plan(const RowRange& range, const std::shared_ptr<const RowRecord>& record, Asked& asked, std::vector<RowRange>& failed) {
  const uint64_t s = geometry().unit_bytes;
  for (uint64_t offset = range.offset, end = range.offset + range.length; offset < end;) {
    const uint64_t length = std::min(end - offset, s - offset % s);
    const int data_unit = int(offset / s);
    const int unit = geometry().scheme.k == 1 ? sources_.pick_copy(range.row) : data_unit;
    const int member = sources_.member_of(range.row, unit);
    std::byte* into = range.into + (offset - range.offset);
    if (!members_.available(member)) {
      failed.push_back({range.row, offset, length, into});
    } else {
      auto& read = asked[member];
      if (!read) read = std::make_shared<MemberRead>(geometry(), sources_.blocks());
      if (read->units.empty() || !read->units.back().continues(range.row, unit, offset % s))
        read->units.push_back({record, unit, data_unit, sources_.of(range.row, unit), {}});
      read->units.back().ranges.push_back({offset % s, length, into});
    }
    offset += length;
  }
}

// Anything may fail only because it was changed meanwhile: a block that does not verify, a journal that is gone.
void RowReader::ask_lanes(Asked& asked, Begun& read) {
  std::vector<std::pair<int, std::shared_ptr<target::Ticket>>> tickets;
  for (int member = 0; member < members_.count(); ++member)
    if (asked[member])
      tickets.emplace_back(member, members_.submit(member, [of_member = asked[member]](MemberHandle& handle) { return of_member->run(handle); }));
  for (auto& [member, ticket] : tickets) {
    const Status status = ticket->wait();
    MemberRead& of_member = *asked[member];
    std::lock_guard guard(of_member.mutex);
    const bool whole = status.ok() && of_member.failed.empty();
    if (!whole || !members_.reads_well(member)) read.answers.push_back({member, status, whole});
    if (status.ok()) {
      read.may_have_changed |= !whole;
      read.failed.insert(read.failed.end(), of_member.failed.begin(), of_member.failed.end());
      continue;
    }
    of_member.abandoned = true;
    read.may_have_changed |= status.kind() == Kind::not_found;
    for (const UnitRead& unit : of_member.units)
      for (const auto& range : unit.ranges) read.failed.push_back(unit.range_of(geometry(), range.offset, range.length, range.into));
  }
}

void RowReader::note_answers(const Begun& read) {
  for (const Begun::Answer& answer : read.answers) {
    members_.note_read(answer.member, answer.whole, answer.status.sentence());
    if (answer.status.kind() == Kind::timed_out) members_.lose(answer.member, answer.status);
  }
}

// What is in memory is read here and now, straight to where it is wanted. A hand-over to a lane and back costs more than the
// read. Whatever is not there, or does not verify, is left to the lanes, which alone judge.
void RowReader::serve_from_cache(Asked& asked) {
  for (auto& read : asked) {
    if (!read) continue;
    bool all = true;
    for (UnitRead& unit : read->units) {
      size_t done = 0;
      for (; all && done < unit.ranges.size(); done += all) {
        UnitRead::Range& range = unit.ranges[done];
        const uint64_t served = sources_.read_part_cached(unit.source, *unit.record, unit.unit, range.offset, range.length, range.into);
        range = {range.offset + served, range.length - served, range.into + served};
        all = range.length == 0;
      }
      unit.ranges.erase(unit.ranges.begin(), unit.ranges.begin() + long(done));
    }
    std::erase_if(read->units, [](const UnitRead& unit) { return unit.ranges.empty(); });
    if (all) read.reset();
  }
}

}  // namespace holdfast::engine
