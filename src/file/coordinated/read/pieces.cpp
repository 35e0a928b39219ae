#include "file/coordinated/pieces.hpp"

#include <cstring>

namespace holdfast::file {

namespace {

constexpr uint64_t failed = ~uint64_t(0);

}  // namespace

void Readers::give(int reader, uint64_t index, const Had& had, ByteView bytes) const {
  const uint64_t count = had.has && had.status.ok() ? had.count : failed;
  sharing_->give(teams_[size_t(reader)], file_.subject, index, std::as_bytes(std::span(&count, 1)), count == failed ? ByteView() : bytes);
}

bool Readers::take(uint64_t index, Had& had, ByteSpan into) const {
  const auto piece = sharing_->take(file_.subject, index, living_.epoch);
  uint64_t count = failed;
  if (!piece || piece->size() != sizeof count + into.size()) return false;
  std::memcpy(&count, piece->data(), sizeof count);
  std::memcpy(into.data(), piece->data() + sizeof count, into.size());
  had = {true, Status(), count};
  return count <= into.size();
}

Outcome read_by_the_first(const Common& file, std::span<const Extent> extents, ByteSpan into, uint64_t piece_bytes, Path path) {
  const Readers readers(file);
  if (!readers.share()) return end_read(file, extents, into, {});
  const bool reads = readers.mine() == 0;
  const int last_to = path == Path::chain ? std::min(readers.mine() + 1, readers.count() - 1) : reads ? readers.count() - 1 : 0;
  bool has = !reads || file.take_over().ok();
  Joined joined;
  for (uint64_t begin = 0; begin < into.size(); begin += piece_bytes) {
    const uint64_t end = std::min(begin + piece_bytes, uint64_t(into.size())), index = begin / piece_bytes;
    const ByteSpan piece = into.subspan(begin, end - begin);
    Had had;
    if (has && reads) had = read_part(file, extents, into, begin, end);
    else if (has && !readers.take(index, had, piece)) had = {};
    for (int to = readers.mine() + 1; to <= last_to; ++to) readers.give(to, index, had, piece);  // who has nothing says so: nobody waits for it
    has = has && had.has && had.status.ok();
    joined.add(had, piece.size());
  }
  return end_read(file, extents, into, has ? joined.all : Had{});
}

}  // namespace holdfast::file
