// The blocks of a row's units as the row's record describes them. A value of its own, for lanes take it with them.
#pragma once
#include "coding/checksum.hpp"
#include "layout/geometry.hpp"
#include "layout/row_record.hpp"

namespace holdfast::engine {

// A checksum entry of 0 says that the block was never written: zeros, and nothing to read. A real checksum is never 0.
class RowBlocks {
 public:
  RowBlocks(const layout::Geometry& geometry, uint64_t key) : key_(key), bytes_(geometry.block_bytes), per_unit_(geometry.blocks_per_unit()) {}

  uint64_t key() const { return key_; }
  uint64_t bytes() const { return bytes_; }
  uint32_t per_unit() const { return per_unit_; }
  uint64_t entry(uint64_t row, int unit, uint64_t block, ByteView content) const {
    return entry_of(coding::block_checksum(key_, row, unit, uint32_t(block), content));
  }
  static uint64_t entry_of(uint64_t checksum) { return checksum ? checksum : 1; }
  uint64_t entry(const layout::RowRecord& record, int unit, uint64_t block) const { return record.checksums[size_t(unit) * per_unit_ + block]; }
  bool written(const layout::RowRecord& record, int unit, uint64_t block) const { return entry(record, unit, block) != 0; }
  bool any_written(const layout::RowRecord& record, int unit, uint64_t first, uint64_t count) const {
    for (uint64_t i = 0; i < count; ++i)
      if (written(record, unit, first + i)) return true;
    return false;
  }
  // Of a block that was written.
  bool holds(const layout::RowRecord& record, int unit, uint64_t block, ByteView content) const {
    return entry(record, unit, block) == entry(record.row, unit, block, content);
  }

 private:
  uint64_t key_, bytes_;
  uint32_t per_unit_;
};

// Bytes of the unit that are written for a file of `size` bytes: whole blocks. And how many must be there at least: plain objects end with the
// file. The rest of the unit is zeros.
uint64_t stored_bytes(const layout::Geometry& geometry, const layout::RowRecord& record, int unit, uint64_t size);
uint64_t needed_bytes(const layout::Geometry& geometry, const layout::RowRecord& record, int unit, uint64_t size);

}  // namespace holdfast::engine
