#include "engine/journal_entry.hpp"

#include <algorithm>
#include <cstring>

#include "coding/checksum.hpp"

namespace holdfast::engine {

namespace {

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

bool sound_header(const EntryHeader& header, size_t slot_bytes, uint64_t unit_bytes) {
  const bool magic = std::memcmp(header.magic, "HFJ2", 4) == 0 || (std::memcmp(header.magic, "HFJ1", 4) == 0 && header.parts == 0);
  return magic && header.record_bytes == slot_bytes && header.stored <= unit_bytes && header.parts <= most_parts;
}

}  // namespace

std::string journal_object(const catalog::Located& located, int member, const std::string& name) {
  return located.meta_name(member, "journal." + name);
}

Bytes encode_entry(EntryHeader header, ByteView record, std::span<const Part> parts, uint64_t key) {
  std::memcpy(header.magic, "HFJ2", 4);
  header.record_bytes = record.size();
  header.parts = parts.size();
  Bytes bytes(sizeof header + record.size());
  std::copy(record.begin(), record.end(), bytes.begin() + sizeof header);
  const Bytes encoded_parts = encode_parts(parts);
  bytes.insert(bytes.end(), encoded_parts.begin(), encoded_parts.end());
  header.checksum = entry_checksum(header, ByteView(bytes).subspan(sizeof header), key);
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

namespace {

// A member's journal: all of it where it is small, else piece by piece.
class JournalBytes {
 public:
  static Result<JournalBytes> of(MemberHandle& handle, const std::string& object) {
    JournalBytes journal(handle, object);
    auto opened = handle.object(object, target::OpenMode::read);
    if (!opened.ok()) return opened.status();
    Bytes beginning(small_journal_bytes);
    iovec into{beginning.data(), beginning.size()};
    auto got = (*opened)->read(0, std::span<const iovec>(&into, 1));
    if (!got.ok()) return got.status();
    journal.is_whole_ = *got < beginning.size();
    beginning.resize(journal.is_whole_ ? *got : 0);
    journal.whole_ = std::move(beginning);
    auto size = journal.is_whole_ ? Result<uint64_t>(*got) : (*opened)->size();
    if (!size.ok()) return size.status();
    journal.size_ = *size;
    return journal;
  }
  uint64_t size() const { return size_; }
  bool is_whole() const { return is_whole_; }
  // What it does not have reads as zeros.
  Status read(uint64_t offset, ByteSpan into) const {
    if (!is_whole_) return handle_->read(object_, offset, into);
    const uint64_t from = std::min(offset, size_), count = std::min<uint64_t>(into.size(), size_ - from);
    std::copy_n(whole_.begin() + std::ptrdiff_t(from), count, into.begin());
    std::fill(into.begin() + std::ptrdiff_t(count), into.end(), std::byte(0));
    return {};
  }

 private:
  JournalBytes(MemberHandle& handle, std::string object) : handle_(&handle), object_(std::move(object)) {}
  MemberHandle* handle_;
  std::string object_;
  Bytes whole_;
  bool is_whole_ = false;
  uint64_t size_ = 0;
};

}  // namespace

Result<std::vector<JournalEntry>> scan_journal(MemberHandle& handle, const std::string& object, const layout::Geometry& g, size_t slot_bytes,
                                               uint64_t key) {
  std::vector<JournalEntry> entries;
  auto journal = JournalBytes::of(handle, object);
  if (!journal.ok()) return journal.status();
  for (uint64_t at = 0; at + sizeof(EntryHeader) + slot_bytes <= journal->size();) {
    JournalEntry entry;
    Bytes head(sizeof(EntryHeader) + slot_bytes);
    HF_TRY(journal->read(at, head));
    std::memcpy(&entry.header, head.data(), sizeof(EntryHeader));
    const EntryHeader& header = entry.header;
    if (!sound_header(header, slot_bytes, g.unit_bytes)) break;
    Bytes body(slot_bytes + header.parts * part_bytes);  // the record and the parts, as the checksum covers them
    HF_TRY(journal->read(at + sizeof(EntryHeader), body));
    if (header.checksum != entry_checksum(header, body, key)) break;
    entry.parts = decode_parts(ByteView(body).subspan(slot_bytes));
    if (!std::all_of(entry.parts.begin(), entry.parts.end(), [&](auto& part) { return part.first < part.second && part.second <= g.row_bytes(); }))
      break;
    entry.payload_offset = at + sizeof(EntryHeader) + body.size();
    body.resize(slot_bytes);
    entry.record = std::move(body);
    if (journal->is_whole()) {
      entry.payload.resize(header.stored);
      HF_TRY(journal->read(entry.payload_offset, entry.payload));
    }
    at = entry.payload_offset + header.stored;
    entries.push_back(std::move(entry));
  }
  return entries;
}

Status no_journal_there(MemberHandle& handle) { return handle.target().check_identity(); }

}  // namespace holdfast::engine
