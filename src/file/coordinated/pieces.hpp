// Pieces of a request that one replica reads for others.
#pragma once
#include <algorithm>
#include <bit>
#include <vector>

#include "file/coordinated/protocol.hpp"

namespace holdfast::file {

// Those who take part in this read, in their order. None, where not all of them live as far as this one knows: some would wait for what others no
// longer send. All replicas see `readers` alike, so at most this one read differs, and whoever waits is told of the loss.
class Readers {
 public:
  explicit Readers(const Common& file) : file_(file), sharing_(redundant::Sharing::of(file.replica)) {
    if (!sharing_) return;
    living_ = sharing_->living();
    if ((file.reading.readers & ~living_.teams) != 0 || std::popcount(file.reading.readers) < 2) return;
    for (const int team : redundant::TeamsOf{file.reading.readers}) {
      if (team == file.replica.place().team) mine_ = int(teams_.size());
      teams_.push_back(team);
    }
    if (mine_ < 0) teams_.clear();
  }
  bool share() const { return !teams_.empty(); }
  int count() const { return int(teams_.size()); }
  int mine() const { return mine_; }
  void give(int reader, uint64_t index, const Had& had, ByteView bytes) const;
  // True: it has come, and is what that one has read without a failure.
  bool take(uint64_t index, Had& had, ByteSpan into) const;

 private:
  const Common& file_;
  redundant::Sharing* const sharing_;
  redundant::Sharing::Living living_;
  std::vector<int> teams_;
  int mine_ = -1;
};

// What is read and sent at once: while one is on its way, the next one is read.
inline uint64_t piece_bytes_of(uint64_t bytes) {
  constexpr uint64_t page = 4096, least = 64 << 10, most = 256 << 10;
  return std::clamp(round_up(bytes / 8, page), least, most);
}

// Pieces in their order, as one read.
struct Joined {
  Had all{true};
  bool ended = false;  // a piece was short, so the file ends there
  void add(const Had& piece, uint64_t bytes) {
    if (all.status.ok()) all.status = piece.status;
    if (!ended) all.count += piece.count;
    ended |= piece.count < bytes;
  }
};

enum class Path : uint8_t { star, chain };
// The first of them reads, and the pieces go to all others at once, or from each to the next one.
Outcome read_by_the_first(const Common& file, std::span<const Extent> extents, ByteSpan into, uint64_t piece_bytes, Path path);

inline Had read_part(const Common& file, std::span<const Extent> extents, ByteSpan into, uint64_t begin, uint64_t end) {
  return Had::of(file.below.read(part_of(extents, begin, end), into.subspan(begin, end - begin)));
}

}  // namespace holdfast::file
