// The other way round of row_exchange.cpp: parts that wait for their rows go through the rows' owners to the ranks that read them.
#include <algorithm>
#include <cstring>
#include <map>

#include "engine/row_exchange.hpp"

namespace holdfast::engine {

namespace {

constexpr uint64_t owner_rows_bytes_per_round = 4 << 20;

void put(Bytes& bytes, uint64_t value) {
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), from, from + sizeof value);
}

uint64_t take(const Bytes& bytes, size_t& at) {
  uint64_t value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  at += sizeof value;
  return value;
}

struct Ask {
  int rank;
  uint64_t offset, length;
};

// What an owner has in one round: all ranks' pieces and what they ask for, by row.
struct Round {
  std::map<uint64_t, std::vector<OutExtent>> pieces;
  std::map<uint64_t, std::vector<Ask>> asked;

  // Message: number of pieces, then of each its offset, length, time and bytes; after them offset and length of each that is asked.
  void add(int rank, const Bytes& message, uint64_t row_bytes) {
    size_t at = 0;
    if (message.empty()) return;
    for (uint64_t left = take(message, at); left > 0; --left) {
      OutExtent piece;
      piece.offset = take(message, at), piece.length = take(message, at), piece.time_ns = take(message, at);
      piece.from = message.data() + at;
      at += piece.length;
      pieces[piece.offset / row_bytes].push_back(piece);
    }
    while (at < message.size()) {
      const uint64_t offset = take(message, at), length = take(message, at);
      asked[offset / row_bytes].push_back({rank, offset, length});
    }
  }

  // To each rank the offset, length and bytes of what it asked for, the earlier first.
  std::vector<Bytes> answers(int ranks) {
    std::vector<Bytes> to(ranks);
    for (auto& [row, asks] : asked) {
      auto found = pieces.find(row);
      if (found == pieces.end()) continue;
      std::stable_sort(found->second.begin(), found->second.end(), [](auto& a, auto& b) { return a.time_ns < b.time_ns; });
      for (const Ask& ask : asks)
        for (const OutExtent& piece : found->second) {
          const uint64_t from = std::max(ask.offset, piece.offset), end = std::min(ask.offset + ask.length, piece.offset + piece.length);
          if (from >= end) continue;
          put(to[ask.rank], from), put(to[ask.rank], end - from);
          to[ask.rank].insert(to[ask.rank].end(), piece.from + (from - piece.offset), piece.from + (end - piece.offset));
        }
    }
    return to;
  }
};

// Puts the answers where they are wanted; `wanted` is sorted by offset.
void place(const Bytes& answer, const std::vector<Wanted>& wanted) {
  for (size_t at = 0; at < answer.size();) {
    const uint64_t offset = take(answer, at), length = take(answer, at);
    auto into = std::upper_bound(wanted.begin(), wanted.end(), offset, [](uint64_t value, const Wanted& w) { return value < w.offset; });
    if (into != wanted.begin()) std::memcpy(std::prev(into)->into + (offset - std::prev(into)->offset), answer.data() + at, length);
    at += length;
  }
}

// What this rank has and wants, a window at a time: to each owner the pieces of its rows, and what is asked of it.
class Asking {
 public:
  Asking(std::vector<OutExtent> pieces, std::vector<Wanted> wanted, uint64_t window_bytes)
      : pieces_(std::move(pieces)), wanted_(std::move(wanted)), window_bytes_(window_bytes) {
    auto by_offset = [](const auto& a, const auto& b) { return a.offset < b.offset; };
    std::stable_sort(pieces_.begin(), pieces_.end(), by_offset);
    std::sort(wanted_.begin(), wanted_.end(), by_offset);
  }
  const std::vector<Wanted>& wanted() const { return wanted_; }
  // Of its next piece; INT64_MAX where it has none any more.
  int64_t window() const { return next_piece_ < pieces_.size() ? int64_t(pieces_[next_piece_].offset / window_bytes_) : INT64_MAX; }

  template <class Owner>
  std::vector<Bytes> messages(uint64_t window, int ranks, Owner owner) {
    const uint64_t begin = window * window_bytes_, end = begin + window_bytes_;
    const size_t first = next_piece_;
    std::vector<uint64_t> counts(static_cast<size_t>(ranks));
    for (; next_piece_ < pieces_.size() && pieces_[next_piece_].offset < end; ++next_piece_) ++counts[owner(pieces_[next_piece_].offset)];
    std::vector<Bytes> to(static_cast<size_t>(ranks));
    for (size_t rank = 0; rank < to.size(); ++rank) put(to[rank], counts[rank]);
    for (size_t i = first; i < next_piece_; ++i) put_piece(to[owner(pieces_[i].offset)], pieces_[i]);
    while (next_wanted_ < wanted_.size() && wanted_[next_wanted_].offset < begin) ++next_wanted_;
    for (; next_wanted_ < wanted_.size() && wanted_[next_wanted_].offset < end; ++next_wanted_) {
      Bytes& message = to[owner(wanted_[next_wanted_].offset)];
      put(message, wanted_[next_wanted_].offset), put(message, wanted_[next_wanted_].length);
    }
    return to;
  }

 private:
  static void put_piece(Bytes& message, const OutExtent& piece) {
    put(message, piece.offset), put(message, piece.length), put(message, piece.time_ns);
    message.insert(message.end(), piece.from, piece.from + piece.length);
  }

  std::vector<OutExtent> pieces_;
  std::vector<Wanted> wanted_;
  const uint64_t window_bytes_;
  size_t next_piece_ = 0, next_wanted_ = 0;
};

}  // namespace

void serve_rows(exchange::Exchange& ranks, int aggregators, const layout::Geometry& geometry, std::vector<OutExtent> pieces,
                std::vector<Wanted> wanted) {
  const uint64_t row_bytes = geometry.row_bytes();
  const int owners = aggregators > 0 ? std::min(aggregators, ranks.size()) : ranks.size();
  const auto owner = [&](uint64_t offset) { return size_t(layout::owner_of_row(offset / row_bytes, ranks.size(), owners)); };
  Asking asking(std::move(pieces), std::move(wanted), row_bytes * uint64_t(owners) * std::max<uint64_t>(1, owner_rows_bytes_per_round / row_bytes));
  for (;;) {
    // Only windows in which somebody has a piece: the others were read as they lie.
    const int64_t window = -ranks.all_max({-asking.window()})[0];
    if (window == INT64_MAX) return;
    const std::vector<Bytes> received = ranks.all_to_all(asking.messages(uint64_t(window), ranks.size(), owner));
    Round round;
    for (int rank = 0; rank < ranks.size(); ++rank) round.add(rank, received[rank], row_bytes);
    for (const Bytes& answer : ranks.all_to_all(round.answers(ranks.size()))) place(answer, asking.wanted());
  }
}

}  // namespace holdfast::engine
