// The ranks' output, once: whichever team is ahead has its bytes delivered, and the others' same bytes are passed over.
#pragma once
#include <cstdint>
#include <map>
#include <utility>

#include "base/bytes.hpp"

namespace holdfast::redundant {

class Output {
 public:
  // Of `came`, which begins at `position` of the stream: what has not been delivered yet.
  ByteView fresh(uint32_t rank, uint64_t stream, uint64_t position, ByteView came) {
    uint64_t& delivered = delivered_[{rank, stream}];
    const uint64_t end = position + came.size();
    if (position > delivered || end <= delivered) return {};
    const ByteView rest = came.subspan(delivered - position);
    delivered = end;
    return rest;
  }

 private:
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> delivered_;
};

}  // namespace holdfast::redundant
