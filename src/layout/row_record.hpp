// The record of one row: its generation and the checksums of all its blocks, data and redundancy. Every member holds every row's record, in its
// `sums` object at row * slot_bytes, so that a unit is never vouched for by its own target alone. The highest generation of a valid record is the
// row's. A slot of zeros is a row that was never written.
//
// Format 1, little-endian, 32 bytes of header: u32 magic "HFR1", u32 number of checksums, u64 row, u64 generation,
// u64 checksum: XXH3 of the slot's remaining bytes, seeded with the XXH3 of the header (this field zero), which is seeded
// with the file key. Then the checksums, u64 each, unit-major: [unit][block]; zeros up to the slot's end.
// A `dropped` record (number of checksums 0) says that the row was cut off by set_size: a hole of that generation.
#pragma once
#include <vector>

#include "base/bytes.hpp"
#include "layout/geometry.hpp"

namespace holdfast::layout {

struct RowRecord {
  uint64_t row = 0;
  uint64_t generation = 0;          // 0: there is none, the row is a hole
  std::vector<uint64_t> checksums;  // width * blocks_per_unit, or empty for a dropped row
  bool hole() const { return checksums.empty(); }
  bool operator==(const RowRecord&) const = default;
};

size_t record_slot_bytes(const Geometry& geometry);  // multiple of 64
// Writes exactly record_slot_bytes.
void encode_record(const Geometry& geometry, uint64_t file_key, const RowRecord& record, std::byte* slot);
// generation 0 for an empty slot (zeros, or the object ends before it); Kind::corrupt for one that is damaged, another file's or another row's.
Result<RowRecord> decode_record(const Geometry& geometry, uint64_t file_key, uint64_t row, ByteView slot);

}  // namespace holdfast::layout
