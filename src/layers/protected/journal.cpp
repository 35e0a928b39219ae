#include "layers/protected/journal.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <fmt/format.h>

#include "coding/checksum.hpp"
#include "layers/protected/manifest_store.hpp"

namespace holdfast::layers {

namespace {

// An entry: this header, the row's record as in the sums object, then `stored` bytes of the unit.
struct EntryHeader {
  char magic[4];
  int32_t unit;  // -1: the record only, for a member that holds no unit of the row
  uint64_t row;
  uint64_t stored;
  uint64_t record_bytes;
  uint64_t checksum;  // of this header with 0 here, and the record; seeded with the file key
  uint64_t reserved[3];
};
static_assert(sizeof(EntryHeader) == 64);

struct Entry {
  EntryHeader header;
  Bytes record;
  uint64_t payload_offset = 0;
};

uint64_t entry_checksum(EntryHeader header, ByteView record, uint64_t key) {
  header.checksum = 0;
  return coding::plain_checksum(record, coding::plain_checksum(std::as_bytes(std::span(&header, 1)), key));
}

std::string object_name(const catalog::Located& located, int member, const std::string& name) {
  return located.meta_name(member, "journal." + name);
}

// The sound entries of one member's journal, up to the first that is not.
Result<std::vector<Entry>> scan(MemberHandle& handle, const std::string& object, size_t slot_bytes, uint64_t unit_bytes, uint64_t key) {
  std::vector<Entry> entries;
  auto opened = handle.object(object, target::OpenMode::read);
  if (!opened.ok()) return opened.status();
  auto size = (*opened)->size();
  if (!size.ok()) return size.status();
  for (uint64_t at = 0; at + sizeof(EntryHeader) + slot_bytes <= *size;) {
    Entry entry;
    entry.record.resize(slot_bytes);
    Bytes head(sizeof(EntryHeader) + slot_bytes);
    HF_TRY(handle.read(object, at, head));
    std::memcpy(&entry.header, head.data(), sizeof(EntryHeader));
    std::memcpy(entry.record.data(), head.data() + sizeof(EntryHeader), slot_bytes);
    const EntryHeader& header = entry.header;
    if (std::memcmp(header.magic, "HFJ1", 4) != 0 || header.record_bytes != slot_bytes || header.stored > unit_bytes ||
        header.checksum != entry_checksum(header, entry.record, key))
      break;
    entry.payload_offset = at + head.size();
    at = entry.payload_offset + header.stored;
    entries.push_back(std::move(entry));
  }
  return entries;
}

// Runs in a lane: copies a member's entries to where they belong.
Status copy_into_place(MemberHandle& handle, int member, const std::string& object, const catalog::Located& located, size_t slot_bytes,
                       uint64_t key, uint64_t& copied) {
  const layout::Geometry& g = located.manifest.geometry;
  auto entries = scan(handle, object, slot_bytes, g.unit_bytes, key);
  if (!entries.ok()) return entries.status();
  Bytes payload;
  for (const Entry& entry : *entries) {
    const EntryHeader& header = entry.header;
    if (header.unit >= 0) {
      const layout::UnitPlace place = layout::place(g, header.row, header.unit);
      if (header.unit >= g.scheme.width() || place.member != member)
        return Status(Kind::corrupt, fmt::format("{} names a unit that does not belong there", object));
      payload.resize(header.stored);
      HF_TRY(handle.read(object, entry.payload_offset, payload));
      HF_TRY(handle.write(located.data_name(place.object), place.offset, payload));
    }
    HF_TRY(handle.write(located.meta_name(member, "sums"), header.row * slot_bytes, entry.record));
    ++copied;
  }
  return Status();
}

}  // namespace

Journal::Journal(Members& members, RecordStore& records, const catalog::Located& located, std::string name)
    : members_(members), records_(records), located_(located), name_(std::move(name)), ends_(members.count()) {}

Status Journal::append(std::span<const CodedRow> rows) {
  const layout::Geometry& g = located_.manifest.geometry;
  for (const CodedRow& row : rows) {
    const Bytes record = records_.encode(std::span(&row.record, 1));
    members_.each([&](int member) -> MemberCall {
      EntryHeader header{};
      std::memcpy(header.magic, "HFJ1", 4);
      header.unit = -1;
      header.row = row.record.row;
      header.record_bytes = record.size();
      for (int u = 0; u < g.scheme.width(); ++u)
        if (layout::place(g, row.record.row, u).member == member) header.unit = u;
      if (header.unit >= 0) header.stored = row.stored[header.unit];
      header.checksum = entry_checksum(header, record, records_.key());
      auto head = std::make_shared<Bytes>(sizeof header + record.size());
      std::memcpy(head->data(), &header, sizeof header);
      std::copy(record.begin(), record.end(), head->begin() + sizeof header);
      const std::byte* unit = header.unit >= 0 ? row.units[header.unit] : nullptr;
      const uint64_t at = ends_[member];
      ends_[member] += head->size() + header.stored;
      return [head, unit, stored = header.stored, keep = row.redundancy, at,
              object = object_name(located_, member, name_)](MemberHandle& handle) {
        iovec vectors[2] = {{head->data(), head->size()}, {const_cast<std::byte*>(unit), size_t(stored)}};
        return handle.write(object, at, std::span<const iovec>(vectors, stored ? 2 : 1));
      };
    });
    records_written_.push_back(row.record);
  }
  return check_losses(members_, located_.manifest);
}

void Journal::fold() {
  replay_journal(members_, records_, located_, name_);
  for (const layout::RowRecord& record : records_written_) records_.remember(record);
}

void Journal::remove() {
  if (empty()) return;
  remove_journal(members_, located_, name_);
  records_written_.clear();
}

uint64_t replay_journal(Members& members, RecordStore& records, const catalog::Located& located, const std::string& name) {
  auto copied = std::make_shared<std::atomic<uint64_t>>(0);
  auto plan = std::make_shared<const catalog::Located>(located);  // a call that hangs outlives the file
  members.each([&](int member) -> MemberCall {
    return [copied, plan, member, object = object_name(located, member, name), slot = records.slot_bytes(),
            key = records.key()](MemberHandle& handle) {
      uint64_t mine = 0;
      Status status = copy_into_place(handle, member, object, *plan, slot, key, mine);
      *copied += mine;
      // No journal there: this member had nothing to be folded in, or it was folded in before.
      return status.kind() == Kind::not_found ? Status() : status;
    };
  });
  records.forget_all();
  return *copied;
}

void overlay_journal(Members& members, RecordStore& records, const catalog::Located& located, const std::string& name, RowIo& rows) {
  auto found = std::make_shared<std::vector<std::vector<Entry>>>(members.count());
  std::vector<Status> answers = members.ask_each([&](int member) -> MemberCall {
    return [found, member, object = object_name(located, member, name), slot = records.slot_bytes(), key = records.key(),
            unit_bytes = located.manifest.geometry.unit_bytes](MemberHandle& handle) {
      auto entries = scan(handle, object, slot, unit_bytes, key);
      if (!entries.ok()) return entries.status();
      (*found)[member] = std::move(*entries);
      return Status();
    };
  });
  for (int member = 0; member < members.count(); ++member) {
    if (!answers[member].ok() || !members.available(member)) continue;
    for (const Entry& entry : (*found)[member]) {
      auto record = layout::decode_record(located.manifest.geometry, records.key(), entry.header.row, entry.record);
      if (!record.ok()) continue;
      if (entry.header.unit >= 0)
        rows.journal[{entry.header.row, entry.header.unit}] = {object_name(located, member, name), entry.payload_offset,
                                                               entry.header.stored};
      auto& known = rows.journal_records[entry.header.row];
      if (record->generation >= known.generation) known = std::move(*record);
    }
  }
}

void remove_journal(Members& members, const catalog::Located& located, const std::string& name) {
  members.ask_each([&](int member) -> MemberCall {
    return [object = object_name(located, member, name)](MemberHandle& handle) {
      handle.forget(object);
      return handle.target().remove(object);
    };
  });
}

}  // namespace holdfast::layers
