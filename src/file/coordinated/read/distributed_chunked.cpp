// Distributed Chunked Read: each replica reads a chunk of its own and sends it to the others.
#include <algorithm>

#include "file/coordinated/pieces.hpp"

namespace holdfast::file {

Outcome read_distributed_chunks(const Common& file, std::span<const Extent> extents, ByteSpan into) {
  constexpr uint64_t page = 4096;
  const Readers readers(file);
  if (!readers.share()) return read_simply(file, extents, into);
  if (file.replica.leads()) (void)file.take_over();
  const uint64_t chunk = round_up(divide_up(into.size(), uint64_t(readers.count())), page);
  const auto begin_of = [&](int reader) { return std::min<uint64_t>(uint64_t(reader) * chunk, into.size()); };
  const auto bytes_of = [&](int reader) { return into.subspan(begin_of(reader), begin_of(reader + 1) - begin_of(reader)); };
  std::vector<Had> parts(size_t(readers.count()));
  const int mine = readers.mine();
  parts[size_t(mine)] = read_part(file, extents, into, begin_of(mine), begin_of(mine + 1));
  for (int other = 0; other < readers.count(); ++other)
    if (other != mine) readers.give(other, uint64_t(mine), parts[size_t(mine)], bytes_of(mine));
  Had all{true};
  bool ended = false;
  for (int reader = 0; reader < readers.count(); ++reader) {
    Had& part = parts[size_t(reader)];
    // What another one cannot give this one reads itself.
    if (reader != mine && !readers.take(uint64_t(reader), part, bytes_of(reader)))
      part = read_part(file, extents, into, begin_of(reader), begin_of(reader + 1));
    if (all.status.ok()) all.status = part.status;
    if (!ended) all.count += part.count;
    ended |= part.count < bytes_of(reader).size();
  }
  return end_read(file, extents, into, all);
}

}  // namespace holdfast::file
