// Read & Distribute: the leader reads and sends what it got.
#include "file/coordinated/coordinated.hpp"

namespace holdfast::file {

Outcome read_and_distribute(const Common& file, std::span<const Extent> extents, ByteSpan into) { return end_read(file, extents, into, {}); }

}  // namespace holdfast::file
