// Cutting extents at the borders of rows.
#pragma once
#include <algorithm>
#include <span>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "engine/row_writer.hpp"

namespace holdfast::engine {

// Calls `each(row, offset in row, length, position in the packed bytes)` for every part of the extents in one row.
template <class Each>
Status for_each_part(std::span<const Extent> extents, uint64_t row_bytes, Each each) {
  uint64_t position = 0;
  for (const Extent& extent : extents) {
    for (uint64_t offset = extent.offset; offset < extent.end();) {
      const uint64_t row = offset / row_bytes, in_row = offset % row_bytes;
      const uint64_t length = std::min(extent.end() - offset, row_bytes - in_row);
      HF_TRY(each(row, in_row, length, position + (offset - extent.offset)));
      offset += length;
    }
    position += extent.length;
  }
  return Status();
}

inline uint64_t end_of(std::span<const Extent> extents) {
  uint64_t end = 0;
  for (const Extent& extent : extents)
    if (extent.length) end = std::max(end, extent.end());
  return end;
}

inline RowImage image_of(uint64_t row, const std::byte* bytes, const layout::Geometry& g, uint64_t valid) {
  RowImage image{row, {}, valid};
  for (int u = 0; u < g.scheme.k; ++u) image.data.push_back(bytes + uint64_t(u) * g.unit_bytes);
  return image;
}

}  // namespace holdfast::engine
