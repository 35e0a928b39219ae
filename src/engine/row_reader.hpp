// Reads of rows: for a program, for folding rows in, for verify and for repair. What verifies is taken as it comes (row_read.cpp), all else
// is recovered from the row's other units (row_recover.cpp).
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/held_rows.hpp"
#include "engine/other_openers.hpp"
#include "engine/row_range.hpp"
#include "engine/row_rebuilder.hpp"
#include "engine/row_sources.hpp"

namespace holdfast::engine {

class RowReader {
 public:
  RowReader(Members& members, RecordStore& records, const catalog::Located& located, const JournalOverlay& journals, OtherOpeners& others, int rank);

  const layout::Geometry& geometry() const { return sources_.geometry(); }
  Result<layout::RowRecord> record(uint64_t row) { return sources_.record(row); }

  // Fills every range from verified blocks; what fails is reconstructed. Holes read as zeros.
  Status read(std::span<const RowRange> ranges);

  // The same in two steps. Several threads may begin reads side by side where may_begin_beside() says so, while nobody does anything else here.
  // Nothing changes then that another one looks at. Who finishes is alone, and nothing may have changed since the beginning.
  struct Begun;
  bool may_begin_beside(std::span<const RowRange> ranges) const;
  Status begin(std::span<const RowRange> ranges, Begun& read);
  Status finish(std::span<const RowRange> ranges, Begun& read);

  // Every k+m unit of one block range of a row, verified or reconstructed. into[unit] may be null for units that are not wanted.
  Status reconstruct(const layout::RowRecord& record, uint32_t first_block, uint32_t blocks, std::byte* const* into) {
    return rebuilder_.reconstruct(record, first_block, blocks, into);
  }
  // All units of one block range side by side, none reconstructed, for verify and repair. Units whose member is not in
  // `members` (it may name stale members, which no other read touches) come back with Kind::lost.
  UnitReads read_units(const layout::RowRecord& record, uint32_t first_block, uint32_t blocks, const MemberSet& members) {
    return rebuilder_.read_units(record, first_block, blocks, members);
  }

  // The same, as the rows lie in their places, whatever journals say.
  Status read_in_place(std::span<const RowRange> ranges);
  Status reconstruct_in_place(const layout::RowRecord& record, std::byte* const* into);
  UnitReads read_units_in_place(const layout::RowRecord& record, const MemberSet& members);

 private:
  class InPlace;

  // row_read.cpp
  struct UnitRead;
  struct MemberRead;
  using Asked = std::vector<std::shared_ptr<MemberRead>>;  // by member
  bool goes_on_from_the_last(std::span<const RowRange> ranges);
  Status read_once(std::span<const RowRange> ranges, Begun& read);
  bool goes_to_recovery(const RowRange& range) const;
  void plan(const RowRange& range, const std::shared_ptr<const layout::RowRecord>& record, Asked& asked, std::vector<RowRange>& failed);
  void ask_lanes(Asked& asked, Begun& read);
  void note_answers(const Begun& read);
  void serve_from_cache(Asked& asked);
  bool read_small(const RowRange& range);

  // row_recover.cpp
  // What is wanted of a row that has to be rebuilt: which data units, and which blocks of them.
  struct Want {
    uint64_t units = 0, first = ~0ull, last = 0;
  };
  Want want_of(std::span<const RowRange> ranges) const;
  Status recover(const Begun& read);
  Status recover_before_giving_up(Status status, uint64_t row, std::span<const RowRange> ranges, uint64_t next_row);
  Status recover_as_known_now(uint64_t row, std::span<const RowRange> ranges, uint64_t next_row);
  Status recover_row(const layout::RowRecord& record, std::span<const RowRange> ranges, uint64_t next_row);
  Status recover_blocks(const layout::RowRecord& record, std::span<const RowRange> ranges, const Want& want);

  Members& members_;
  RecordStore& records_;
  const JournalOverlay& journals_;
  OtherOpeners& others_;
  RowSources sources_;
  RowRebuilder rebuilder_;
  HeldRows held_;
  std::atomic<int> beginning_{0};  // reads, beside each other
  std::mutex place_;               // of these two: where the last read ended, as a logical offset, and of what version the records were
  uint64_t read_to_ = ~0ull, read_version_ = 0;
  uint64_t last_recovered_ = ~0ull;  // the last row of which anything had to be rebuilt
};

// What a read has come to.
struct RowReader::Begun {
  struct Answer {
    int member;
    Status status;
    bool whole;
  };
  enum class Stage : uint8_t { fresh, not_in_memory, asked, done } stage = Stage::fresh;
  bool sequential = false;        // it goes on where the last one ended
  std::vector<RowRange> failed;   // from what the members gave
  std::vector<Answer> answers;    // of members, as far as there is anything to note of them
  bool may_have_changed = false;  // something failed that another opener may have changed meanwhile
};

}  // namespace holdfast::engine
