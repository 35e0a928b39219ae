// Simple Read: every replica reads.
#include "file/coordinated/coordinated.hpp"

namespace holdfast::file {

Outcome read_simply(const Common& file, std::span<const Extent> extents, ByteSpan into) {
  if (file.replica.leads()) (void)file.take_over();  // what fails is the outcome of the meeting
  return end_read(file, extents, into, Had::of(file.below.read(extents, into)));
}

}  // namespace holdfast::file
