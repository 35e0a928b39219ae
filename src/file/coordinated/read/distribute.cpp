// Read & Distribute: one replica reads, and sends each piece to all others while it reads the next one.
#include "file/coordinated/pieces.hpp"

namespace holdfast::file {

Outcome read_and_distribute(const Common& file, std::span<const Extent> extents, ByteSpan into) {
  return read_by_the_first(file, extents, into, piece_bytes_of(into.size()), Path::star);
}

// As one read of the file below, and sent with its outcome.
Outcome read_by_the_leader(const Common& file, std::span<const Extent> extents, ByteSpan into) { return end_read(file, extents, into, {}); }

}  // namespace holdfast::file
