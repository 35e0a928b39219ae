#include "engine/row_sources.hpp"

#include <cstring>

#include <fmt/format.h>

#include "engine/out_of_reach.hpp"

namespace holdfast::engine {

using layout::RowRecord;
using layout::UnitPlace;

namespace {
constexpr uint64_t cached_chunk_bytes = 256 << 10;  // stays in the second-level cache between read, check and copy
}  // namespace

RowSources::RowSources(Members& members, RecordStore& records, const catalog::Located& located, const JournalOverlay& journals, int rank)
    : members_(members),
      records_(records),
      located_(located),
      journals_(journals),
      geometry_(located.manifest.geometry),
      blocks_(geometry_, records.key()),
      rank_(rank) {}

Result<RowRecord> RowSources::record(uint64_t row) {
  HF_TRY(journals_.unread());
  if (!in_place_)
    if (const RowRecord* in_journal = journals_.record_of(row)) return *in_journal;
  auto record = records_.get(row);
  if (!record.ok()) return record;
  // A synced record beyond the rows that the manifest knows was cut off by set_size; it must not come back.
  if (row >= located_.manifest.rows && located_.manifest.is_synced(record->generation)) return RowRecord{row, 0, {}};
  return record;
}

UnitSource RowSources::of(uint64_t row, int unit) const {
  const UnitPlace place = layout::place(geometry_, row, unit);
  const JournalPlace* in_journal = in_place_ ? nullptr : journals_.place_of(row, unit);
  if (in_journal) return {place.member, in_journal->object, in_journal->offset, in_journal->stored_bytes};
  return {place.member, located_.data_name(place.object), place.offset};
}

bool RowSources::lacks_unit(uint64_t row, int first_unit, int last_unit) const {
  for (int unit = first_unit; unit <= last_unit; ++unit) {
    const int member = member_of(row, unit);
    if (!members_.available(member) || members_.avoid(member)) return true;
  }
  return false;
}

int RowSources::pick_copy(uint64_t row) const {
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

std::vector<int> RowSources::reading_order(uint64_t row, uint64_t wanted, uint64_t but) const {
  std::vector<int> order;
  for (bool avoided : {false, true})
    for (bool first : {true, false})
      for (int unit = 0; unit < geometry_.scheme.width(); ++unit) {
        const int member = member_of(row, unit);
        if (!(but >> unit & 1) && members_.available(member) && bool(wanted >> unit & 1) == first && members_.avoid(member) == avoided)
          order.push_back(unit);
      }
  return order;
}

uint64_t RowSources::read_part_cached(const UnitSource& source, const RowRecord& record, int unit, uint64_t offset, uint64_t length,
                                      std::byte* into) const {
  static auto* const kept = new ThreadBytes;
  Bytes& scratch = kept->get();
  const uint64_t c = geometry_.block_bytes, end = offset + length;
  uint64_t at = offset;
  while (at < end) {
    const uint64_t block = at / c, begin = block * c;
    const bool partial = at != begin || end - begin < c;
    const uint64_t count = partial ? 1 : std::min(std::max<uint64_t>(1, cached_chunk_bytes / c), (end - begin) / c);
    if (partial) scratch.resize(c);
    const ByteSpan content(partial ? scratch.data() : into + (at - offset), count * c);
    if (!read_blocks_cached(source, record, unit, block, content)) break;
    const uint64_t taken = std::min(end, begin + count * c) - at;
    if (partial) std::memcpy(into + (at - offset), scratch.data() + (at - begin), taken);
    at += taken;
  }
  return at - offset;
}

bool RowSources::read_blocks_cached(const UnitSource& source, const RowRecord& record, int unit, uint64_t block, ByteSpan into) const {
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

Status lost_row(const Members& members, const layout::Manifest& manifest, uint64_t row, Kind kind, std::span<const int> damaged) {
  const layout::Scheme& scheme = manifest.geometry.scheme;
  std::string which = members.describe_lost();
  for (const int member : damaged) which += fmt::format("{}{} (it is damaged there)", which.empty() ? "" : "; ", members.path(member));
  return Status(kind,
                fmt::format("row {} of {}: more than {} of its {} units are {}: {}", row, manifest.path, scheme.m, scheme.width(),
                            what_missing_ones_are(members), which),
                members.reason());
}

}  // namespace holdfast::engine
