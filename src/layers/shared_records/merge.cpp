#include "layers/shared_records/merge.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <tuple>

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
  Merger(exchange::Exchange& ranks, std::span<RecordSource* const> sources, uint64_t base, const Place& place,
         const MergeProgress& progress, const MergeLimits& limits)
      : ranks_(ranks), place_(place), progress_(progress), limits_(limits), merged_{base, 0, 0} {
    for (RecordSource* source : sources) feeds_.push_back({source, {}, false});
  }

  Result<Merged> run() {
    for (;;) {
      HF_TRY(exchange::agree(ranks_, look_ahead()));
      const std::vector<Bytes> told = ranks_.all_gather(horizon_and_keys());
      bool ended = false;
      std::vector<Placed> mine = give_places(told, ended);
      HF_TRY(place_all(mine));
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

  // First the last key up to which this rank knows all of its own, then these keys.
  Bytes horizon_and_keys() const {
    Key horizon = latest;
    for (const Feed& feed : feeds_)
      if (!feed.ended) horizon = std::min(horizon, key_of(feed.ahead.back()));
    std::vector<Key> keys{horizon};
    for (const Feed& feed : feeds_)
      for (const PendingRecord& record : feed.ahead)
        if (const Key key = key_of(record); !(horizon < key)) keys.push_back(key);
    const auto bytes = std::as_bytes(std::span(keys));
    return Bytes(bytes.begin(), bytes.end());
  }

  // Sorts what is known to be complete on all ranks; each rank takes its own out of its feeds.
  std::vector<Placed> give_places(const std::vector<Bytes>& told, bool& ended) {
    Key horizon = latest;
    std::vector<Key> all;
    for (const Bytes& bytes : told) {
      std::vector<Key> keys(bytes.size() / sizeof(Key));
      std::memcpy(keys.data(), bytes.data(), bytes.size());
      horizon = std::min(horizon, keys.front());
      all.insert(all.end(), keys.begin() + 1, keys.end());
    }
    ended = !(horizon < latest);
    std::erase_if(all, [&](const Key& key) { return horizon < key; });
    std::sort(all.begin(), all.end());
    std::vector<Placed> mine;
    for (const Key& key : all) {
      for (Feed& feed : feeds_) {
        if (feed.ahead.empty() || feed.ahead.front().rank != key.rank || feed.ahead.front().id != key.id ||
            feed.ahead.front().timestamp_ns != key.timestamp_ns)
          continue;
        mine.push_back({feed.ahead.front(), merged_.end, &feed});
        feed.ahead.pop_front();
        break;
      }
      merged_.end += key.length;
      merged_.bytes += key.length;
    }
    merged_.records += all.size();
    return mine;
  }

  Status place_all(const std::vector<Placed>& mine) {
    size_t next = 0;
    for (;;) {
      if (ranks_.all_max({next < mine.size()})[0] == 0) return Status();
      Status status;
      const size_t first = next;
      uint64_t bytes = 0;
      while (next < mine.size() && (next == first || bytes + mine[next].record.length <= limits_.bytes_per_place))
        bytes += mine[next++].record.length;
      std::vector<Extent> extents;
      buffer_.resize(std::max<size_t>(buffer_.size(), bytes));
      status = collect(std::span(mine).subspan(first, next - first), extents);
      if (!status.ok()) extents.clear(), bytes = 0;
      const Status placed = place_(extents, ByteView(buffer_).first(bytes));
      if (status.ok()) status = placed;
      placed_ += bytes;
      if (status.ok() && progress_ && !progress_(placed_)) status = Status(Kind::internal, "stopped on request");
      HF_TRY(exchange::agree(ranks_, status));
    }
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
