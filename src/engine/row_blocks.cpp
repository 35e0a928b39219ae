#include "engine/row_blocks.hpp"

#include <algorithm>

#include "base/bytes.hpp"

namespace holdfast::engine {

using layout::Geometry;
using layout::RowRecord;

uint64_t stored_bytes(const Geometry& geometry, const RowRecord& record, int unit, uint64_t size) {
  // A block without a checksum was never written, whatever the file's size says by now.
  const uint64_t* const entries = record.checksums.data() + size_t(unit) * geometry.blocks_per_unit();
  uint32_t blocks = geometry.blocks_per_unit();
  while (blocks > 0 && entries[blocks - 1] == 0) --blocks;
  const uint64_t s = geometry.unit_bytes, begin = record.row * geometry.row_bytes();
  const uint64_t valid = std::min(geometry.row_bytes(), size > begin ? size - begin : 0);
  const uint64_t at = unit < geometry.scheme.k ? uint64_t(unit) * s : 0;
  const uint64_t in_unit = valid > at ? std::min(s, round_up(valid - at, geometry.block_bytes)) : 0;
  return std::min(in_unit, uint64_t(blocks) * geometry.block_bytes);
}

uint64_t needed_bytes(const Geometry& geometry, const RowRecord& record, int unit, uint64_t size) {
  if (unit >= geometry.scheme.k && geometry.scheme.k > 1) return stored_bytes(geometry, record, unit, size);
  const uint64_t begin = record.row * geometry.row_bytes() + (geometry.scheme.k == 1 ? 0 : uint64_t(unit) * geometry.unit_bytes);
  return std::min(stored_bytes(geometry, record, unit, size), size > begin ? size - begin : 0);
}

}  // namespace holdfast::engine
