#include "engine/inspector.hpp"

#include "engine/waiting.hpp"

namespace holdfast::engine {

MemberSet usable_in(const catalog::Located& located) {
  MemberSet usable;
  for (const catalog::Member& member : located.members)
    if (member.usable()) usable.add(member.index);
  return usable;
}

Inspector::Inspector(const catalog::Located& where, const Settings& settings)
    : located(where),
      members(located),
      records(members, located),
      journals(members, records, located),
      rows(members, records, located, journals, *this, 0),
      status(read_manifest_and_journals(settings)) {}

// Who holds no lock may read the manifest before a commit takes the journals away, and look for them after.
Status Inspector::read_manifest_and_journals(const Settings& settings) {
  for (int again = 0; again < most_looks_again; ++again) {
    auto read = read_manifest(members, located, settings);
    if (!read.ok()) return read.status();
    const bool same = again > 0 && read->manifest.epoch == reading.manifest.epoch;
    reading = std::move(*read);
    lose_stale_members(members, reading);
    located.manifest = reading.manifest;
    journals.forget();
    if (journals.follow_manifest() || same) break;
  }
  return Status();
}

std::vector<Bytes> Inspector::slots(uint64_t row, const MemberSet& of) { return read_slots(members, records, row, of); }

std::vector<Bytes> read_slots(Members& members, const RecordStore& records, uint64_t row, const MemberSet& of) {
  SlotReads reads = begin_to_read_slots(members, records, row, of);
  return slots_of(reads);
}

SlotReads begin_to_read_slots(Members& members, const RecordStore& records, uint64_t row, const MemberSet& of) {
  SlotReads reads{std::make_shared<std::vector<Bytes>>(members.count()), {}};
  for (const int member : of)
    reads.tickets.emplace_back(member, members.submit(member, [found = reads.found, member, name = records.object_name(member),
                                                               at = row * records.slot_bytes(), bytes = records.slot_bytes()](MemberHandle& handle) {
      Bytes slot(bytes);
      auto object = handle.object(name, target::OpenMode::read);
      if (!object.ok()) return object.status();
      iovec into{slot.data(), slot.size()};
      auto got = (*object)->read(at, std::span<const iovec>(&into, 1));
      if (!got.ok()) return got.status();
      if (*got == bytes) (*found)[member] = std::move(slot);
      return Status();
    }));
  return reads;
}

std::vector<Bytes> slots_of(SlotReads& reads) {
  std::vector<Bytes> answer(reads.found->size());
  for (auto& [member, ticket] : reads.tickets)
    if (ticket->wait().ok()) answer[size_t(member)] = (*reads.found)[size_t(member)];
  return answer;
}

}  // namespace holdfast::engine
