// Records of many logs put into one order and handed to whoever writes the main file. The merge has five steps, in rounds of bounded size: count,
// gather the metadata, sort, give each record its place, move the data.
//
// Order: number of collective calls before the record, timestamp, rank, number of the record. Each log is in this order already.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "exchange/exchange.hpp"

namespace holdfast::layers {

struct PendingRecord {
  uint64_t collective = 0, timestamp_ns = 0, id = 0;
  uint32_t rank = 0;
  uint64_t position = 0;  // of its data in the log
  uint64_t length = 0;
  uint64_t checksum = 0;
};

class RecordSource {
 public:
  virtual ~RecordSource() = default;
  // The next ones in order, at most so many; none at the end.
  virtual Result<std::vector<PendingRecord>> next(size_t most) = 0;
  // The data of records that follow each other in the log, packed; checked.
  virtual Status read(std::span<const PendingRecord> records, ByteSpan packed) = 0;
  // A part of one record's data, not checked.
  virtual Status read_part(const PendingRecord& record, uint64_t from, ByteSpan into) = 0;
  // The checksum of data as the records have it.
  virtual uint64_t seed() const = 0;
};

// Writes packed data at bytes of the view. Extents ascend and do not overlap. Not collective.
using Place = std::function<Status(std::span<const Extent> extents, ByteView packed)>;
// May say no: then the merge stops as after a failure.
using MergeProgress = std::function<bool(uint64_t bytes_placed)>;

struct Merged {
  uint64_t end = 0;      // where the shared pointer stands afterwards, bytes of the view
  uint64_t records = 0;  // of all ranks
  uint64_t bytes = 0;
};

struct MergeLimits {
  size_t records_per_round = 65536;       // of all ranks together
  uint64_t bytes_per_place = 1ull << 20;  // of each rank: stays in the processor's cache between reading and writing
};

// Collective. `sources` are this rank's logs. Ranks agree on the outcome; a merge that failed has changed nothing but the bytes
// from `base` on and is simply done again.
Result<Merged> merge_records(exchange::Exchange& ranks, std::span<RecordSource* const> sources, uint64_t base, const Place& place,
                             const MergeProgress& progress = nullptr, const MergeLimits& limits = {});

}  // namespace holdfast::layers
