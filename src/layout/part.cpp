#include "layout/part.hpp"

#include <cstring>

#include "coding/checksum.hpp"

namespace holdfast::layout {

namespace {

constexpr char record_magic[9] = "HFPART01", note_magic[9] = "HFNOTE01";
constexpr size_t word = sizeof(uint64_t);

// Numbers are little-endian, as this machine is.
class PartWriter {
 public:
  void put(uint64_t number) { put_bytes(&number, word); }
  void put_bytes(const void* from, size_t bytes) {
    const auto* const at = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), at, at + bytes);
  }
  // A checksum of all that is there, and zeros to the end of the page.
  void seal() { put(coding::plain_checksum(bytes_)); }
  void pad() { bytes_.resize(round_up(bytes_.size(), part_page)); }
  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

class PartReader {
 public:
  explicit PartReader(ByteView bytes) : bytes_(bytes) {}
  uint64_t get() {
    uint64_t number = 0;
    get_bytes(&number, word);
    return number;
  }
  void get_bytes(void* into, size_t bytes) {
    if (bytes > bytes_.size() - at_) return void(whole_ = false);
    std::memcpy(into, bytes_.data() + at_, bytes);
    at_ += bytes;
  }
  bool has(const char* magic) {
    char found[word] = "";
    get_bytes(found, word);
    return whole_ && std::memcmp(found, magic, word) == 0;
  }
  // What seal() has put there.
  bool is_sealed() {
    const ByteView before = bytes_.first(at_);
    return get() == coding::plain_checksum(before) && whole_;
  }

 private:
  ByteView bytes_;
  size_t at_ = 0;
  bool whole_ = true;
};

Status no_record() { return Status(Kind::corrupt, "no record of a part begins here"); }
Status no_note() { return Status(Kind::corrupt, "this is no whole note of parts"); }

}  // namespace

Bytes encode(const PartRecord& record) {
  PartWriter head;
  head.put_bytes(record_magic, word);
  for (const uint64_t number :
       {uint64_t(record.extents.size()), record.id, record.number, record.call_bytes, record.begin, record.bytes, record.checksum})
    head.put(number);
  for (const Extent& extent : record.extents) head.put(extent.offset), head.put(extent.length);
  head.seal();
  head.pad();
  return head.take();
}

Result<uint64_t> part_head_of(ByteView page) {
  PartReader head(page);
  if (page.size() < 2 * word || !head.has(record_magic)) return no_record();
  const uint64_t extents = head.get();
  if (extents > most_part_extents) return no_record();
  return part_head_bytes(extents);
}

Result<PartRecord> decode_part_record(ByteView bytes) {
  PartReader head(bytes);
  if (!head.has(record_magic)) return no_record();
  const uint64_t extents = head.get();
  if (extents > most_part_extents || bytes.size() < part_fixed_bytes + extents * sizeof(Extent)) return no_record();
  PartRecord record;
  for (uint64_t* const field : {&record.id, &record.number, &record.call_bytes, &record.begin, &record.bytes, &record.checksum}) *field = head.get();
  uint64_t sum = 0;
  for (uint64_t i = 0; i < extents; ++i) {
    const uint64_t offset = head.get(), length = head.get();
    if (length > record.bytes - sum || offset > uint64_t(INT64_MAX) - length) return no_record();
    sum += length;
    record.extents.push_back({offset, length});
  }
  if (!head.is_sealed() || sum != record.bytes || record.begin > record.call_bytes || record.bytes > record.call_bytes - record.begin)
    return no_record();
  return record;
}

Bytes encode_main(uint64_t id, const PathState& main) {
  PartWriter page;
  for (const uint64_t number : {id, main.device, main.inode, main.size, uint64_t(main.change_ns)}) page.put(number);
  page.seal();
  page.pad();
  return page.take();
}

Bytes encode(const PartNote& note) {
  PartWriter all;
  all.put_bytes(note_magic, word);
  for (const uint64_t number : {note.id, note.teams, uint64_t(note.rank), uint64_t(note.parts.size())}) all.put(number);
  all.put_bytes(note.parts.data(), note.parts.size());
  all.seal();
  Bytes bytes = all.take();
  bytes.resize(note_main_at);
  const Bytes main = encode_main(note.id, note.main);
  bytes.insert(bytes.end(), main.begin(), main.end());
  return bytes;
}

Result<PartNote> decode_part_note(ByteView bytes) {
  PartReader all(bytes);
  if (bytes.size() < note_main_at || !all.has(note_magic)) return no_note();
  PartNote note;
  note.id = all.get(), note.teams = all.get(), note.rank = int(all.get());
  const uint64_t length = all.get();
  if (length > note_main_at) return no_note();
  note.parts.resize(length);
  all.get_bytes(note.parts.data(), length);
  if (!all.is_sealed()) return no_note();
  PartReader main(bytes.subspan(note_main_at));
  PathState state;
  const bool same = main.get() == note.id;
  state.device = main.get(), state.inode = main.get(), state.size = main.get(), state.change_ns = int64_t(main.get());
  if (main.is_sealed() && same) note.main = state;  // it is written anew now and then, and may be torn
  return note;
}

}  // namespace holdfast::layout
