#include "layers/protected/row_io.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <fmt/format.h>

#include "coding/checksum.hpp"

namespace holdfast::layers {

using layout::RowRecord;
using layout::UnitPlace;

namespace {

constexpr uint64_t read_chunk_bytes = 256 << 10;      // stays in the second-level cache between read, check and copy
constexpr uint64_t recover_chunk_bytes = 1 << 20;     // per unit, when a row is reconstructed
constexpr uint64_t most_recovered_bytes = 16 << 20;   // a rebuilt row that is kept

// A checksum entry of 0 says that the block was never written: zeros, and nothing to read. A real checksum is never 0.
uint64_t entry_for(uint64_t checksum) { return checksum ? checksum : 1; }

struct WriteOp {
  std::string object;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::vector<iovec> vectors;
};

void append(std::vector<WriteOp>& ops, const std::string& object, uint64_t offset, const std::byte* from, uint64_t bytes) {
  if (bytes == 0) return;
  iovec vector{const_cast<std::byte*>(from), size_t(bytes)};
  if (!ops.empty() && ops.back().object == object && ops.back().offset + ops.back().bytes == offset) {
    ops.back().vectors.push_back(vector);
    ops.back().bytes += bytes;
  } else {
    ops.push_back({object, offset, bytes, {vector}});
  }
}

}  // namespace

// Where a unit is read from, resolved before the call goes to a lane.
struct RowIo::UnitRead {
  std::shared_ptr<const RowRecord> record;
  int unit = 0;          // the unit that is read
  std::string object;
  uint64_t offset = 0;
  uint64_t limit = ~0ull;  // bytes of the unit that are stored there; the rest is zeros
  struct Part {
    uint64_t offset;  // in the unit
    uint64_t length;
    std::byte* into;
  };
  std::vector<Part> parts;  // ascending
  int data_unit = 0;        // the data unit that `parts` speak of (for a mirror, `unit` may be another copy)
};

// All that one read asks of one member. Shared with the lane; once abandoned, a late answer touches nothing.
struct RowIo::MemberRead {
  std::vector<UnitRead> units;
  std::mutex mutex;
  bool abandoned = false;
  std::vector<Piece> failed;
  bool mismatch = false;
};

RowIo::RowIo(Members& members, RecordStore& records, const catalog::Located& located, int rank)
    : members_(members),
      records_(records),
      located_(located),
      geometry_(located.manifest.geometry),
      code_(coding::Code::make(geometry_.scheme.k, geometry_.scheme.m)),
      key_(records.key()),
      rank_(rank) {}

Result<RowRecord> RowIo::record(uint64_t row) {
  if (auto it = journal_records.find(row); it != journal_records.end()) return it->second;
  auto record = records_.get(row);
  if (!record.ok()) return record;
  // A synced record beyond the rows that the manifest knows was cut off by set_size; it must not come back.
  if (row >= located_.manifest.rows && located_.manifest.is_synced(record->generation)) return RowRecord{row, 0, {}};
  return record;
}

CodedRow RowIo::code(const RowImage& image, uint64_t generation) const {
  const int k = geometry_.scheme.k, m = geometry_.scheme.m;
  const uint64_t s = geometry_.unit_bytes, c = geometry_.block_bytes;
  const uint32_t per_unit = geometry_.blocks_per_unit();
  const uint64_t columns = std::min(s, round_up(image.valid, c));  // beyond, every unit is zeros
  CodedRow row;
  row.record.row = image.row;
  row.record.generation = generation;
  row.record.checksums.assign(size_t(k + m) * per_unit, 0);
  row.units.assign(image.data.begin(), image.data.end());
  for (int u = 0; u < k; ++u) {
    const uint64_t begin = uint64_t(u) * s;
    // Whole blocks: what lay there before must not show through behind the end of file.
    row.stored.push_back(image.valid > begin ? std::min(s, round_up(image.valid - begin, c)) : 0);
  }
  std::vector<std::byte*> redundancy;
  if (k == 1) {
    for (int j = 0; j < m; ++j) {
      row.units.push_back(image.data[0]);
      row.stored.push_back(row.stored[0]);
    }
  } else {
    row.redundancy = std::make_shared<Buffer>(uint64_t(m) * s);
    for (int j = 0; j < m; ++j) {
      redundancy.push_back(row.redundancy->data() + uint64_t(j) * s);
      row.units.push_back(redundancy.back());
      row.stored.push_back(columns);
    }
  }
  // Block by block, so that a column is coded and checksummed while it is in the cache.
  std::vector<const std::byte*> from(k);
  std::vector<std::byte*> into(m);
  for (uint32_t block = 0; block * c < columns; ++block) {
    const uint64_t at = block * c;
    for (int u = 0; u < k; ++u) from[u] = image.data[u] + at;
    if (k > 1) {
      for (int j = 0; j < m; ++j) into[j] = redundancy[j] + at;
      code_->encode(from.data(), into.data(), c);
    }
    for (int u = 0; u < k + m; ++u) {
      if (at >= row.stored[u]) continue;
      row.record.checksums[size_t(u) * per_unit + block] =
          entry_for(coding::block_checksum(key_, image.row, u, block, ByteView(row.units[u] + at, c)));
    }
  }
  return row;
}

Status RowIo::write_in_place(std::span<const CodedRow> rows) {
  if (rows.empty()) return Status();
  const int width = geometry_.scheme.width();
  std::vector<std::vector<WriteOp>> ops(members_.count());
  auto keep = std::make_shared<std::vector<std::shared_ptr<Buffer>>>();
  for (const CodedRow& row : rows) {
    keep->push_back(row.redundancy);
    for (int u = 0; u < width; ++u) {
      UnitPlace at = layout::place(geometry_, row.record.row, u);
      append(ops[at.member], located_.data_name(at.object), at.offset, row.units[u], row.stored[u]);
    }
  }
  std::vector<RowRecord> run;
  auto sums = std::make_shared<std::vector<std::pair<uint64_t, Bytes>>>();
  for (const CodedRow& row : rows) {
    if (!run.empty() && run.back().row + 1 != row.record.row) {
      sums->emplace_back(run.front().row * records_.slot_bytes(), records_.encode(run));
      run.clear();
    }
    run.push_back(row.record);
  }
  sums->emplace_back(run.front().row * records_.slot_bytes(), records_.encode(run));

  members_.each([&](int member) -> MemberCall {
    return [ops = std::move(ops[member]), sums, keep, name = records_.object_name(member)](MemberHandle& handle) {
      for (const WriteOp& op : ops) HF_TRY(handle.write(op.object, op.offset, op.vectors));
      for (const auto& [offset, bytes] : *sums) HF_TRY(handle.write(name, offset, bytes));
      return Status();
    };
  });
  for (const CodedRow& row : rows) {
    int lost = 0;
    for (int u = 0; u < width; ++u) lost += !members_.available(layout::place(geometry_, row.record.row, u).member);
    if (lost > geometry_.scheme.m) return lost_row(row.record.row);
    records_.remember(row.record);
  }
  return Status();
}

Status RowIo::lost_row(uint64_t row) const {
  return Status(Kind::lost, fmt::format("row {} of {}: more than {} of its {} units are lost: {}", row, located_.manifest.path,
                                        geometry_.scheme.m, geometry_.scheme.width(), members_.describe_lost()));
}

// Whether one of these units lies on a member that is lost, or that failed its last reads.
bool RowIo::lacks_unit(uint64_t row, int first_unit, int last_unit) const {
  for (int unit = first_unit; unit <= last_unit; ++unit) {
    const int member = layout::place(geometry_, row, unit).member;
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
    const int member = layout::place(geometry_, row, unit).member;
    if (!members_.available(member)) continue;
    if (!members_.avoid(member)) return unit;
    fallback = unit;
  }
  return fallback;
}

Status RowIo::read(std::span<const Piece> pieces) {
  const uint64_t row_bytes = geometry_.row_bytes(), last_read = read_to_;
  if (!pieces.empty()) read_to_ = pieces.back().row * row_bytes + pieces.back().offset + pieces.back().length;
  if (pieces.size() == 1 && pieces[0].row * row_bytes + pieces[0].offset == last_read && fetch_row_ahead(pieces[0])) return Status();
  std::vector<Piece> failed;
  HF_TRY(read_once(pieces, failed));
  if (failed.empty()) return Status();
  return recover(failed);
}

namespace {

// Reads, checks and hands out one unit's parts; runs in a lane.
template <class UnitRead, class Copy, class Fail>
Status read_parts(MemberHandle& handle, const UnitRead& unit, const layout::Geometry& g, uint64_t key, Bytes& buffer, Copy copy, Fail fail) {
  const uint64_t c = g.block_bytes;
  const uint64_t* entries = unit.record->checksums.data() + size_t(unit.unit) * g.blocks_per_unit();
  size_t part = 0;
  while (part < unit.parts.size()) {
    // A run of blocks that the next parts touch without a gap, up to a chunk.
    const uint64_t first = unit.parts[part].offset / c;
    uint64_t last = first;
    size_t end = part;
    const uint64_t most = std::max<uint64_t>(1, read_chunk_bytes / c);
    while (end < unit.parts.size() && unit.parts[end].offset / c <= last + 1) {
      const uint64_t part_last = (unit.parts[end].offset + unit.parts[end].length - 1) / c;
      last = std::max(last, part_last);
      ++end;
      if (last - first + 1 >= most) break;
    }
    for (uint64_t block = first; block <= last; block += most) {
      const uint64_t blocks = std::min(most, last - block + 1);
      buffer.resize(most * c);
      ByteSpan chunk(buffer.data(), blocks * c);
      bool any = false;
      for (uint64_t i = 0; i < blocks; ++i) any |= entries[block + i] != 0;
      if (any) {
        const uint64_t at = block * c;
        const uint64_t bytes = at < unit.limit ? std::min<uint64_t>(chunk.size(), unit.limit - at) : 0;
        HF_TRY(handle.read(unit.object, unit.offset + at, chunk.first(bytes)));
        std::memset(chunk.data() + bytes, 0, chunk.size() - bytes);
      }
      for (uint64_t i = 0; i < blocks; ++i) {
        ByteSpan content = chunk.subspan(i * c, c);
        const uint64_t entry = entries[block + i];
        if (entry == 0) std::memset(content.data(), 0, content.size());
        const bool good = entry == 0 || entry == entry_for(coding::block_checksum(key, unit.record->row, unit.unit, uint32_t(block + i), content));
        const uint64_t begin = (block + i) * c;
        for (size_t p = part; p < end; ++p) {
          const auto& piece = unit.parts[p];
          const uint64_t from = std::max(piece.offset, begin), to = std::min(piece.offset + piece.length, begin + c);
          if (from >= to) {
            if (piece.offset >= begin + c) break;
            continue;
          }
          std::byte* into = piece.into + (from - piece.offset);
          if (!good)
            fail(from, to - from, into);
          else if (!copy(into, content.data() + (from - begin), to - from))
            return Status();
        }
      }
    }
    part = end;
  }
  return Status();
}

}  // namespace

Status RowIo::read_once(std::span<const Piece> pieces, std::vector<Piece>& failed) {
  const uint64_t s = geometry_.unit_bytes;
  std::vector<std::shared_ptr<MemberRead>> asked(members_.count());
  std::shared_ptr<const RowRecord> record;
  for (const Piece& whole : pieces) {
    if (whole.length == 0) continue;
    if (!record || record->row != whole.row) {
      auto got = this->record(whole.row);
      if (!got.ok()) return got.status();
      record = std::make_shared<const RowRecord>(std::move(*got));
    }
    if (record->hole()) {
      std::memset(whole.into, 0, whole.length);
      continue;
    }
    if (take_recovered(whole, *record)) continue;
    // A row of which a wanted unit is out of reach goes to recovery whole: each surviving unit is then read once.
    // So does a row that lacks any data unit, for a reader that comes from the row before and will want the rest too.
    const bool follows = recovered_.last_row + 1 == whole.row && whole.length * 4 >= s;
    const int first = follows ? 0 : int(whole.offset / s);
    const int last = follows ? geometry_.scheme.k - 1 : int((whole.offset + whole.length - 1) / s);
    if (geometry_.scheme.k > 1 && lacks_unit(whole.row, first, last)) {
      failed.push_back(whole);
      continue;
    }
    for (uint64_t offset = whole.offset; offset < whole.offset + whole.length;) {
      const uint64_t length = std::min(whole.offset + whole.length - offset, s - offset % s);
      const int data_unit = int(offset / s);
      const int unit = geometry_.scheme.k == 1 ? pick_copy(whole.row) : data_unit;
      const UnitPlace place = layout::place(geometry_, whole.row, unit);
      std::byte* into = whole.into + (offset - whole.offset);
      if (!members_.available(place.member)) {
        failed.push_back({whole.row, offset, length, into});
      } else {
        auto& read = asked[place.member];
        if (!read) read = std::make_shared<MemberRead>();
        const uint64_t in_unit = offset % s;
        UnitRead* last = read->units.empty() ? nullptr : &read->units.back();
        if (!last || last->record->row != whole.row || last->unit != unit ||
            last->parts.back().offset + last->parts.back().length > in_unit) {
          UnitRead next;
          next.record = record;
          next.unit = unit;
          next.data_unit = data_unit;
          next.object = located_.data_name(place.object);
          next.offset = place.offset;
          if (auto it = journal.find({whole.row, unit}); it != journal.end()) {
            next.object = it->second.object;
            next.offset = it->second.offset;
            next.limit = it->second.stored_bytes;
          }
          read->units.push_back(std::move(next));
          last = &read->units.back();
        }
        last->parts.push_back({in_unit, length, into});
      }
      offset += length;
    }
  }

  serve_from_cache(asked);
  std::vector<std::pair<int, std::shared_ptr<target::Ticket>>> tickets;
  for (int member = 0; member < members_.count(); ++member) {
    if (!asked[member]) continue;
    tickets.emplace_back(member, members_.submit(member, [read = asked[member], g = geometry_, key = key_](MemberHandle& handle) {
      static thread_local Bytes buffer;  // the lane's own, kept from call to call
      for (const UnitRead& unit : read->units) {
        auto copy = [&](std::byte* into, const std::byte* from, uint64_t bytes) {
          std::lock_guard guard(read->mutex);
          if (read->abandoned) return false;
          std::memcpy(into, from, bytes);
          return true;
        };
        auto fail = [&](uint64_t offset, uint64_t length, std::byte* into) {
          std::lock_guard guard(read->mutex);
          read->mismatch = true;
          read->failed.push_back({unit.record->row, uint64_t(unit.data_unit) * g.unit_bytes + offset, length, into});
        };
        HF_TRY(read_parts(handle, unit, g, key, buffer, copy, fail));
      }
      return Status();
    }));
  }
  bool mismatch = false;
  for (auto& [member, ticket] : tickets) {
    Status status = ticket->wait();
    MemberRead& read = *asked[member];
    std::lock_guard guard(read.mutex);
    members_.note_read(member, status.ok() && read.failed.empty());
    if (status.ok()) {
      failed.insert(failed.end(), read.failed.begin(), read.failed.end());
      mismatch |= read.mismatch;
      continue;
    }
    read.abandoned = true;
    if (status.kind() == Kind::timed_out) members_.lose(member, status.sentence());
    if (status.kind() == Kind::not_found) mismatch = true;  // a journal that has been folded in meanwhile, perhaps
    for (const UnitRead& unit : read.units)
      for (const auto& part : unit.parts)
        failed.push_back({unit.record->row, uint64_t(unit.data_unit) * s + part.offset, part.length, part.into});
  }
  // What another opener changed since we read the records is no damage: look again before rebuilding anything.
  if (mismatch && refresh()) {
    std::vector<Piece> again;
    again.swap(failed);
    auto once = std::move(refresh);
    refresh = [] { return false; };
    Status status = read_once(again, failed);
    refresh = std::move(once);
    return status;
  }
  return Status();
}

// What is in memory is read here and now, straight to where it is wanted: a hand-over to a lane and back costs more than the
// read. Whatever is not there, or does not verify, is left to the lanes, which alone judge.
void RowIo::serve_from_cache(std::vector<std::shared_ptr<MemberRead>>& asked) {
  for (int member = 0; member < members_.count(); ++member) {
    if (!asked[member]) continue;
    auto& units = asked[member]->units;
    bool waits = false;
    for (UnitRead& unit : units) {
      std::erase_if(unit.parts, [&](const UnitRead::Part& part) {
        waits = waits || !read_part_cached(member, unit, part.offset, part.length, part.into);
        return !waits;
      });
    }
    std::erase_if(units, [](const UnitRead& unit) { return unit.parts.empty(); });
    if (units.empty()) asked[member].reset();
  }
}

bool RowIo::read_part_cached(int member, const UnitRead& unit, uint64_t offset, uint64_t length, std::byte* into) {
  static thread_local Bytes scratch;
  const uint64_t c = geometry_.block_bytes, end = offset + length;
  const uint64_t* entries = unit.record->checksums.data() + size_t(unit.unit) * geometry_.blocks_per_unit();
  while (offset < end) {
    const uint64_t block = offset / c, begin = block * c;
    const bool partial = offset != begin || end - begin < c;
    const uint64_t blocks = partial ? 1 : std::min(read_chunk_bytes / c + (read_chunk_bytes < c), (end - begin) / c);
    if (begin + blocks * c > unit.limit) return false;
    if (partial) scratch.resize(c);
    const ByteSpan content(partial ? scratch.data() : into, blocks * c);
    for (uint64_t i = 0; i < blocks; ++i)
      if (entries[block + i] == 0) return false;
    if (!members_.read_cached(member, unit.object, unit.offset + begin, content)) return false;
    for (uint64_t i = 0; i < blocks; ++i)
      if (entries[block + i] != entry_for(coding::block_checksum(key_, unit.record->row, unit.unit, uint32_t(block + i), content.subspan(i * c, c))))
        return false;
    const uint64_t taken = std::min(end, begin + blocks * c) - offset;
    if (partial) std::memcpy(into, scratch.data() + (offset - begin), taken);
    into += taken;
    offset += taken;
  }
  return true;
}

// A reader that goes on where it stopped, in small steps, from targets that are slow to answer: the whole row is read once,
// from all its targets side by side, and the next steps are served from it. False: nothing was read.
bool RowIo::fetch_row_ahead(const Piece& piece) {
  if (piece.length * 2 > geometry_.row_bytes() || geometry_.row_bytes() > most_recovered_bytes) return false;
  auto record = this->record(piece.row);
  if (!record.ok() || record->hole()) return false;
  if (take_recovered(piece, *record)) return true;
  // The first bytes tell whether the row lies in memory, where reading ahead would only copy twice.
  const int unit = int(piece.offset / geometry_.unit_bytes);
  const UnitPlace place = layout::place(geometry_, piece.row, unit);
  std::byte probe;
  if (members_.available(place.member) && !journal.contains({piece.row, unit}) &&
      members_.read_cached(place.member, located_.data_name(place.object), place.offset + piece.offset % geometry_.unit_bytes, {&probe, 1}))
    return false;
  auto buffer = std::make_unique<Buffer>(geometry_.row_bytes());
  const Piece whole{piece.row, 0, geometry_.row_bytes(), buffer->data()};
  std::vector<Piece> failed;
  if (!read_once(std::span(&whole, 1), failed).ok() || !failed.empty()) return false;
  recovered_.buffer = std::move(buffer);
  recovered_.row = piece.row;
  recovered_.version = records_.version();
  std::memcpy(piece.into, recovered_.buffer->data() + piece.offset, piece.length);
  return true;
}

Status RowIo::recover(std::span<const Piece> failed) {
  std::map<uint64_t, std::vector<Piece>> by_row;
  for (const Piece& piece : failed) by_row[piece.row].push_back(piece);
  for (auto& [row, pieces] : by_row) HF_TRY(recover_row(row, pieces));
  return Status();
}

Status RowIo::recover_row(uint64_t row, std::span<const Piece> pieces) {
  auto record = this->record(row);
  if (!record.ok()) return record.status();
  const uint64_t s = geometry_.unit_bytes, c = geometry_.block_bytes;
  if (record->hole()) {
    for (const Piece& piece : pieces) std::memset(piece.into, 0, piece.length);
    return Status();
  }
  uint64_t wanted = 0, first = ~0ull, last = 0;
  for (const Piece& piece : pieces)
    for (uint64_t offset = piece.offset; offset < piece.offset + piece.length;) {
      const uint64_t length = std::min(piece.offset + piece.length - offset, s - offset % s);
      wanted |= 1ull << (offset / s);
      first = std::min(first, offset % s / c);
      last = std::max(last, (offset % s + length - 1) / c);
      offset += length;
    }
  // Whoever reads much of a degraded row, or the same row again, is likely to read the rest of it: the whole row is
  // rebuilt once and kept, so that each surviving unit is read once.
  const bool again = recovered_.last_row == row;
  recovered_.last_row = row;
  if (geometry_.scheme.k > 1 && geometry_.row_bytes() <= most_recovered_bytes &&
      (again || (last - first + 1) * 4 >= geometry_.blocks_per_unit())) {
    HF_TRY(rebuild_whole(*record));
    for (const Piece& piece : pieces) (void)take_recovered(piece, *record);
    return Status();
  }
  const uint64_t most = std::max<uint64_t>(1, recover_chunk_bytes / c);
  Buffer arena(uint64_t(__builtin_popcountll(wanted)) * std::min(most, last - first + 1) * c);
  for (uint64_t block = first; block <= last; block += most) {
    const uint64_t blocks = std::min(most, last - block + 1);
    std::vector<std::byte*> into(geometry_.scheme.width(), nullptr);
    size_t next = 0;
    for (int u = 0; u < geometry_.scheme.k; ++u)
      if (wanted >> u & 1) into[u] = arena.data() + next++ * blocks * c;
    HF_TRY(reconstruct(*record, uint32_t(block), uint32_t(blocks), into.data(), 0));
    for (const Piece& piece : pieces) copy_columns(piece, block * c, (block + blocks) * c, into);
  }
  return Status();
}

// Copies what `piece` has of columns [begin, end) from the units' buffers, which begin at column `begin`.
void RowIo::copy_columns(const Piece& piece, uint64_t begin, uint64_t end, const std::vector<std::byte*>& units) const {
  const uint64_t s = geometry_.unit_bytes;
  for (uint64_t offset = piece.offset; offset < piece.offset + piece.length;) {
    const uint64_t length = std::min(piece.offset + piece.length - offset, s - offset % s);
    const uint64_t from = std::max(offset % s, begin), to = std::min(offset % s + length, end);
    if (from < to)
      std::memcpy(piece.into + (offset - piece.offset) + (from - offset % s), units[offset / s] + (from - begin), to - from);
    offset += length;
  }
}

Status RowIo::rebuild_whole(const RowRecord& record) {
  recovered_.buffer.reset();
  auto buffer = std::make_unique<Buffer>(geometry_.row_bytes());
  const uint64_t c = geometry_.block_bytes;
  const uint32_t most = uint32_t(std::max<uint64_t>(1, recover_chunk_bytes / c));
  for (uint32_t block = 0; block < geometry_.blocks_per_unit(); block += most) {
    std::vector<std::byte*> into(geometry_.scheme.width(), nullptr);
    for (int u = 0; u < geometry_.scheme.k; ++u) into[u] = buffer->data() + uint64_t(u) * geometry_.unit_bytes + block * c;
    HF_TRY(reconstruct(record, block, std::min(most, geometry_.blocks_per_unit() - block), into.data(), 0));
  }
  recovered_.buffer = std::move(buffer);
  recovered_.row = record.row;
  recovered_.version = records_.version();
  return Status();
}

bool RowIo::take_recovered(const Piece& piece, const RowRecord& record) {
  if (!recovered_.buffer || recovered_.row != record.row || recovered_.version != records_.version()) return false;
  std::memcpy(piece.into, recovered_.buffer->data() + piece.offset, piece.length);
  return true;
}

std::shared_ptr<RowIo::RangeRead> RowIo::start_range(const RowRecord& record, int unit, uint32_t first_block, uint32_t blocks) {
  const uint64_t c = geometry_.block_bytes;
  const UnitPlace place = layout::place(geometry_, record.row, unit);
  auto read = std::make_shared<RangeRead>(blocks * c);
  read->bad.assign(blocks, false);
  std::string object = located_.data_name(place.object);
  uint64_t offset = place.offset, limit = ~0ull;
  if (auto it = journal.find({record.row, unit}); it != journal.end()) {
    object = it->second.object;
    offset = it->second.offset;
    limit = it->second.stored_bytes;
  }
  const auto begin = record.checksums.begin() + long(unit) * geometry_.blocks_per_unit() + first_block;
  std::vector<uint64_t> entries(begin, begin + blocks);
  // The call owns what it fills in as well, for it may hang; finish_range breaks the circle with the ticket.
  read->ticket = members_.submit(place.member, [=, row = record.row, key = key_, work = read](MemberHandle& handle) {
    const uint64_t at = first_block * c;
    const uint64_t bytes = at < limit ? std::min<uint64_t>(work->buffer.size(), limit - at) : 0;
    if (std::any_of(entries.begin(), entries.end(), [](uint64_t entry) { return entry != 0; }))
      HF_TRY(handle.read(object, offset + at, work->buffer.span().first(bytes)));
    std::memset(work->buffer.data() + bytes, 0, work->buffer.size() - bytes);
    for (uint32_t i = 0; i < blocks; ++i) {
      ByteSpan content = work->buffer.span().subspan(i * c, c);
      if (entries[i] == 0)
        std::memset(content.data(), 0, c);
      else
        work->bad[i] = entries[i] != entry_for(coding::block_checksum(key, row, unit, first_block + i, content));
    }
    return Status();
  });
  return read;
}

Status RowIo::finish_range(const RowRecord& record, int unit, RangeRead& read) {
  Status status = read.ticket->wait();
  read.ticket.reset();
  const int member = layout::place(geometry_, record.row, unit).member;
  members_.note_read(member, status.ok());
  if (status.kind() == Kind::timed_out) members_.lose(member, status.sentence());
  return status;
}

std::vector<std::shared_ptr<RowIo::RangeRead>> RowIo::read_units(const RowRecord& record, uint32_t first_block, uint32_t blocks,
                                                                 uint64_t members) {
  std::vector<std::shared_ptr<RangeRead>> reads;
  for (int unit = 0; unit < geometry_.scheme.width(); ++unit) {
    const int member = layout::place(geometry_, record.row, unit).member;
    if (members >> member & 1) {
      reads.push_back(start_range(record, unit, first_block, blocks));
    } else {
      reads.push_back(std::make_shared<RangeRead>(0));
      reads.back()->status = Status(Kind::lost, members_.why(member));
    }
  }
  for (int unit = 0; unit < geometry_.scheme.width(); ++unit)
    if (reads[unit]->ticket) reads[unit]->status = finish_range(record, unit, *reads[unit]);
  return reads;
}

uint64_t RowIo::needed_bytes(const RowRecord& record, int unit, uint64_t size) const {
  if (unit >= geometry_.scheme.k && geometry_.scheme.k > 1) return stored_bytes(record, unit, size);
  const uint64_t begin = record.row * geometry_.row_bytes() + (geometry_.scheme.k == 1 ? 0 : uint64_t(unit) * geometry_.unit_bytes);
  return std::min(stored_bytes(record, unit, size), size > begin ? size - begin : 0);
}

uint64_t RowIo::stored_bytes(const RowRecord& record, int unit, uint64_t size) const {
  // A block without a checksum was never written, whatever the file's size says by now.
  const uint32_t per_unit = geometry_.blocks_per_unit();
  uint32_t blocks = per_unit;
  while (blocks > 0 && record.checksums[size_t(unit) * per_unit + blocks - 1] == 0) --blocks;
  const uint64_t s = geometry_.unit_bytes, begin = record.row * geometry_.row_bytes();
  const uint64_t valid = std::min(geometry_.row_bytes(), size > begin ? size - begin : 0);
  const uint64_t at = unit < geometry_.scheme.k ? uint64_t(unit) * s : 0;
  const uint64_t in_unit = valid > at ? std::min(s, round_up(valid - at, geometry_.block_bytes)) : 0;
  return std::min(in_unit, uint64_t(blocks) * geometry_.block_bytes);
}

Status RowIo::reconstruct(const RowRecord& record, uint32_t first_block, uint32_t blocks, std::byte* const* into,
                          uint64_t not_from) {
  const int k = geometry_.scheme.k, width = geometry_.scheme.width();
  const uint64_t c = geometry_.block_bytes;
  std::vector<std::shared_ptr<RangeRead>> reads(width);
  std::vector<bool> answered(width, false);

  auto read_units = [&](std::span<const int> units) {
    for (int unit : units) reads[unit] = start_range(record, unit, first_block, blocks);
    for (int unit : units) answered[unit] = finish_range(record, unit, *reads[unit]).ok();
  };
  auto may_read = [&](int unit) {
    return !(not_from >> unit & 1) && members_.available(layout::place(geometry_, record.row, unit).member);
  };

  // The wanted units first (they may be whole), then other data, then redundancy; members that failed lately last.
  std::vector<int> order;
  for (int round = 0; round < 2; ++round)
    for (int pass = 0; pass < 2; ++pass)
      for (int unit = 0; unit < width; ++unit)
        if (may_read(unit) && (into[unit] != nullptr) == (pass == 0) &&
            members_.avoid(layout::place(geometry_, record.row, unit).member) == (round == 1))
          order.push_back(unit);
  const size_t enough = std::min<size_t>(order.size(), size_t(k));
  read_units(std::span(order).first(enough));
  auto good = [&](int unit, uint32_t block) { return answered[unit] && !reads[unit]->bad[block]; };
  auto good_count = [&](uint32_t block) {
    int count = 0;
    for (int unit = 0; unit < width; ++unit) count += good(unit, block);
    return count;
  };
  for (uint32_t block = 0; block < blocks; ++block)
    if (good_count(block) < k) {
      read_units(std::span(order).subspan(enough));
      break;
    }

  for (uint32_t block = 0; block < blocks;) {
    std::vector<int> survivors, wanted;
    std::vector<const std::byte*> from;
    std::vector<std::byte*> to;
    auto mask_of = [&](uint32_t at) {
      uint64_t mask = 0;
      for (int unit = 0; unit < width; ++unit) mask |= uint64_t(good(unit, at)) << unit;
      return mask;
    };
    const uint64_t mask = mask_of(block);
    uint32_t end = block + 1;
    while (end < blocks && mask_of(end) == mask) ++end;
    const uint64_t at = block * c, bytes = (end - block) * c;
    for (int unit = 0; unit < width; ++unit) {
      if ((mask >> unit & 1) && int(survivors.size()) < k) {
        survivors.push_back(unit);
        from.push_back(reads[unit]->buffer.data() + at);
      }
      if (into[unit] && (mask >> unit & 1)) std::memcpy(into[unit] + at, reads[unit]->buffer.data() + at, bytes);
      if (into[unit] && !(mask >> unit & 1)) {
        wanted.push_back(unit);
        to.push_back(into[unit] + at);
      }
    }
    if (int(survivors.size()) < k && !wanted.empty()) {
      if (!is_abandoned(record.generation)) return lost_row(record.row);
      for (std::byte* out : to) std::memset(out, 0, bytes);
    } else if (!wanted.empty()) {
      HF_TRY(code_->reconstruct(survivors, from.data(), wanted, to.data(), bytes));
    }
    block = end;
  }
  return Status();
}

}  // namespace holdfast::layers
