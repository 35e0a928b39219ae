#include "layers/shared_records/merge.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <tuple>

#include "coding/checksum.hpp"
#include "exchange/agree.hpp"

namespace holdfast::layers {

namespace {

// What ranks tell each other of a record.
struct Key {
  uint64_t collective = 0, timestamp_ns = 0, id = 0, rank = 0, length = 0;
  auto order() const { return std::tie(collective, timestamp_ns, rank, id); }
  bool operator<(const Key& other) const { return order() < other.order(); }
};

Key key_of(const PendingRecord& r) { return {r.collective, r.timestamp_ns, r.id, r.rank, r.length}; }

const Key latest{std::numeric_limits<uint64_t>::max(), std::numeric_limits<uint64_t>::max(), std::numeric_limits<uint64_t>::max(),
                 std::numeric_limits<uint64_t>::max(), 0};

// One of this rank's logs, looked ahead.
struct Feed {
  RecordSource* source = nullptr;
  std::deque<PendingRecord> ahead;
  bool ended = false;
};

// A record of this rank with its place.
struct Placed {
  PendingRecord record;
  uint64_t at = 0;
  Feed* feed = nullptr;
};

class Merger {
 public:
  Merger(exchange::Exchange& ranks, std::span<RecordSource* const> sources, uint64_t base, const Place& place, const MergeProgress& progress,
         const MergeLimits& limits)
      : ranks_(ranks), place_(place), progress_(progress), limits_(limits), merged_{base, 0, 0} {
    for (RecordSource* source : sources) feeds_.push_back({source, {}, false});
  }

  Result<Merged> run() {
    for (;;) {
      HF_TRY(exchange::agree(ranks_, look_ahead()));
      const std::vector<Bytes> told = ranks_.all_gather(horizon_and_keys());
      bool ended = false;
      std::vector<Placed> mine = give_places(told, ended);
      HF_TRY(exchange::agree(ranks_, place_all(mine)));
      if (ended) return merged_;
    }
  }

 private:
  // Every feed has records in hand, or has ended.
  Status look_ahead() {
    const size_t each = std::max<size_t>(64, limits_.records_per_round / (size_t(ranks_.size()) * std::max<size_t>(1, feeds_.size())));
    for (Feed& feed : feeds_) {
      while (!feed.ended && feed.ahead.size() < each) {
        auto more = feed.source->next(each - feed.ahead.size());
        if (!more) return more.status();
        feed.ended = more->empty();
        feed.ahead.insert(feed.ahead.end(), more->begin(), more->end());
      }
    }
    return Status();
  }

  // First the last key up to which this rank knows all of its own, then these keys in order.
  Bytes horizon_and_keys() const {
    Key horizon = latest;
    for (const Feed& feed : feeds_)
      if (!feed.ended) horizon = std::min(horizon, key_of(feed.ahead.back()));
    std::vector<Key> keys{horizon};
    for (const Feed& feed : feeds_)
      for (const PendingRecord& record : feed.ahead)
        if (const Key key = key_of(record); !(horizon < key)) keys.push_back(key);
    if (feeds_.size() > 1) std::sort(keys.begin() + 1, keys.end());
    const auto bytes = std::as_bytes(std::span(keys));
    return Bytes(bytes.begin(), bytes.end());
  }

  // What a rank has told, not yet given a place.
  struct Told {
    std::vector<Key> keys;
    size_t next = 0;
    bool mine = false;
    const Key& front() const { return keys[next]; }
  };

