#include "engine/row_writer.hpp"

#include <algorithm>

#include "engine/row_sources.hpp"

namespace holdfast::engine {

using layout::RowRecord;
using layout::UnitPlace;

namespace {

using Writes = std::vector<MemberHandle::Write>;

// `end`: where the last one ends.
void append(Writes& writes, uint64_t& end, const std::string& object, uint64_t offset, const std::byte* from, uint64_t bytes) {
  if (bytes == 0) return;
  const iovec vector{const_cast<std::byte*>(from), size_t(bytes)};
  if (!writes.empty() && writes.back().name == object && end == offset) writes.back().from.push_back(vector);
  else writes.push_back({object, offset, {vector}});
  end = offset + bytes;
}

// The rows' records as runs of consecutive slots: offset in the sums object, and the bytes.
using Sums = std::vector<std::pair<uint64_t, Bytes>>;

Sums sums_of(std::span<const RowRecord* const> rows, const RecordStore& records) {
  Sums sums;
  std::vector<RowRecord> run;
  auto end_run = [&] {
    sums.emplace_back(run.front().row * records.slot_bytes(), records.encode(run));
    run.clear();
  };
  for (const RowRecord* record : rows) {
    if (!run.empty() && run.back().row + 1 != record->row) end_run();
    run.push_back(*record);
  }
  end_run();
  return sums;
}

// By member what it gets of the rows' records; null where that is nothing.
std::vector<std::shared_ptr<const Sums>> sums_by_member(std::span<const CodedRow> rows, const RecordStore& records, const layout::Geometry& g) {
  std::vector<std::vector<const RowRecord*>> of_member(g.is_wide() ? size_t(g.members) : 1);
  for (const CodedRow& row : rows) {
    if (!g.is_wide()) of_member[0].push_back(&row.record);
    else
      for (const int member : records.holders(row.record.row)) of_member[size_t(member)].push_back(&row.record);
  }
  std::vector<std::shared_ptr<const Sums>> sums(size_t(g.members));
  if (!g.is_wide()) return std::fill(sums.begin(), sums.end(), std::make_shared<const Sums>(sums_of(of_member[0], records))), sums;
  for (size_t member = 0; member < sums.size(); ++member)
    if (!of_member[member].empty()) sums[member] = std::make_shared<const Sums>(sums_of(of_member[member], records));
  return sums;
}

}  // namespace

RowWriter::RowWriter(Members& members, RecordStore& records, const catalog::Located& located)
    : members_(members),
      records_(records),
      located_(located),
      geometry_(located.manifest.geometry),
      code_(coding::Code::make(geometry_.scheme.k, geometry_.scheme.m)),
      blocks_(geometry_, records.key()) {}

// The units of a row and how much of each is stored; memory for redundancy that has to be computed.
CodedRow RowWriter::lay_out(const RowImage& image, uint64_t generation) const {
  const int k = geometry_.scheme.k, m = geometry_.scheme.m;
  const uint64_t s = geometry_.unit_bytes, c = geometry_.block_bytes;
  CodedRow row;
  row.record.row = image.row;
  row.record.generation = generation;
  row.record.checksums.assign(size_t(k + m) * geometry_.blocks_per_unit(), 0);
  row.units.assign(image.data.begin(), image.data.end());
  for (int u = 0; u < k; ++u) {
    const uint64_t begin = uint64_t(u) * s;
    // Whole blocks: what lay there before must not show through behind the end of file.
    row.stored.push_back(image.valid > begin ? std::min(s, round_up(image.valid - begin, c)) : 0);
  }
  if (k > 1) row.redundancy = std::make_shared<Buffer>(uint64_t(m) * s);
  for (int j = 0; j < m; ++j) {
    row.units.push_back(k == 1 ? image.data[0] : row.redundancy->data() + uint64_t(j) * s);
    row.stored.push_back(row.stored[0]);  // the first unit reaches as far as any
  }
  return row;
}

CodedRow RowWriter::code(const RowImage& image, uint64_t generation) const {
  const int k = geometry_.scheme.k, m = geometry_.scheme.m;
  const uint64_t c = geometry_.block_bytes;
  CodedRow row = lay_out(image, generation);
  // Block by block, so that a column is coded and checksummed while it is in the cache.
  std::vector<const std::byte*> from(k);
  std::vector<std::byte*> into(m);
  for (uint32_t block = 0; block * c < row.stored[0]; ++block) {
    const uint64_t at = block * c;
    for (int u = 0; u < k; ++u) from[u] = image.data[u] + at;
    if (k > 1) {
      for (int j = 0; j < m; ++j) into[j] = row.redundancy->data() + uint64_t(j) * geometry_.unit_bytes + at;
      code_->encode(from.data(), into.data(), c);
    }
    for (int u = 0; u < k + m; ++u)
      if (at < row.stored[u])
        row.record.checksums[size_t(u) * blocks_.per_unit() + block] = blocks_.entry(image.row, u, block, ByteView(row.units[u] + at, c));
  }
  return row;
}

Status RowWriter::write_in_place(std::span<const CodedRow> rows) {
  if (rows.empty()) return Status();
  Members::Begun begun = begin_in_place(rows);
  return finish_in_place(rows, begun);
}

Members::Begun RowWriter::begin_in_place(std::span<const CodedRow> rows) {
  const int width = geometry_.scheme.width();
  std::vector<Writes> writes(members_.count());
  std::vector<uint64_t> ends(members_.count());
  auto keep = std::make_shared<std::vector<std::shared_ptr<Buffer>>>();
  for (const CodedRow& row : rows) {
    keep->push_back(row.redundancy);
    for (int u = 0; u < width; ++u) {
      UnitPlace at = layout::place(geometry_, row.record.row, u);
      append(writes[at.member], ends[at.member], located_.data_name(at.object), at.offset, row.units[u], row.stored[u]);
    }
  }
  const auto all_sums = sums_by_member(rows, records_, geometry_);
  return members_.begin_each([&](int member) -> MemberCall {
    const std::shared_ptr<const Sums>& sums = all_sums[size_t(member)];
    if (!sums) return {};
    return [writes = std::move(writes[member]), sums, keep, name = records_.object_name(member)](MemberHandle& handle) {
      Writes now = writes;
      if (handle.caches_by_node()) {  // whoever sees the record, on whichever node, sees what it describes
        HF_TRY(handle.write_together(std::exchange(now, {})));
        HF_TRY(handle.write_back());
      }
      for (const auto& [offset, bytes] : *sums) now.push_back({name, offset, {{const_cast<std::byte*>(bytes.data()), bytes.size()}}});
      return handle.write_together(std::move(now));
    };
  });
}

Status RowWriter::finish_in_place(std::span<const CodedRow> rows, Members::Begun& begun) {
  members_.wait_all(begun);
  note_missed(rows);
  for (const CodedRow& row : rows) {
    HF_TRY(check_arrived(row.record));
    records_.remember(row.record);
  }
  return Status();
}

Status RowWriter::check_arrived(const RowRecord& record) {
  int lost = 0;
  for (int unit = 0; unit < geometry_.scheme.width(); ++unit) lost += !members_.available(layout::place(geometry_, record.row, unit).member);
  if (lost <= geometry_.scheme.m) return Status();
  members_.give_up();  // no row can be made up from what is left
  return lost_row(members_, located_.manifest, record.row, members_.lost_for_space() ? Kind::no_space : Kind::lost);
}

}  // namespace holdfast::engine
