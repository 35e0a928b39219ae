// Distributed Chunked Read: each replica reads a chunk of its own and sends it to the others, a piece while it reads the next one.
#include "file/coordinated/pieces.hpp"

namespace holdfast::file {

namespace {

class Chunks {
 public:
  Chunks(const Common& file, const Readers& readers, std::span<const Extent> extents, ByteSpan into)
      : file_(file), readers_(readers), extents_(extents), into_(into) {
    constexpr uint64_t page = 4096;
    chunk_ = round_up(divide_up(into.size(), uint64_t(readers.count())), page);
    piece_ = piece_bytes_of(chunk_);
  }

  Had read() {
    const std::vector<Had> own = read_own();
    Joined joined;
    for (int reader = 0; reader < readers_.count(); ++reader) {
      size_t at = 0;
      const auto join = [&](uint64_t begin, uint64_t end, uint64_t index) {
        const Had had = reader == readers_.mine() ? own[at++] : read_of_another(begin, end, index);
        joined.add(had, end - begin);
      };
      for_pieces_of(reader, join);
    }
    return joined.all;
  }

 private:
  template <class Do>
  void for_pieces_of(int reader, Do what) const {
    const uint64_t first = std::min<uint64_t>(uint64_t(reader) * chunk_, into_.size()), last = std::min<uint64_t>(first + chunk_, into_.size());
    uint64_t index = uint64_t(reader) << 32;
    for (uint64_t begin = first; begin < last; begin += piece_) what(begin, std::min(begin + piece_, last), index++);
  }
  std::vector<Had> read_own() const {
    std::vector<Had> own;
    for_pieces_of(readers_.mine(), [&](uint64_t begin, uint64_t end, uint64_t index) {
      own.push_back(read_part(file_, extents_, into_, begin, end));
      for (int other = 0; other < readers_.count(); ++other)
        if (other != readers_.mine()) readers_.give(other, index, own.back(), into_.subspan(begin, end - begin));
    });
    return own;
  }
  // What that one cannot give this one reads itself.
  Had read_of_another(uint64_t begin, uint64_t end, uint64_t index) const {
    Had had;
    return readers_.take(index, had, into_.subspan(begin, end - begin)) ? had : read_part(file_, extents_, into_, begin, end);
  }

  const Common& file_;
  const Readers& readers_;
  const std::span<const Extent> extents_;
  const ByteSpan into_;
  uint64_t chunk_ = 0, piece_ = 0;
};

}  // namespace

Outcome read_distributed_chunks(const Common& file, std::span<const Extent> extents, ByteSpan into) {
  const Readers readers(file);
  if (!readers.share()) return read_simply(file, extents, into);
  if (file.replica.leads()) (void)file.take_over();
  return end_read(file, extents, into, Chunks(file, readers, extents, into).read());
}

}  // namespace holdfast::file
