#include "engine/row_rebuilder.hpp"

#include <cstring>
#include <utility>

namespace holdfast::engine {

using layout::RowRecord;

namespace {
constexpr uint64_t rebuilt_at_once_bytes = 64 << 10;  // per unit, when all is in memory

uint64_t mask_of(std::byte* const* into, int width) {
  uint64_t mask = 0;
  for (int unit = 0; unit < width; ++unit) mask |= uint64_t(into[unit] != nullptr) << unit;
  return mask;
}

// Whether a unit's blocks verify, as the agent says that has them.
Status look(MemberHandle& handle, const UnitSource& source, const RowBlocks& check, const RowRecord& record, int unit, uint32_t first,
            UnitBlocks& read) {
  const uint32_t blocks = uint32_t(read.bad.size());
  const uint64_t c = check.bytes();
  if (source.stored(first * c, blocks * c) < blocks * c) return Status(Kind::unsupported, "it is read");
  const auto sums = handle.checksums(source.object, {source.offset + first * c, blocks, uint32_t(c), check.key(), record.row, unit, first});
  if (!sums.ok()) return sums.status();
  for (uint32_t i = 0; i < blocks; ++i)
    read.bad[i] = check.written(record, unit, first + i) && check.entry(record, unit, first + i) != RowBlocks::entry_of((*sums)[i]);
  return Status();
}
}  // namespace

RowRebuilder::RowRebuilder(Members& members, const catalog::Located& located, const RowSources& sources)
    : members_(members), located_(located), sources_(sources), code_(coding::Code::make(sources.geometry().scheme.k, sources.geometry().scheme.m)) {}

void RowRebuilder::start(const RowRecord& record, int unit, Survey& seen) {
  const uint64_t c = sources_.blocks().bytes();
  const UnitSource source = sources_.of(record.row, unit);
  const auto read = std::make_shared<UnitBlocks>(seen.blocks * c);
  read->bad.assign(seen.blocks, false);
  seen.reads[unit] = read;
  // The call owns what it fills in as well, for it may hang.
  seen.tickets[unit] = members_.submit(source.member, [source, record, unit, read, c, check = sources_.blocks(), first = seen.first_block,
                                                       blocks = seen.blocks, only_look = seen.only_look](MemberHandle& handle) {
    if (only_look && check.any_written(record, unit, first, blocks)) {
      const Status looked = look(handle, source, check, record, unit, first, *read);
      if (looked.kind() != Kind::unsupported) return looked;
    }
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

void RowRebuilder::finish(const RowRecord& record, int unit, Survey& seen) {
  const Status status = std::exchange(seen.tickets[unit], nullptr)->wait();
  const int member = sources_.member_of(record.row, unit);
  members_.note_read(member, status.ok(), status.sentence());
  if (status.kind() == Kind::timed_out) members_.lose(member, status);
  // A call that hangs may still be writing to what it owns: its answer is not looked at again.
  if (!status.ok()) seen.reads[unit] = std::make_shared<UnitBlocks>(0);
  seen.reads[unit]->status = status;
}

UnitReads RowRebuilder::read_units(const RowRecord& record, uint32_t first_block, uint32_t blocks, const MemberSet& members) {
  Survey seen(first_block, blocks, sources_.geometry().scheme.width());
  start_units(record, members, seen);
  finish_units(record, seen);
  return std::move(seen.reads);
}

void RowRebuilder::start_units(const RowRecord& record, const MemberSet& members, Survey& seen) {
  for (int unit = 0; unit < sources_.geometry().scheme.width(); ++unit)
    if (members.has(sources_.member_of(record.row, unit))) start(record, unit, seen);
}

void RowRebuilder::finish_units(const RowRecord& record, Survey& seen) {
  for (int unit = 0; unit < sources_.geometry().scheme.width(); ++unit) {
    if (seen.tickets[unit]) {
      finish(record, unit, seen);
    } else {
      seen.reads[unit] = std::make_shared<UnitBlocks>(0);
      seen.reads[unit]->status = Status(Kind::lost, members_.why(sources_.member_of(record.row, unit)));
    }
  }
}

void RowRebuilder::survey(const RowRecord& record, std::span<const int> units, Survey& seen) {
  for (int unit : units) start(record, unit, seen);
  for (int unit : units) finish(record, unit, seen);
}

Status RowRebuilder::reconstruct(const RowRecord& record, uint32_t first_block, uint32_t blocks, std::byte* const* into) {
  const int k = sources_.geometry().scheme.k, width = sources_.geometry().scheme.width();
  const uint32_t done = rebuild_cached(record, first_block, blocks, into);
  if (done == blocks) return Status();
  std::vector<std::byte*> rest(into, into + width);
  for (std::byte*& at : rest)
    if (at) at += done * sources_.geometry().block_bytes;
  Survey seen(first_block + done, blocks - done, width);
  const std::vector<int> order = sources_.reading_order(record.row, mask_of(into, width));
  const size_t enough = std::min<size_t>(order.size(), size_t(k));
  survey(record, std::span(order).first(enough), seen);
  if (!seen.suffices(k)) survey(record, std::span(order).subspan(enough), seen);
  return rebuild(record, seen, rest.data());
}

// As far as everything that is needed lies in memory. It is read, checked and decoded here and now, a few blocks at a time so that they stay in the
// second-level cache. Returns how many blocks that was; the lanes judge of the rest.
uint32_t RowRebuilder::rebuild_cached(const RowRecord& record, uint32_t first_block, uint32_t blocks, std::byte* const* into) {
  const int k = sources_.geometry().scheme.k, width = sources_.geometry().scheme.width();
  const uint64_t c = sources_.geometry().block_bytes, wanted_mask = mask_of(into, width);
  std::vector<int> survivors = sources_.reading_order(record.row, wanted_mask), wanted;
  if (int(survivors.size()) < k) return 0;
  survivors.resize(k);
  std::sort(survivors.begin(), survivors.end());
  for (int unit = 0; unit < width; ++unit)
    if ((wanted_mask >> unit & 1) && !std::binary_search(survivors.begin(), survivors.end(), unit)) wanted.push_back(unit);
  std::vector<UnitSource> sources;
  for (int unit : survivors) sources.push_back(sources_.of(record.row, unit));
  const uint32_t step = uint32_t(std::max<uint64_t>(1, rebuilt_at_once_bytes / c));
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
      if (!sources_.read_blocks_cached(sources[i], record, unit, first_block + done, chunk)) return done;
      from[i] = chunk.data();
    }
    for (size_t i = 0; i < wanted.size(); ++i) to[i] = into[wanted[i]] + done * c;
    if (!wanted.empty() && !code_->reconstruct(survivors, from.data(), wanted, to.data(), bytes).ok()) return done;
  }
  return blocks;
}

// Blocks that lack the same units are decoded together.
Status RowRebuilder::rebuild(const RowRecord& record, const Survey& seen, std::byte* const* into) {
  for (uint32_t begin = 0; begin < seen.blocks;) {
    uint32_t end = begin + 1;
    while (end < seen.blocks && seen.good(end) == seen.good(begin)) ++end;
    HF_TRY(rebuild_columns(record, seen, begin, end, into));
    begin = end;
  }
  return Status();
}

// The members whose block was read and does not verify.
std::vector<int> RowRebuilder::damaged(const RowRecord& record, const Survey& seen, uint32_t block) const {
  std::vector<int> members;
  for (int unit = 0; unit < sources_.geometry().scheme.width(); ++unit)
    if (seen.reads[unit] && seen.reads[unit]->status.ok() && seen.reads[unit]->bad[block]) members.push_back(sources_.member_of(record.row, unit));
  return members;
}

// Blocks [begin, end) of the surveyed range, all of which lack the same units.
Status RowRebuilder::rebuild_columns(const RowRecord& record, const Survey& seen, uint32_t begin, uint32_t end, std::byte* const* into) {
  const uint64_t c = sources_.geometry().block_bytes, at = begin * c, bytes = (end - begin) * c, good = seen.good(begin);
  std::vector<int> survivors, wanted;
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (int unit = 0; unit < sources_.geometry().scheme.width(); ++unit) {
    const bool whole = good >> unit & 1;
    if (whole && int(survivors.size()) < sources_.geometry().scheme.k) {
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
  if (int(survivors.size()) == sources_.geometry().scheme.k) return code_->reconstruct(survivors, from.data(), wanted, to.data(), bytes);
  if (!gaps_are_zeros_) return lost_row(members_, located_.manifest, record.row, Kind::lost, damaged(record, seen, begin));
  for (std::byte* out : to) std::memset(out, 0, bytes);
  return Status();
}

}  // namespace holdfast::engine
