// Extended Simple Read: two replicas read, the others get the bytes from the first of them.
#include "file/coordinated/pieces.hpp"

namespace holdfast::file {

Outcome read_extended_simply(const Common& file, std::span<const Extent> extents, ByteSpan into) {
  constexpr int that_read = 2;
  const Readers readers(file);
  if (!readers.share() || readers.count() <= that_read) return read_simply(file, extents, into);
  if (file.replica.leads()) (void)file.take_over();
  Had had;
  if (readers.mine() < that_read) had = Had::of(file.below.read(extents, into));
  else if (!readers.take(0, had, into)) had = {};
  for (int reader = that_read; readers.mine() == 0 && reader < readers.count(); ++reader) readers.give(reader, 0, had, into);
  return end_read(file, extents, into, had);
}

}  // namespace holdfast::file
