// What does not verify, or lies on a lost member, is rebuilt from the row's other units.
#include <algorithm>
#include <cstring>

#include "layers/protected/row_io.hpp"

namespace holdfast::layers {

using layout::RowRecord;

namespace {
constexpr uint64_t recover_chunk_bytes = 1 << 20;    // per unit, when a row is reconstructed
constexpr uint64_t most_kept_row_bytes = 16 << 20;   // a rebuilt row that is kept

// Calls `each(unit, offset in the unit, length, position in the piece)` for every unit that the piece touches.
template <class Each>
void for_each_unit(const Piece& piece, uint64_t unit_bytes, Each each) {
  for (uint64_t done = 0; done < piece.length;) {
    const uint64_t offset = piece.offset + done, length = std::min(piece.length - done, unit_bytes - offset % unit_bytes);
    each(int(offset / unit_bytes), offset % unit_bytes, length, done);
    done += length;
  }
}
}  // namespace

Status RowIo::recover(std::span<const Piece> failed) {
  std::map<uint64_t, std::vector<Piece>> by_row;
  for (const Piece& piece : failed) by_row[piece.row].push_back(piece);
  for (auto& [row, pieces] : by_row) HF_TRY(recover_row(row, pieces));
  return Status();
}

RowIo::Want RowIo::want_of(std::span<const Piece> pieces) const {
  Want want;
  const uint64_t c = geometry_.block_bytes;
  for (const Piece& piece : pieces)
    for_each_unit(piece, geometry_.unit_bytes, [&](int unit, uint64_t offset, uint64_t length, uint64_t) {
      want.units |= 1ull << unit;
      want.first = std::min(want.first, offset / c);
      want.last = std::max(want.last, (offset + length - 1) / c);
    });
  return want;
}

Status RowIo::recover_row(uint64_t row, std::span<const Piece> pieces) {
  auto record = this->record(row);
  if (!record.ok()) return record.status();
  if (record->hole()) {
    for (const Piece& piece : pieces) std::memset(piece.into, 0, piece.length);
    return Status();
  }
  const Want want = want_of(pieces);
  // Whoever reads much of a degraded row, or the same row again, is likely to read the rest of it: the whole row is
  // rebuilt once and kept, so that each surviving unit is read once.
  const bool again = recovered_.last_row == row;
  recovered_.last_row = row;
  if (geometry_.scheme.k > 1 && geometry_.row_bytes() <= most_kept_row_bytes &&
      (again || (want.last - want.first + 1) * 4 >= geometry_.blocks_per_unit())) {
    HF_TRY(rebuild_whole(*record));
    for (const Piece& piece : pieces) (void)take_recovered(piece, *record);
    return Status();
  }
  const uint64_t c = geometry_.block_bytes, most = std::max<uint64_t>(1, recover_chunk_bytes / c);
  Buffer arena(uint64_t(__builtin_popcountll(want.units)) * std::min(most, want.last - want.first + 1) * c);
  for (uint64_t block = want.first; block <= want.last; block += most) {
    const uint64_t blocks = std::min(most, want.last - block + 1);
    std::vector<std::byte*> into(geometry_.scheme.width(), nullptr);
    size_t next = 0;
    for (int u = 0; u < geometry_.scheme.k; ++u)
      if (want.units >> u & 1) into[u] = arena.data() + next++ * blocks * c;
    HF_TRY(reconstruct(*record, uint32_t(block), uint32_t(blocks), into.data(), 0));
    for (const Piece& piece : pieces) copy_columns(piece, block * c, (block + blocks) * c, into);
  }
  return Status();
}

// Copies what `piece` has of columns [begin, end) from the units' buffers, which begin at column `begin`.
void RowIo::copy_columns(const Piece& piece, uint64_t begin, uint64_t end, const std::vector<std::byte*>& units) const {
  for_each_unit(piece, geometry_.unit_bytes, [&](int unit, uint64_t offset, uint64_t length, uint64_t position) {
    const uint64_t from = std::max(offset, begin), to = std::min(offset + length, end);
    if (from < to) std::memcpy(piece.into + position + (from - offset), units[unit] + (from - begin), to - from);
  });
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
  keep(std::move(buffer), record.row);
  return Status();
}

void RowIo::keep(std::unique_ptr<Buffer> buffer, uint64_t row) {
  recovered_.buffer = std::move(buffer);
  recovered_.row = row;
  recovered_.version = records_.version();
}

bool RowIo::take_recovered(const Piece& piece, const RowRecord& record) {
  if (!recovered_.buffer || recovered_.row != record.row || recovered_.version != records_.version()) return false;
  std::memcpy(piece.into, recovered_.buffer->data() + piece.offset, piece.length);
  return true;
}

std::shared_ptr<RowIo::RangeRead> RowIo::start_range(const RowRecord& record, int unit, uint32_t first_block, uint32_t blocks) {
  const uint64_t c = geometry_.block_bytes;
  const UnitSource source = source_of(record.row, unit);
  auto read = std::make_shared<RangeRead>(blocks * c);
  read->bad.assign(blocks, false);
  // The call owns what it fills in as well, for it may hang; finish_range breaks the circle with the ticket.
  read->ticket = members_.submit(source.member, [=, work = read, check = blocks_](MemberHandle& handle) {
    uint64_t bytes = 0;
    if (check.any_written(record, unit, first_block, blocks)) {
      bytes = source.stored(first_block * c, work->buffer.size());
      HF_TRY(handle.read(source.object, source.offset + first_block * c, work->buffer.span().first(bytes)));
    }
    std::memset(work->buffer.data() + bytes, 0, work->buffer.size() - bytes);
    for (uint32_t i = 0; i < blocks; ++i) {
      const ByteSpan content = work->buffer.span().subspan(i * c, c);
      if (!check.written(record, unit, first_block + i))
        std::memset(content.data(), 0, c);
      else
        work->bad[i] = !check.holds(record, unit, first_block + i, content);
    }
    return Status();
  });
  return read;
}

Status RowIo::finish_range(const RowRecord& record, int unit, RangeRead& read) {
  Status status = read.ticket->wait();
  read.ticket.reset();
  const int member = member_of(record.row, unit);
  members_.note_read(member, status.ok());
  if (status.kind() == Kind::timed_out) members_.lose(member, status.sentence());
  return status;
}

std::vector<std::shared_ptr<RowIo::RangeRead>> RowIo::read_units(const RowRecord& record, uint32_t first_block, uint32_t blocks,
                                                                 uint64_t members) {
  std::vector<std::shared_ptr<RangeRead>> reads;
  for (int unit = 0; unit < geometry_.scheme.width(); ++unit) {
    const int member = member_of(record.row, unit);
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

// What has been read of a row's units so far, and where it verifies.
struct RowIo::Survey {
  uint32_t first_block = 0, blocks = 0;
  std::vector<std::shared_ptr<RangeRead>> reads;  // by unit; null where not asked
  uint64_t good(uint32_t block) const {           // the units whose block verifies, as a mask
    uint64_t mask = 0;
    for (size_t unit = 0; unit < reads.size(); ++unit)
      if (reads[unit] && reads[unit]->status.ok() && !reads[unit]->bad[block]) mask |= 1ull << unit;
    return mask;
  }
  bool suffices(int k) const {
    for (uint32_t block = 0; block < blocks; ++block)
      if (__builtin_popcountll(good(block)) < k) return false;
    return true;
  }
};

// The wanted units first (they may be whole), then other data, then redundancy; members that failed lately last.
std::vector<int> RowIo::reading_order(uint64_t row, std::byte* const* into, uint64_t not_from) const {
  std::vector<int> order;
  for (bool avoided : {false, true})
    for (bool wanted : {true, false})
      for (int unit = 0; unit < geometry_.scheme.width(); ++unit) {
        const int member = member_of(row, unit);
        if (!(not_from >> unit & 1) && members_.available(member) && (into[unit] != nullptr) == wanted && members_.avoid(member) == avoided)
          order.push_back(unit);
      }
  return order;
}

void RowIo::survey(const RowRecord& record, std::span<const int> units, Survey& seen) {
  for (int unit : units) seen.reads[unit] = start_range(record, unit, seen.first_block, seen.blocks);
  for (int unit : units) seen.reads[unit]->status = finish_range(record, unit, *seen.reads[unit]);
}

Status RowIo::reconstruct(const RowRecord& record, uint32_t first_block, uint32_t blocks, std::byte* const* into,
                          uint64_t not_from) {
  const int k = geometry_.scheme.k;
  Survey seen{first_block, blocks, std::vector<std::shared_ptr<RangeRead>>(geometry_.scheme.width())};
  const std::vector<int> order = reading_order(record.row, into, not_from);
  const size_t enough = std::min<size_t>(order.size(), size_t(k));
  survey(record, std::span(order).first(enough), seen);
  if (!seen.suffices(k)) survey(record, std::span(order).subspan(enough), seen);
  // Blocks that lack the same units are decoded together.
  for (uint32_t begin = 0; begin < blocks;) {
    uint32_t end = begin + 1;
    while (end < blocks && seen.good(end) == seen.good(begin)) ++end;
    HF_TRY(rebuild_columns(record, seen, begin, end, into));
    begin = end;
  }
  return Status();
}

// Blocks [begin, end) of the surveyed range, all of which lack the same units.
Status RowIo::rebuild_columns(const RowRecord& record, const Survey& seen, uint32_t begin, uint32_t end, std::byte* const* into) {
  const uint64_t c = geometry_.block_bytes, at = begin * c, bytes = (end - begin) * c, good = seen.good(begin);
  std::vector<int> survivors, wanted;
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (int unit = 0; unit < geometry_.scheme.width(); ++unit) {
    const bool whole = good >> unit & 1;
    if (whole && int(survivors.size()) < geometry_.scheme.k) {
      survivors.push_back(unit);
      from.push_back(seen.reads[unit]->buffer.data() + at);
    }
    if (into[unit] && whole) std::memcpy(into[unit] + at, seen.reads[unit]->buffer.data() + at, bytes);
    if (into[unit] && !whole) {
      wanted.push_back(unit);
      to.push_back(into[unit] + at);
    }
  }
  if (wanted.empty()) return Status();
  if (int(survivors.size()) == geometry_.scheme.k) return code_->reconstruct(survivors, from.data(), wanted, to.data(), bytes);
  if (!is_abandoned(record.generation)) return lost_row(record.row);
  for (std::byte* out : to) std::memset(out, 0, bytes);
  return Status();
}

}  // namespace holdfast::layers
