#include "engine/journal.hpp"

#include <algorithm>
#include <atomic>

#include <fmt/format.h>

#include "engine/manifest_store.hpp"
#include "engine/pending.hpp"

namespace holdfast::engine {

namespace {

// A journal that has waited for the lone opener may have been overtaken by a later one.
bool in_place_is_newer(MemberHandle& handle, const catalog::Located& located, int member, const JournalEntry& entry, uint64_t key) {
  const layout::Geometry& g = located.manifest.geometry;
  Bytes slot(entry.record.size());
  if (!handle.read(located.meta_name(member, "sums"), entry.header.row * slot.size(), slot).ok()) return false;
  auto there = layout::decode_record(g, key, entry.header.row, slot);
  auto ours = layout::decode_record(g, key, entry.header.row, entry.record);
  return there.ok() && ours.ok() && located.manifest.is_synced(there->generation) && there->generation > ours->generation;
}

// Runs in a lane: copies a member's entries to where they belong.
Status copy_into_place(MemberHandle& handle, int member, const std::string& object, const catalog::Located& located, size_t slot_bytes, uint64_t key,
                       uint64_t& copied) {
  const layout::Geometry& g = located.manifest.geometry;
  auto entries = scan_journal(handle, object, g, slot_bytes, key);
  if (entries.status().kind() == Kind::not_found) return no_journal_there(handle);
  if (!entries.ok()) return entries.status();
  Bytes payload;
  for (JournalEntry& entry : *entries) {
    const EntryHeader& header = entry.header;
    if (in_place_is_newer(handle, located, member, entry, key)) continue;
    std::vector<MemberHandle::Write> writes;
    if (header.unit >= 0) {
      const layout::UnitPlace place = layout::place(g, header.row, header.unit);
      if (header.unit >= g.scheme.width() || place.member != member)
        return Status(Kind::corrupt, fmt::format("{} names a unit that does not belong there", object));
      payload = std::move(entry.payload);
      if (payload.size() != header.stored) {
        payload.resize(header.stored);
        HF_TRY(handle.read(object, entry.payload_offset, payload));
      }
      writes.push_back({located.data_name(place.object), place.offset, {{payload.data(), payload.size()}}});
    }
    writes.push_back({located.meta_name(member, "sums"), header.row * slot_bytes, {{entry.record.data(), entry.record.size()}}});
    HF_TRY(handle.write_together(std::move(writes)));
    ++copied;
  }
  return Status();
}

}  // namespace

Journal::Journal(Members& members, RecordStore& records, const catalog::Located& located, std::string name)
    : members_(members), records_(records), located_(located), name_(std::move(name)), ends_(members.count()) {}

Status Journal::append(const CodedRow& row, const Parts& parts) {
  if (records_written_.empty()) HF_TRY(begin_anew(records_.holders(row.record.row)));
  const uint64_t now = now_ns();
  // More parts than one entry has room for stand in entries of their own, without units.
  std::span<const Part> rest(parts);
  for (; rest.size() > most_parts; rest = rest.subspan(most_parts)) append_entry(row, rest.first(most_parts), now, false);
  append_entry(row, rest, now, true);
  records_written_.push_back(row.record);
  return check_losses(members_, located_.manifest);
}

void Journal::append_entry(const CodedRow& row, std::span<const Part> parts, uint64_t now, bool with_units) {
  const layout::Geometry& g = located_.manifest.geometry;
  const Bytes record = records_.encode(std::span(&row.record, 1));
  const MemberSet holders = records_.holders(row.record.row);
  members_.each([&](int member) -> MemberCall {
    if (!holders.has(member)) return {};
    EntryHeader header{};
    header.unit = -1;
    header.row = row.record.row;
    header.time_ns = now;
    for (int u = 0; with_units && u < g.scheme.width(); ++u)
      if (layout::place(g, row.record.row, u).member == member) header.unit = u;
    if (header.unit >= 0) header.stored = row.stored[header.unit];
    const auto head = std::make_shared<Bytes>(encode_entry(header, record, parts, records_.key()));
    const std::byte* unit = header.unit >= 0 ? row.units[header.unit] : nullptr;
    const uint64_t at = ends_[member];
    ends_[member] += head->size() + header.stored;
    return [head, unit, stored = header.stored, keep = row.redundancy, at, object = journal_object(located_, member, name_)](MemberHandle& handle) {
      iovec vectors[2] = {{head->data(), head->size()}, {const_cast<std::byte*>(unit), size_t(stored)}};
      return handle.write(object, at, std::span<const iovec>(vectors, stored ? 2 : 1));
    };
  });
}

Status Journal::append_hole(uint64_t row, uint64_t generation) {
  const int width = located_.manifest.geometry.scheme.width();
  return append(CodedRow{{row, generation, {}}, std::vector<const std::byte*>(width), std::vector<uint64_t>(width), nullptr});
}

// A commit that failed, or a process that died in one, may have left entries under this name. `writing`: who is about to get an entry.
Status Journal::begin_anew(const MemberSet& writing) {
  members_.each([&](int member) -> MemberCall {
    return [object = journal_object(located_, member, name_), make = writing.has(member)](MemberHandle& handle) {
      return handle.resize(object, 0, make);
    };
  });
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
    return [copied, plan, member, object = journal_object(located, member, name), slot = records.slot_bytes(),
            key = records.key()](MemberHandle& handle) {
      uint64_t mine = 0;
      Status status = copy_into_place(handle, member, object, *plan, slot, key, mine);
      *copied += mine;
      return status;
    };
  });
  records.forget_all();
  return *copied;
}

void sync_journal(Members& members, const catalog::Located& located, const std::string& name) {
  members.each([&](int member) -> MemberCall {
    return [object = journal_object(located, member, name)](MemberHandle& handle) {
      auto opened = handle.object(object, target::OpenMode::write);
      if (opened.status().kind() == Kind::not_found) return no_journal_there(handle);
      return opened.ok() ? (*opened)->sync() : opened.status();
    };
  });
}

void remove_journal(Members& members, const catalog::Located& located, const std::string& name) {
  members.ask_each([&](int member) -> MemberCall {
    return [object = journal_object(located, member, name)](MemberHandle& handle) {
      handle.forget(object);
      return handle.target().remove(object);
    };
  });
}

}  // namespace holdfast::engine