  // Gives all that is known to be complete on all ranks its place, in order; each rank takes its own out of its feeds.
  std::vector<Placed> give_places(const std::vector<Bytes>& told, bool& ended) {
    Key horizon = latest;
    std::vector<Told> lists(told.size());
    for (size_t rank = 0; rank < told.size(); ++rank) {
      std::vector<Key>& keys = lists[rank].keys;
      keys.resize(told[rank].size() / sizeof(Key));
      std::memcpy(keys.data(), told[rank].data(), told[rank].size());
      lists[rank].next = 1;
      lists[rank].mine = int(rank) == ranks_.rank();
      horizon = std::min(horizon, keys.front());
    }
    ended = !(horizon < latest);
    std::vector<Told*> heap;
    auto later = [](const Told* a, const Told* b) { return b->front() < a->front(); };
    auto offer = [&](Told* list) {
      if (list->next == list->keys.size() || horizon < list->front()) return;
      heap.push_back(list);
      std::push_heap(heap.begin(), heap.end(), later);
    };
    for (Told& list : lists) offer(&list);
    std::vector<Placed> mine;
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), later);
      Told* first = heap.back();
      heap.pop_back();
      do {  // as long as it stays before all others
        give_place(*first, mine);
      } while (first->next < first->keys.size() && !(horizon < first->front()) && (heap.empty() || first->front() < heap.front()->front()));
      offer(first);
    }
    return mine;
  }

  void give_place(Told& list, std::vector<Placed>& mine) {
    const Key& key = list.keys[list.next++];
    if (list.mine) mine.push_back(taken(key));
    merged_.end += key.length;
    merged_.bytes += key.length;
    ++merged_.records;
  }

  Placed taken(const Key& key) {
    for (Feed& feed : feeds_) {
      if (feed.ahead.empty() || key_of(feed.ahead.front()).order() != key.order()) continue;
      Placed placed{feed.ahead.front(), merged_.end, &feed};
      feed.ahead.pop_front();
      return placed;
    }
    return {};  // a feed out of order: nothing is placed for it
  }

  Status place_all(const std::vector<Placed>& mine) {
    for (size_t next = 0; next < mine.size();) {
      uint64_t bytes = mine[next].record.length;
      const size_t first = next++;
      if (bytes > limits_.bytes_per_place) {
        HF_TRY(place_large(mine[first]));
      } else {
        while (next < mine.size() && bytes + mine[next].record.length <= limits_.bytes_per_place) bytes += mine[next++].record.length;
        std::vector<Extent> extents;
        buffer_.resize(std::max<size_t>(buffer_.size(), bytes));
        HF_TRY(collect(std::span(mine).subspan(first, next - first), extents));
        HF_TRY(place_(extents, ByteView(buffer_).first(bytes)));
      }
      placed_ += bytes;
      if (progress_ && !progress_(placed_)) return Status(Kind::internal, "stopped on request");
    }
    return Status();
  }

  // In pieces, and checked when all of it has gone by; where that fails another copy of the log may have it whole.
  Status place_large(const Placed& placed) {
    RecordSource& source = *placed.feed->source;
    coding::RunningChecksum checksum(source.seed());
    buffer_.resize(std::max<size_t>(buffer_.size(), limits_.bytes_per_place));
    Status status;
    for (uint64_t at = 0; at < placed.record.length && status.ok();) {
      const ByteSpan piece = ByteSpan(buffer_).first(std::min(limits_.bytes_per_place, placed.record.length - at));
      status = source.read_part(placed.record, at, piece);
      if (!status.ok()) break;
      checksum.add(piece);
      const Extent extent{placed.at + at, piece.size()};
      HF_TRY(place_(std::span(&extent, 1), piece));
      at += piece.size();
    }
    if (status.ok() && checksum.value() == placed.record.checksum) return Status();
    Bytes whole(placed.record.length);
    HF_TRY(source.read(std::span(&placed.record, 1), whole));
    const Extent extent{placed.at, whole.size()};
    return place_(std::span(&extent, 1), whole);
  }

  // Reads what lies together in one log at once; joins what will lie together in the file.
  Status collect(std::span<const Placed> records, std::vector<Extent>& extents) {
    uint64_t at = 0;
    for (size_t i = 0; i < records.size();) {
      size_t end = i;
      std::vector<PendingRecord> together;
      uint64_t bytes = 0;
      for (; end < records.size() && records[end].feed == records[i].feed; ++end) {
        together.push_back(records[end].record);
        bytes += records[end].record.length;
      }
      HF_TRY(records[i].feed->source->read(together, ByteSpan(buffer_).subspan(at, bytes)));
      at += bytes;
      i = end;
    }
    for (const Placed& placed : records) {
      if (placed.record.length == 0) continue;
      if (!extents.empty() && extents.back().end() == placed.at) extents.back().length += placed.record.length;
      else extents.push_back({placed.at, placed.record.length});
    }
    return Status();
  }

  exchange::Exchange& ranks_;
  const Place& place_;
  const MergeProgress& progress_;
  MergeLimits limits_;
  std::vector<Feed> feeds_;
  Merged merged_;
  Bytes buffer_;
  uint64_t placed_ = 0;
};

}  // namespace

Result<Merged> merge_records(exchange::Exchange& ranks, std::span<RecordSource* const> sources, uint64_t base, const Place& place,
                             const MergeProgress& progress, const MergeLimits& limits) {
  return Merger(ranks, sources, base, place, progress, limits).run();
}

}  // namespace holdfast::layers
