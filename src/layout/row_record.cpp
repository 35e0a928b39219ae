#include "layout/row_record.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include <fmt/format.h>

#include "coding/checksum.hpp"

namespace holdfast::layout {

static_assert(std::endian::native == std::endian::little);  // numbers are stored as they lie in memory

namespace {

constexpr uint32_t magic = 0x31524648;  // "HFR1" in memory

struct Header {
  uint32_t magic = 0;
  uint32_t count = 0;
  uint64_t row = 0;
  uint64_t generation = 0;
  uint64_t checksum = 0;
};
static_assert(sizeof(Header) == 32);

size_t checksum_count(const Geometry& g) { return size_t(g.scheme.width()) * g.blocks_per_unit(); }

// The whole slot but its checksum field, which counts as its own seed.
uint64_t slot_checksum(uint64_t file_key, Header header, ByteView body) {
  header.checksum = 0;
  const uint64_t head = coding::plain_checksum(std::as_bytes(std::span(&header, 1)), file_key);
  return coding::plain_checksum(body, head);
}

bool all_zero(ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

Status damaged(uint64_t row, const char* what) { return Status(Kind::corrupt, fmt::format("the record of row {} is damaged: {}", row, what)); }

}  // namespace

size_t record_slot_bytes(const Geometry& g) { return round_up(sizeof(Header) + 8 * checksum_count(g), 64); }

void encode_record(const Geometry& g, uint64_t file_key, const RowRecord& record, std::byte* slot) {
  const size_t slot_bytes = record_slot_bytes(g), body_bytes = 8 * record.checksums.size();
  assert(record.checksums.empty() || record.checksums.size() == checksum_count(g));
  assert(record.generation != 0);
  Header header{magic, uint32_t(record.checksums.size()), record.row, record.generation, 0};
  std::byte* body = slot + sizeof(Header);
  if (body_bytes) std::memcpy(body, record.checksums.data(), body_bytes);
  std::memset(body + body_bytes, 0, slot_bytes - sizeof(Header) - body_bytes);
  header.checksum = slot_checksum(file_key, header, {body, slot_bytes - sizeof(Header)});
  std::memcpy(slot, &header, sizeof(Header));
}

Result<RowRecord> decode_record(const Geometry& g, uint64_t file_key, uint64_t row, ByteView slot) {
  RowRecord record;
  record.row = row;
  const size_t slot_bytes = record_slot_bytes(g);
  if (slot.size() < slot_bytes) {  // the object ends here: what is not there is zeros
    if (all_zero(slot)) return record;
    return damaged(row, "it is cut off");
  }
  slot = slot.first(slot_bytes);
  Header header;
  std::memcpy(&header, slot.data(), sizeof(Header));
  if (header.magic == 0 && all_zero(slot)) return record;
  if (header.magic != magic) return damaged(row, "it does not begin like one");
  if (header.checksum != slot_checksum(file_key, header, slot.subspan(sizeof(Header))))
    return damaged(row, "its checksum differs, or it belongs to another file");
  if (header.row != row) return damaged(row, "it belongs to another row");
  if (header.generation == 0) return damaged(row, "it has no generation");
  if (header.count != 0 && header.count != checksum_count(g)) return damaged(row, "it has another geometry");
  record.generation = header.generation;
  record.checksums.resize(header.count);
  if (header.count) std::memcpy(record.checksums.data(), slot.data() + sizeof(Header), 8 * size_t(header.count));
  return record;
}

}  // namespace holdfast::layout
