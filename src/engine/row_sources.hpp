// Where the units of a row are read from, and which of them: in their places, or in a journal while one holds them. Also reads and checks
// what lies in memory, in the caller and without a lane.
#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "engine/buffers.hpp"
#include "engine/journal_overlay.hpp"
#include "engine/members.hpp"
#include "engine/record_store.hpp"
#include "engine/row_blocks.hpp"

namespace holdfast::engine {

struct UnitSource {
  int member = 0;
  std::string object;
  uint64_t offset = 0;
  uint64_t limit = ~0ull;  // bytes of the unit that are stored there; the rest is zeros
  // How many of `bytes` at `at` in the unit can be read there.
  uint64_t stored(uint64_t at, uint64_t bytes) const { return at < limit ? std::min(bytes, limit - at) : 0; }
};

class RowSources {
 public:
  RowSources(Members& members, RecordStore& records, const catalog::Located& located, const JournalOverlay& journals, int rank);

  const layout::Geometry& geometry() const { return geometry_; }
  const RowBlocks& blocks() const { return blocks_; }
  Result<layout::RowRecord> record(uint64_t row);
  int member_of(uint64_t row, int unit) const { return layout::place(geometry_, row, unit).member; }
  UnitSource of(uint64_t row, int unit) const;

  // Whether one of these units lies on a member that is lost, or that failed its last reads.
  bool lacks_unit(uint64_t row, int first_unit, int last_unit) const;
  // Reads are spread over the copies of a mirror by row and rank.
  int pick_copy(uint64_t row) const;
  // The wanted units first (they may be whole), then other data, then redundancy; members that failed lately last. None of `but`.
  std::vector<int> reading_order(uint64_t row, uint64_t wanted, uint64_t but = 0) const;

  // Whole blocks; false where not all of them are in memory, or one does not verify.
  bool read_blocks_cached(const UnitSource& source, const layout::RowRecord& record, int unit, uint64_t block, ByteSpan into) const;
  // Returns how many bytes, from the first on, were in memory and verify.
  uint64_t read_part_cached(const UnitSource& source, const layout::RowRecord& record, int unit, uint64_t offset, uint64_t length,
                            std::byte* into) const;

  // While it lives rows are looked at as they lie in their places, whatever journals say.
  class InPlace {
   public:
    explicit InPlace(RowSources& sources) : sources_(sources), before_(std::exchange(sources.in_place_, true)) {}
    InPlace(const InPlace&) = delete;
    ~InPlace() { sources_.in_place_ = before_; }

   private:
    RowSources& sources_;
    bool before_;
  };

 private:
  Members& members_;
  RecordStore& records_;
  const catalog::Located& located_;
  const JournalOverlay& journals_;
  layout::Geometry geometry_;
  RowBlocks blocks_;
  int rank_;
  bool in_place_ = false;
};

// Of a row of which more units are lost than the scheme bears. `damaged`: members that answer, and whose part of it does not verify.
Status lost_row(const Members& members, const layout::Manifest& manifest, uint64_t row, Kind kind = Kind::lost, std::span<const int> damaged = {});

}  // namespace holdfast::engine
