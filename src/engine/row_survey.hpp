// What has been read of a row's units so far, and where it verifies. Shared by the parts of RowIo that rebuild.
#pragma once
#include "engine/row_io.hpp"

namespace holdfast::engine {

struct RowIo::Survey {
  Survey(uint32_t first, uint32_t count, int width) : first_block(first), blocks(count), reads(width), tickets(width) {}
  uint32_t first_block, blocks;
  std::vector<std::shared_ptr<RangeRead>> reads;         // by unit; null where not asked
  std::vector<std::shared_ptr<target::Ticket>> tickets;  // by unit; null where not under way

  bool whole(int unit) const { return reads[unit] && reads[unit]->whole(); }
  uint64_t good(uint32_t block) const {  // the units whose block verifies, as a mask
    uint64_t mask = 0;
    for (size_t unit = 0; unit < reads.size(); ++unit)
      if (reads[unit] && reads[unit]->status.ok() && !reads[unit]->bad[block]) mask |= 1ull << unit;
    return mask;
  }
  bool suffices(int k) const {
    for (uint32_t block = 0; block < blocks; ++block)
      if (__builtin_popcountll(good(block)) < k) return false;
    return true;
  }
};

}  // namespace holdfast::engine
