#include "engine/journal.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <fmt/format.h>

#include "coding/checksum.hpp"
#include "engine/manifest_store.hpp"
#include "engine/pending.hpp"

namespace holdfast::engine {

namespace {

// An entry: this header, the row's record as in the sums object, `parts` pairs of numbers, then `stored` bytes of the unit.
struct EntryHeader {
  char magic[4];
  int32_t unit;  // -1: the record only, for a member that holds no unit of the row
  uint64_t row;
  uint64_t stored;
  uint64_t record_bytes;
  uint64_t checksum;  // of this header with 0 here, the record and the parts; seeded with the file key
  uint64_t parts;     // 0 in entries of format 1, which have none
  uint64_t time_ns;   // when it was committed; 0 in entries of format 1
  uint64_t reserved;
};
static_assert(sizeof(EntryHeader) == 64);

struct Entry {
  EntryHeader header;
  Bytes record;
  Parts parts;
  uint64_t payload_offset = 0;
};

constexpr uint64_t most_parts = 4096;
constexpr size_t part_bytes = 16;

Bytes encode_parts(std::span<const Part> parts) {
  Bytes bytes(parts.size() * part_bytes);
  for (size_t i = 0; i < parts.size(); ++i) {
    std::memcpy(bytes.data() + i * part_bytes, &parts[i].first, 8);
    std::memcpy(bytes.data() + i * part_bytes + 8, &parts[i].second, 8);
  }
  return bytes;
}

Parts decode_parts(ByteView bytes) {
  Parts parts(bytes.size() / part_bytes);
  for (size_t i = 0; i < parts.size(); ++i) {
    std::memcpy(&parts[i].first, bytes.data() + i * part_bytes, 8);
    std::memcpy(&parts[i].second, bytes.data() + i * part_bytes + 8, 8);
  }
  return parts;
}

uint64_t entry_checksum(EntryHeader header, ByteView record, uint64_t key) {
  header.checksum = 0;
  return coding::plain_checksum(record, coding::plain_checksum(std::as_bytes(std::span(&header, 1)), key));
}

std::string object_name(const catalog::Located& located, int member, const std::string& name) { return located.meta_name(member, "journal." + name); }

bool sound_header(const EntryHeader& header, size_t slot_bytes, uint64_t unit_bytes) {
  const bool magic = std::memcmp(header.magic, "HFJ2", 4) == 0 || (std::memcmp(header.magic, "HFJ1", 4) == 0 && header.parts == 0);
  return magic && header.record_bytes == slot_bytes && header.stored <= unit_bytes && header.parts <= most_parts;
}

// The sound entries of one member's journal, up to the first that is not.
Result<std::vector<Entry>> scan(MemberHandle& handle, const std::string& object, const layout::Geometry& g, size_t slot_bytes, uint64_t key) {
  std::vector<Entry> entries;
  auto opened = handle.object(object, target::OpenMode::read);
  if (!opened.ok()) return opened.status();
  auto size = (*opened)->size();
  if (!size.ok()) return size.status();
  for (uint64_t at = 0; at + sizeof(EntryHeader) + slot_bytes <= *size;) {
    Entry entry;
    Bytes head(sizeof(EntryHeader) + slot_bytes);
    HF_TRY(handle.read(object, at, head));
    std::memcpy(&entry.header, head.data(), sizeof(EntryHeader));
    const EntryHeader& header = entry.header;
    if (!sound_header(header, slot_bytes, g.unit_bytes)) break;
    Bytes body(slot_bytes + header.parts * part_bytes);  // the record and the parts, as the checksum covers them
    HF_TRY(handle.read(object, at + sizeof(EntryHeader), body));
    if (header.checksum != entry_checksum(header, body, key)) break;
    entry.parts = decode_parts(ByteView(body).subspan(slot_bytes));
    if (!std::all_of(entry.parts.begin(), entry.parts.end(), [&](auto& part) { return part.first < part.second && part.second <= g.row_bytes(); }))
      break;
    entry.payload_offset = at + sizeof(EntryHeader) + body.size();
    body.resize(slot_bytes);
    entry.record = std::move(body);
    at = entry.payload_offset + header.stored;
    entries.push_back(std::move(entry));
  }
  return entries;
}

// A journal that has waited for the lone opener may have been overtaken by a later one.
bool in_place_is_newer(MemberHandle& handle, const catalog::Located& located, int member, const Entry& entry, uint64_t key) {
  const layout::Geometry& g = located.manifest.geometry;
  Bytes slot(entry.record.size());
  if (!handle.read(located.meta_name(member, "sums"), entry.header.row * slot.size(), slot).ok()) return false;
  auto there = layout::decode_record(g, key, entry.header.row, slot);
  auto ours = layout::decode_record(g, key, entry.header.row, entry.record);
  return there.ok() && ours.ok() && located.manifest.is_synced(there->generation) && there->generation > ours->generation;
}

// This member had nothing to be folded in, or it was folded in before: unless the target itself is not there.
Status none_there(MemberHandle& handle) { return handle.target().check_identity(); }

// Runs in a lane: copies a member's entries to where they belong.
Status copy_into_place(MemberHandle& handle, int member, const std::string& object, const catalog::Located& located, size_t slot_bytes, uint64_t key,
                       uint64_t& copied) {
  const layout::Geometry& g = located.manifest.geometry;
  auto entries = scan(handle, object, g, slot_bytes, key);
  if (entries.status().kind() == Kind::not_found) return none_there(handle);
  if (!entries.ok()) return entries.status();
  Bytes payload;
  for (const Entry& entry : *entries) {
    const EntryHeader& header = entry.header;
    if (in_place_is_newer(handle, located, member, entry, key)) continue;
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

Status Journal::append(const CodedRow& row, const Parts& parts) {
  if (records_written_.empty()) HF_TRY(begin_anew());
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
  Bytes body = records_.encode(std::span(&row.record, 1));
  const size_t slot_bytes = body.size();
  const Bytes encoded_parts = encode_parts(parts);
  body.insert(body.end(), encoded_parts.begin(), encoded_parts.end());
  members_.each([&](int member) -> MemberCall {
    EntryHeader header{};
    std::memcpy(header.magic, "HFJ2", 4);
    header.unit = -1;
    header.row = row.record.row;
    header.record_bytes = slot_bytes;
    header.parts = parts.size();
    header.time_ns = now;
    for (int u = 0; with_units && u < g.scheme.width(); ++u)
      if (layout::place(g, row.record.row, u).member == member) header.unit = u;
    if (header.unit >= 0) header.stored = row.stored[header.unit];
    header.checksum = entry_checksum(header, body, records_.key());
    auto head = std::make_shared<Bytes>(sizeof header + body.size());
    std::memcpy(head->data(), &header, sizeof header);
    std::copy(body.begin(), body.end(), head->begin() + sizeof header);
    const std::byte* unit = header.unit >= 0 ? row.units[header.unit] : nullptr;
    const uint64_t at = ends_[member];
    ends_[member] += head->size() + header.stored;
    return [head, unit, stored = header.stored, keep = row.redundancy, at, object = object_name(located_, member, name_)](MemberHandle& handle) {
      iovec vectors[2] = {{head->data(), head->size()}, {const_cast<std::byte*>(unit), size_t(stored)}};
      return handle.write(object, at, std::span<const iovec>(vectors, stored ? 2 : 1));
    };
  });
}

Status Journal::append_hole(uint64_t row, uint64_t generation) {
  const int width = located_.manifest.geometry.scheme.width();
  return append(CodedRow{{row, generation, {}}, std::vector<const std::byte*>(width), std::vector<uint64_t>(width), nullptr});
}

// A commit that failed, or a process that died in one, may have left entries under this name.
Status Journal::begin_anew() {
  members_.each([&](int member) -> MemberCall {
    return [object = object_name(located_, member, name_)](MemberHandle& handle) { return handle.resize(object, 0, false); };
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
    return
        [copied, plan, member, object = object_name(located, member, name), slot = records.slot_bytes(), key = records.key()](MemberHandle& handle) {
          uint64_t mine = 0;
          Status status = copy_into_place(handle, member, object, *plan, slot, key, mine);
          *copied += mine;
          return status;
        };
  });
  records.forget_all();
  return *copied;
}

namespace {
// A row with many parts has several entries of one generation, and each member has its own copies of them.
void note_parts(RowIo::Vouched& vouched, const Entry& entry, uint64_t row_bytes) {
  vouched.time_ns = entry.header.time_ns;
  if (entry.parts.empty()) vouched.parts.add(0, row_bytes);
  for (const auto& [begin, end] : entry.parts) vouched.parts.add(begin, end);
}
}  // namespace

bool overlay_journal(Members& members, RecordStore& records, const catalog::Located& located, const std::string& name, RowIo& rows) {
  auto found = std::make_shared<std::vector<std::vector<Entry>>>(members.count());
  std::vector<Status> answers = members.ask_each([&](int member) -> MemberCall {
    return [found, member, object = object_name(located, member, name), slot = records.slot_bytes(), key = records.key(),
            g = located.manifest.geometry](MemberHandle& handle) {
      auto entries = scan(handle, object, g, slot, key);
      if (entries.status().kind() == Kind::not_found) HF_TRY(none_there(handle));
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
      note_parts(rows.journal_parts[entry.header.row][record->generation], entry, located.manifest.geometry.row_bytes());
      auto& known = rows.journal_records[entry.header.row];
      if (record->generation < known.generation) continue;
      if (entry.header.unit >= 0)
        rows.journal[{entry.header.row, entry.header.unit}] = {object_name(located, member, name), entry.payload_offset, entry.header.stored};
      known = std::move(*record);
    }
  }
  // A target that fails says nothing: where nobody has shown it, it may be gone. Where all fail it may as well be there.
  bool anywhere = false, gone = false;
  Status failure(Kind::lost, fmt::format("{}: no target is left that could show what others have synced", located.manifest.path));
  for (int member = 0; member < members.count(); ++member) {
    if (!members.available(member)) continue;
    anywhere |= answers[member].ok();
    gone |= answers[member].kind() == Kind::not_found;
    if (!answers[member].ok()) failure = answers[member];
  }
  if (!anywhere && !gone) rows.unread_journal = failure;
  return anywhere;
}

void sync_journal(Members& members, const catalog::Located& located, const std::string& name) {
  members.each([&](int member) -> MemberCall {
    return [object = object_name(located, member, name)](MemberHandle& handle) {
      auto opened = handle.object(object, target::OpenMode::write);
      if (opened.status().kind() == Kind::not_found) return none_there(handle);
      return opened.ok() ? (*opened)->sync() : opened.status();
    };
  });
}

void remove_journal(Members& members, const catalog::Located& located, const std::string& name) {
  members.ask_each([&](int member) -> MemberCall {
    return [object = object_name(located, member, name)](MemberHandle& handle) {
      handle.forget(object);
      return handle.target().remove(object);
    };
  });
}

}  // namespace holdfast::engine
