// Chained Read: the first replica reads and sends to the second, that one to the third, and so on. In several pieces (Chunked & Chained Read) one is
// read while others are on their way.
#include <algorithm>

#include "file/coordinated/pieces.hpp"

namespace holdfast::file {

Outcome read_chained(const Common& file, std::span<const Extent> extents, ByteSpan into, uint64_t piece_bytes) {
  const Readers readers(file);
  if (!readers.share()) return end_read(file, extents, into, {});
  const bool is_first = readers.mine() == 0, is_last = readers.mine() + 1 == readers.count();
  Had all{.has = !is_first || file.take_over().ok()};
  bool ended = false;
  for (uint64_t begin = 0; begin < into.size(); begin += piece_bytes) {
    const uint64_t end = std::min(begin + piece_bytes, uint64_t(into.size())), index = begin / piece_bytes;
    const ByteSpan piece = into.subspan(begin, end - begin);
    Had had;
    if (all.has && is_first) had = read_part(file, extents, into, begin, end);
    else if (all.has && !readers.take(index, had, piece)) had = {};
    if (!is_last) readers.give(readers.mine() + 1, index, had, piece);  // who has nothing says so: nobody waits for it
    all.has = all.has && had.has && had.status.ok();
    if (!ended) all.count += had.count;
    ended |= had.count < piece.size();
  }
  return end_read(file, extents, into, all.has ? all : Had{});
}

}  // namespace holdfast::file
