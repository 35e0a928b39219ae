// Rows that late members have not got: which they are, and how a member that has come back gets them from the others.
#include <algorithm>

#include "engine/row_reader.hpp"
#include "engine/row_writer.hpp"

namespace holdfast::engine {

using layout::RowRecord;

namespace {
constexpr size_t most_ranges = 1 << 16;  // of rows; beyond, late members are lost
}

// Also the call that was late counts as missed: it may have ended after its caller had used the memory for something else.
void RowWriter::note_missed(std::span<const CodedRow> rows) {
  if (members_.late().none()) return;
  if (missed_since_ != members_.late_since()) missed_ = {};
  missed_since_ = members_.late_since();
  for (const CodedRow& row : rows) missed_.add(row.record.row, row.record.row + 1);
  if (missed_.ranges().size() > most_ranges) members_.give_up();
}

Status RowWriter::make_up(int member, RowReader& reader) {
  if (!any_missed()) return Status();
  for (const auto& [begin, end] : missed_.ranges())
    for (uint64_t row = begin; row < end; ++row) {
      auto record = records_.get(row);
      if (!record.ok()) return record.status();
      if (!record->hole() && records_.holders(row).has(member)) HF_TRY(make_up_row(member, *record, reader));  // a hole: it was cut off since
    }
  return Status();
}

// The row as it is now, from what verifies on the others; the member's units before its record.
Status RowWriter::make_up_row(int member, const RowRecord& record, RowReader& reader) {
  const int width = geometry_.scheme.width();
  std::vector<std::shared_ptr<Buffer>> units(static_cast<size_t>(width));
  std::vector<std::byte*> into(size_t(width), nullptr);
  for (int unit = 0; unit < width; ++unit) {
    if (layout::place(geometry_, record.row, unit).member != member) continue;
    units[size_t(unit)] = std::make_shared<Buffer>(geometry_.unit_bytes);
    if (!units[size_t(unit)]->valid()) return Status(Kind::internal, "no memory for a unit of a row");
    into[size_t(unit)] = units[size_t(unit)]->data();
  }
  if (std::any_of(into.begin(), into.end(), [](auto* at) { return at != nullptr; })) HF_TRY(reader.reconstruct_in_place(record, into.data()));
  struct UnitWrite {
    std::string object;
    uint64_t offset, bytes;
    std::shared_ptr<Buffer> from;
  };
  std::vector<UnitWrite> writes;
  for (int unit = 0; unit < width; ++unit) {
    const layout::UnitPlace place = layout::place(geometry_, record.row, unit);
    const uint64_t bytes = stored_bytes(geometry_, record, unit, ~0ull);
    if (into[size_t(unit)] && bytes) writes.push_back({located_.data_name(place.object), place.offset, bytes, units[size_t(unit)]});
  }
  return members_
      .submit(member,
              [writes = std::move(writes), sums = records_.object_name(member), at = record.row * records_.slot_bytes(),
               slot = records_.encode(std::span(&record, 1))](MemberHandle& handle) {
                for (const UnitWrite& write : writes) HF_TRY(handle.write(write.object, write.offset, write.from->span().first(write.bytes)));
                return handle.write(sums, at, slot);
              })
      ->wait();
}

}  // namespace holdfast::engine
