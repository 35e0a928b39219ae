// Chained Read: the first replica reads and sends to the second, that one to the third, and so on. In several pieces (Chunked & Chained Read) one is
// read while others are on their way.
#include "file/coordinated/pieces.hpp"

namespace holdfast::file {

Outcome read_chained(const Common& file, std::span<const Extent> extents, ByteSpan into) {
  return read_by_the_first(file, extents, into, into.size(), Path::chain);
}

Outcome read_chunked_and_chained(const Common& file, std::span<const Extent> extents, ByteSpan into) {
  return read_by_the_first(file, extents, into, piece_bytes_of(into.size()), Path::chain);
}

}  // namespace holdfast::file
