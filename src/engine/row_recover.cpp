// What does not verify, or lies on a lost member, is rebuilt from the row's other units.
#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/row_survey.hpp"
#include "engine/waiting.hpp"

namespace holdfast::engine {

using layout::RowRecord;

namespace {
constexpr int most_looks_again = 6;
constexpr auto look_again_after = std::chrono::milliseconds(1);
constexpr uint64_t recover_chunk_bytes = 1 << 20;  // per unit, when a row is reconstructed
constexpr uint64_t cached_chunk_bytes = 64 << 10;  // per unit, when all is in memory

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
  for (auto it = by_row.begin(); it != by_row.end();) {
    const auto& [row, pieces] = *it++;
    const uint64_t next_row = it != by_row.end() ? it->first : sequential_ ? row + 1 : ~0ull;
    Status status = recover_as_known_now(row, pieces, next_row);
    // Before anything is given up: another opener may have changed the row, or be changing it, since its record was read.
    for (int again = 0; status.kind() == Kind::lost && again < most_looks_again; ++again) {
      if (again > 0) wait_while_busy(look_again_after * again);
      refresh();
      auto record = this->record(row);
      if (!record.ok()) return record.status();
      gaps_are_zeros_ = is_unsynced_of_others(record->generation);
      status = recover_as_known_now(row, pieces, next_row);
      gaps_are_zeros_ = false;
    }
    HF_TRY(status);
  }
  return Status();
}

Status RowIo::recover_as_known_now(uint64_t row, std::span<const Piece> pieces, uint64_t next_row) {
  auto record = this->record(row);
  if (!record.ok()) return record.status();
  if (!record->hole()) return recover_row(*record, pieces, next_row);
  for (const Piece& piece : pieces) std::memset(piece.into, 0, piece.length);
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

// `next_row` is the row that will be wanted after this one.
Status RowIo::recover_row(const RowRecord& record, std::span<const Piece> pieces, uint64_t next_row) {
  // Whoever reads much of a degraded row, or the same row again, is likely to read the rest of it: the whole row is
  // rebuilt once and kept, so that each surviving unit is read once.
  const Want want = want_of(pieces);
  const bool again = last_recovered_ == record.row;
  last_recovered_ = record.row;
  const bool whole = again || (want.last - want.first + 1) * 4 >= geometry_.blocks_per_unit();
  if (geometry_.scheme.k == 1 || !may_hold() || !whole) return recover_blocks(record, pieces, want);
  return hold_from_memory(record, pieces) ? Status() : hold_from_lanes(record, pieces, next_row);
}

Status RowIo::recover_blocks(const RowRecord& record, std::span<const Piece> pieces, const Want& want) {
  const uint64_t c = geometry_.block_bytes, most = std::max<uint64_t>(1, recover_chunk_bytes / c);
  Buffer arena(uint64_t(__builtin_popcountll(want.units)) * std::min(most, want.last - want.first + 1) * c);
  for (uint64_t block = want.first; block <= want.last; block += most) {
    const uint64_t blocks = std::min(most, want.last - block + 1);
    std::vector<std::byte*> into(geometry_.scheme.width(), nullptr);
    size_t next = 0;
    for (int u = 0; u < geometry_.scheme.k; ++u)
      if (want.units >> u & 1) into[u] = arena.data() + next++ * blocks * c;
    HF_TRY(reconstruct(record, uint32_t(block), uint32_t(blocks), into.data(), 0));
    for (const Piece& piece : pieces) copy_columns(piece, block * c, (block + blocks) * c, into);
  }
  return Status();
}

// Copies what `piece` has of columns [begin, end) from the units' buffers, which begin at column `begin`.
void RowIo::copy_columns(const Piece& piece, uint64_t begin, uint64_t end, const std::vector<std::byte*>& units) const {
  for_each_unit(piece, geometry_.unit_bytes, [&](int unit, uint64_t offset, uint64_t length, uint64_t position) {
    const uint64_t from = std::max(offset, begin), to = std::min(offset + length, end);
    std::byte* into = piece.into + position + (from - offset);
    if (from < to && into != units[unit] + (from - begin)) std::memcpy(into, units[unit] + (from - begin), to - from);
  });
}

void RowIo::start_range(const RowRecord& record, int unit, Survey& seen) {
  const uint64_t c = geometry_.block_bytes;
  const UnitSource source = source_of(record.row, unit);
  const auto read = std::make_shared<RangeRead>(seen.blocks * c);
  read->bad.assign(seen.blocks, false);
  seen.reads[unit] = read;
  // The call owns what it fills in as well, for it may hang.
  seen.tickets[unit] = members_.submit(source.member, [source, record, unit, read, c, check = blocks_, first = seen.first_block,
                                                       blocks = seen.blocks](MemberHandle& handle) {
    uint64_t bytes = 0;
    if (check.any_written(record, unit, first, blocks)) {
      bytes = source.stored(first * c, read->buffer.size());
      HF_TRY(handle.read(source.object, source.offset + first * c, read->buffer.span().first(bytes)));
    }
    std::memset(read->buffer.data() + bytes, 0, read->buffer.size() - bytes);
    for (uint32_t i = 0; i < blocks; ++i) {
      const ByteSpan content = read->buffer.span().subspan(i * c, c);
      if (!check.written(record, unit, first + i)) std::memset(content.data(), 0, c);
      else read->bad[i] = !check.holds(record, unit, first + i, content);
    }
    return Status();
  });
}

void RowIo::finish_range(const RowRecord& record, int unit, Survey& seen) {
  const Status status = std::exchange(seen.tickets[unit], nullptr)->wait();
  const int member = member_of(record.row, unit);
  members_.note_read(member, status.ok(), status.sentence());
  if (status.kind() == Kind::timed_out) members_.lose(member, status);
  // A call that hangs may still be writing to what it owns: its answer is not looked at again.
  if (!status.ok()) seen.reads[unit] = std::make_shared<RangeRead>(0);
  seen.reads[unit]->status = status;
}

std::vector<std::shared_ptr<RowIo::RangeRead>> RowIo::read_units(const RowRecord& record, uint32_t first_block, uint32_t blocks, uint64_t members) {
  const int width = geometry_.scheme.width();
  Survey seen(first_block, blocks, width);
  for (int unit = 0; unit < width; ++unit)
    if (members >> member_of(record.row, unit) & 1) start_range(record, unit, seen);
  for (int unit = 0; unit < width; ++unit) {
    if (seen.tickets[unit]) {
      finish_range(record, unit, seen);
    } else {
      seen.reads[unit] = std::make_shared<RangeRead>(0);
      seen.reads[unit]->status = Status(Kind::lost, members_.why(member_of(record.row, unit)));
    }
  }
  return std::move(seen.reads);
}

// The wanted units first (they may be whole), then other data, then redundancy; members that failed lately last.
std::vector<int> RowIo::reading_order(uint64_t row, uint64_t wanted, uint64_t not_from) const {
  std::vector<int> order;
  for (bool avoided : {false, true})
    for (bool first : {true, false})
      for (int unit = 0; unit < geometry_.scheme.width(); ++unit) {
        const int member = member_of(row, unit);
        if (!(not_from >> unit & 1) && members_.available(member) && bool(wanted >> unit & 1) == first && members_.avoid(member) == avoided)
          order.push_back(unit);
      }
  return order;
}

namespace {
uint64_t mask_of(std::byte* const* into, int width) {
  uint64_t mask = 0;
  for (int unit = 0; unit < width; ++unit) mask |= uint64_t(into[unit] != nullptr) << unit;
  return mask;
}
}  // namespace

void RowIo::survey(const RowRecord& record, std::span<const int> units, Survey& seen) {
  for (int unit : units) start_range(record, unit, seen);
  for (int unit : units) finish_range(record, unit, seen);
}

Status RowIo::reconstruct(const RowRecord& record, uint32_t first_block, uint32_t blocks, std::byte* const* into, uint64_t not_from) {
  const int k = geometry_.scheme.k, width = geometry_.scheme.width();
  const uint32_t done = rebuild_cached(record, first_block, blocks, into, not_from);
  if (done == blocks) return Status();
  std::vector<std::byte*> rest(into, into + width);
  for (std::byte*& at : rest)
    if (at) at += done * geometry_.block_bytes;
  Survey seen(first_block + done, blocks - done, width);
  const std::vector<int> order = reading_order(record.row, mask_of(into, width), not_from);
  const size_t enough = std::min<size_t>(order.size(), size_t(k));
  survey(record, std::span(order).first(enough), seen);
  if (!seen.suffices(k)) survey(record, std::span(order).subspan(enough), seen);
  return rebuild_all(record, seen, rest.data());
}

// As far as everything that is needed lies in memory: read, checked and decoded here and now, a few blocks at a time so that
// they stay in the second-level cache. Returns how many blocks that was; the lanes judge of the rest.
uint32_t RowIo::rebuild_cached(const RowRecord& record, uint32_t first_block, uint32_t blocks, std::byte* const* into, uint64_t not_from) {
  const int k = geometry_.scheme.k, width = geometry_.scheme.width();
  const uint64_t c = geometry_.block_bytes, wanted_mask = mask_of(into, width);
  std::vector<int> survivors = reading_order(record.row, wanted_mask, not_from), wanted;
  if (int(survivors.size()) < k) return 0;
  survivors.resize(k);
  std::sort(survivors.begin(), survivors.end());
  for (int unit = 0; unit < width; ++unit)
    if ((wanted_mask >> unit & 1) && !std::binary_search(survivors.begin(), survivors.end(), unit)) wanted.push_back(unit);
  std::vector<UnitSource> sources;
  for (int unit : survivors) sources.push_back(source_of(record.row, unit));
  const uint32_t step = uint32_t(std::max<uint64_t>(1, cached_chunk_bytes / c));
  static auto* const kept = new ThreadBytes;
  Bytes& scratch = kept->get();
  scratch.resize(uint64_t(k) * step * c);
  std::vector<const std::byte*> from(k);
  std::vector<std::byte*> to(wanted.size());
  for (uint32_t done = 0; done < blocks; done += step) {
    const uint64_t bytes = std::min(step, blocks - done) * c;
    for (int i = 0; i < k; ++i) {
      const int unit = survivors[i];
      const ByteSpan chunk(into[unit] ? into[unit] + done * c : scratch.data() + uint64_t(i) * step * c, bytes);
      if (!read_blocks_cached(sources[i], record, unit, first_block + done, chunk)) return done;
      from[i] = chunk.data();
    }
    for (size_t i = 0; i < wanted.size(); ++i) to[i] = into[wanted[i]] + done * c;
    if (!wanted.empty() && !code_->reconstruct(survivors, from.data(), wanted, to.data(), bytes).ok()) return done;
  }
  return blocks;
}

// Blocks that lack the same units are decoded together.
Status RowIo::rebuild_all(const RowRecord& record, const Survey& seen, std::byte* const* into) {
  for (uint32_t begin = 0; begin < seen.blocks;) {
    uint32_t end = begin + 1;
    while (end < seen.blocks && seen.good(end) == seen.good(begin)) ++end;
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
  if (!gaps_are_zeros_) return lost_row(record.row);
  for (std::byte* out : to) std::memset(out, 0, bytes);
  return Status();
}

}  // namespace holdfast::engine
