// The one place that reconstructs: a row's units read side by side and checked, and what lacks decoded from the others.
#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "coding/code.hpp"
#include "engine/buffers.hpp"
#include "engine/row_sources.hpp"

namespace holdfast::engine {

// One unit's block range as its member has it: what failed, and the bytes.
struct UnitBlocks {
  explicit UnitBlocks(uint64_t bytes) : buffer(bytes) {}
  Status status;
  Buffer buffer;
  std::vector<bool> bad;  // by block; meaningless unless status is ok
  bool whole() const { return status.ok() && std::find(bad.begin(), bad.end(), true) == bad.end(); }
};
using UnitReads = std::vector<std::shared_ptr<UnitBlocks>>;  // by unit

// What has been read of a row's units so far, and where it verifies.
struct Survey {
  Survey(uint32_t first, uint32_t count, int width) : first_block(first), blocks(count), reads(size_t(width)), tickets(size_t(width)) {}
  uint32_t first_block, blocks;
  bool only_look = false;                                // whether blocks verify is all that is asked: where agents say so, buffers stay empty
  UnitReads reads;                                       // null where not asked
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

class RowRebuilder {
 public:
  RowRebuilder(Members& members, const catalog::Located& located, const RowSources& sources);

  // Of one unit: asks its member for the survey's blocks, and waits for them.
  void start(const layout::RowRecord& record, int unit, Survey& seen);
  void finish(const layout::RowRecord& record, int unit, Survey& seen);
  void survey(const layout::RowRecord& record, std::span<const int> units, Survey& seen);
  // Of all units whose member is in `members`; the others come back with Kind::lost.
  void start_units(const layout::RowRecord& record, const MemberSet& members, Survey& seen);
  void finish_units(const layout::RowRecord& record, Survey& seen);
  // As RowReader promises.
  UnitReads read_units(const layout::RowRecord& record, uint32_t first_block, uint32_t blocks, const MemberSet& members);
  Status reconstruct(const layout::RowRecord& record, uint32_t first_block, uint32_t blocks, std::byte* const* into);
  // From what was surveyed.
  Status rebuild(const layout::RowRecord& record, const Survey& seen, std::byte* const* into);
  // As far as everything that is needed lies in memory. Returns how many blocks that was; the lanes judge of the rest.
  uint32_t rebuild_cached(const layout::RowRecord& record, uint32_t first_block, uint32_t blocks, std::byte* const* into);

  // Whether what cannot be rebuilt reads as zeros from now on.
  void take_gaps_for_zeros(bool zeros) { gaps_are_zeros_ = zeros; }

 private:
  std::vector<int> damaged(const layout::RowRecord& record, const Survey& seen, uint32_t block) const;
  Status rebuild_columns(const layout::RowRecord& record, const Survey& seen, uint32_t begin, uint32_t end, std::byte* const* into);

  Members& members_;
  const catalog::Located& located_;
  const RowSources& sources_;
  std::shared_ptr<const coding::Code> code_;
  bool gaps_are_zeros_ = false;
};

}  // namespace holdfast::engine
