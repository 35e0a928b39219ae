#include "file/coordinated/kept_writes.hpp"

#include <algorithm>
#include <iterator>

#include "base/intervals.hpp"

namespace holdfast::file {

namespace {

// What is not in `newer`.
std::vector<Extent> left_of(const Extent& extent, const Intervals& newer) {
  std::vector<Extent> left;
  uint64_t at = extent.offset;
  const auto& ranges = newer.ranges();
  auto next = ranges.upper_bound(at);
  if (next != ranges.begin()) --next;
  for (; next != ranges.end() && next->first < extent.end(); ++next) {
    if (next->first > at) left.push_back({at, next->first - at});
    at = std::max(at, next->second);
  }
  if (at < extent.end()) left.push_back({at, extent.end() - at});
  return left;
}

}  // namespace

void KeptWrites::wrote(std::span<const Extent> extents, ByteView data, bool holds) {
  bytes_ += data.size() + extents.size_bytes();
  if (holds) changes_.push_back({{extents.begin(), extents.end()}, {data.begin(), data.end()}, nullptr});
}

void KeptWrites::changed(std::function<Status(FileLayer&)> change, bool holds) {
  bytes_ += sizeof change;
  if (holds) changes_.push_back({{}, {}, std::move(change)});
}

Status KeptWrites::repeat(FileLayer& below) const {
  for (auto at = changes_.begin(); at != changes_.end();) {
    const auto next = std::find_if(at, changes_.end(), [](const Change& one) { return bool(one.other); });
    HF_TRY(write_newest(at, next, below));
    if (next == changes_.end()) break;
    HF_TRY(next->other(below));
    at = std::next(next);
  }
  return Status();
}

// The newest first: of an older one what no newer one has written.
Status KeptWrites::write_newest(Changes::const_iterator first, Changes::const_iterator last, FileLayer& below) {
  Intervals newer;
  for (auto change = last; change-- != first;) {
    std::vector<Extent> places;
    Bytes bytes;
    const std::byte* from = change->bytes.data();
    for (const Extent& extent : change->places) {
      for (const Extent& part : left_of(extent, newer)) {
        const std::byte* const data = from + (part.offset - extent.offset);
        places.push_back(part);
        bytes.insert(bytes.end(), data, data + part.length);
      }
      from += extent.length;
    }
    if (!places.empty()) HF_TRY(below.write(places, bytes));
    for (const Extent& extent : change->places) newer.add(extent.offset, extent.end());
  }
  return Status();
}

void KeptWrites::forget() {
  changes_.clear();
  bytes_ = 0;
}

}  // namespace holdfast::file
