// Rows to units and back: coding, checksums, placement and the concurrent calls on the members. The one place that
// reconstructs, for a program's reads, for folding rows in, for verify and for repair. Split over row_io.cpp (places and
// writes), row_read.cpp (what verifies), row_recover.cpp (what has to be rebuilt), row_missed.cpp (what late
// members have not got) and row_held.cpp (rows kept and read ahead).
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/bytes.hpp"
#include "base/intervals.hpp"
#include "coding/code.hpp"
#include "engine/buffers.hpp"
#include "engine/members.hpp"
#include "engine/record_store.hpp"
#include "engine/row_blocks.hpp"

namespace holdfast::engine {

// One row in memory: k pointers to unit_bytes each; bytes from `valid` on (counted in the row) are zero.
struct RowImage {
  uint64_t row = 0;
  std::vector<const std::byte*> data;
  uint64_t valid = 0;
};

// A range of one row that a reader wants, and where to put it.
struct Piece {
  uint64_t row = 0;
  uint64_t offset = 0;  // in the row
  uint64_t length = 0;
  std::byte* into = nullptr;
};

// Where units lie that a committed journal holds and that may not be in their place yet.
struct JournalPlace {
  std::string object;
  uint64_t offset = 0;
  uint64_t stored_bytes = 0;
};

using Part = std::pair<uint64_t, uint64_t>;  // [begin, end) in a row
using Parts = std::vector<Part>;             // ascending

// Where a unit lies: in its place, or in a journal while one holds it.
struct UnitSource {
  int member = 0;
  std::string object;
  uint64_t offset = 0;
  uint64_t limit = ~0ull;  // bytes of the unit that are stored there; the rest is zeros
  // How many of `bytes` at `at` in the unit can be read there.
  uint64_t stored(uint64_t at, uint64_t bytes) const { return at < limit ? std::min(bytes, limit - at) : 0; }
};

struct CodedRow {
  layout::RowRecord record;
  std::vector<const std::byte*> units;  // k + m
  std::vector<uint64_t> stored;         // bytes of each unit that are written; the rest reads as zeros
  std::shared_ptr<Buffer> redundancy;
};

class RowIo {
 public:
  RowIo(Members& members, RecordStore& records, const catalog::Located& located, int rank);

  // Codes and checksums a row.
  CodedRow code(const RowImage& image, uint64_t generation) const;
  // Writes rows in place on all available members at once, each member's units before its records. Kind::lost where a row
  // has more than m units that did not arrive; members that failed are lost from then on.
  Status write_in_place(std::span<const CodedRow> rows);

  // What was written in place while members were late: whether there is any, and how a member that has come back gets it. Under the file's lock.
  bool any_missed() const { return missed_since_ == members_.late_since() && !missed_.ranges().empty(); }
  Status make_up(int member);

  // Fills every piece from verified blocks; what fails is reconstructed. Holes read as zeros.
  Status read(std::span<const Piece> pieces);
  // Every k+m unit of one block range of a row, verified or reconstructed, except that units in `not_from` are never read.
  // into[unit] may be null for units that are not wanted.
  Status reconstruct(const layout::RowRecord& record, uint32_t first_block, uint32_t blocks, std::byte* const* into, uint64_t not_from);

  // One unit's block range as its member has it: what failed, and the bytes.
  struct RangeRead {
    explicit RangeRead(uint64_t bytes) : buffer(bytes) {}
    Status status;
    Buffer buffer;
    std::vector<bool> bad;  // by block; meaningless unless status is ok
    bool whole() const { return status.ok() && std::find(bad.begin(), bad.end(), true) == bad.end(); }
  };
  // All units of one block range side by side, none reconstructed, for verify and repair. Units whose member is not in
  // `members` (a mask; it may name stale members, which no other read touches) come back with Kind::lost.
  std::vector<std::shared_ptr<RangeRead>> read_units(const layout::RowRecord& record, uint32_t first_block, uint32_t blocks, uint64_t members);
  // Bytes of the unit that are written for a file of `size` bytes (whole blocks), and how many must be there at least (plain
  // objects end with the file); the rest of the unit is zeros.
  uint64_t stored_bytes(const layout::RowRecord& record, int unit, uint64_t size) const;
  uint64_t needed_bytes(const layout::RowRecord& record, int unit, uint64_t size) const;

  // The same two, as the rows lie in their places, whatever journals say.
  Status read_in_place(std::span<const Piece> pieces);
  Status reconstruct_in_place(const layout::RowRecord& record, uint32_t blocks, std::byte* const* into);
  std::vector<std::shared_ptr<RangeRead>> read_units_in_place(const layout::RowRecord& record, uint32_t first_block, uint32_t blocks,
                                                              uint64_t members);
  // Rows that others wrote and have not synced read as zeros where they do not verify: old, not damaged.
  std::function<bool(uint64_t generation)> is_unsynced_of_others = [](uint64_t) { return false; };
  // Called when a block fails, before anything is reconstructed: re-reads what another opener may have changed; true to try again.
  std::function<bool()> refresh = [] { return false; };

  std::map<std::pair<uint64_t, int>, JournalPlace> journal;  // (row, unit): overlay of committed journals
  std::map<uint64_t, layout::RowRecord> journal_records;
  struct Vouched {
    Intervals parts;       // of the row
    uint64_t time_ns = 0;  // when the row was folded in
  };
  std::map<uint64_t, std::map<uint64_t, Vouched>> journal_parts;  // by row and the committer's generation
  // The bytes of a row that journals vouch for, those left out that were folded in before `time_ns`. The newest journal has all of them.
  Intervals vouched_since(uint64_t row, uint64_t time_ns) const;
  // Why a journal that may be there could not be read from any member: nobody knows then which rows are the newest, and none is read.
  Status unread_journal;
  void forget_journals() { journal.clear(), journal_records.clear(), journal_parts.clear(), unread_journal = Status(); }

  const layout::Geometry& geometry() const { return geometry_; }
  Result<layout::RowRecord> record(uint64_t row);

 private:
  class WithoutJournals;
  CodedRow lay_out(const RowImage& image, uint64_t generation) const;
  UnitSource source_of(uint64_t row, int unit) const;
  int member_of(uint64_t row, int unit) const { return layout::place(geometry_, row, unit).member; }
  bool lacks_unit(uint64_t row, int first_unit, int last_unit) const;
  int pick_copy(uint64_t row) const;
  Status lost_row(uint64_t row, Kind kind = Kind::lost) const;

  // row_missed.cpp
  void note_missed(std::span<const CodedRow> rows);
  Status make_up_row(int member, const layout::RowRecord& record);

  // row_read.cpp
  struct UnitRead;
  struct MemberRead;
  using Asked = std::vector<std::shared_ptr<MemberRead>>;  // by member
  Status read_once(std::span<const Piece> pieces, std::vector<Piece>& failed);
  bool goes_to_recovery(const Piece& piece) const;
  void plan(const Piece& piece, const std::shared_ptr<const layout::RowRecord>& record, Asked& asked, std::vector<Piece>& failed);
  bool ask_lanes(Asked& asked, std::vector<Piece>& failed);
  void serve_from_cache(Asked& asked);
  bool read_blocks_cached(const UnitSource& source, const layout::RowRecord& record, int unit, uint64_t block, ByteSpan into);
  bool read_small(const Piece& piece);
  uint64_t read_part_cached(const UnitSource& source, const layout::RowRecord& record, int unit, uint64_t offset, uint64_t length, std::byte* into);

  // row_recover.cpp
  struct Survey;
  // What is wanted of a row that has to be rebuilt: which data units, and which blocks of them.
  struct Want {
    uint64_t units = 0, first = ~0ull, last = 0;
  };
  Want want_of(std::span<const Piece> pieces) const;
  Status recover(std::span<const Piece> failed);
  Status recover_as_known_now(uint64_t row, std::span<const Piece> pieces, uint64_t next_row);
  Status recover_row(const layout::RowRecord& record, std::span<const Piece> pieces, uint64_t next_row);
  Status recover_blocks(const layout::RowRecord& record, std::span<const Piece> pieces, const Want& want);
  void copy_columns(const Piece& piece, uint64_t begin, uint64_t end, const std::vector<std::byte*>& units) const;
  void start_range(const layout::RowRecord& record, int unit, Survey& seen);
  void finish_range(const layout::RowRecord& record, int unit, Survey& seen);
  void survey(const layout::RowRecord& record, std::span<const int> units, Survey& seen);
  std::vector<int> reading_order(uint64_t row, uint64_t wanted, uint64_t not_from) const;
  Status rebuild_columns(const layout::RowRecord& record, const Survey& seen, uint32_t begin, uint32_t end, std::byte* const* into);
  Status rebuild_all(const layout::RowRecord& record, const Survey& seen, std::byte* const* into);
  uint32_t rebuild_cached(const layout::RowRecord& record, uint32_t first_block, uint32_t blocks, std::byte* const* into, uint64_t not_from);

  // row_held.cpp
  struct HeldRow;
  bool may_hold() const;
  bool take_held(const Piece& piece);
  bool read_sequentially(const Piece& piece);
  bool lies_in_memory(const layout::RowRecord& record, const Piece& piece);
  bool hold_from_memory(const layout::RowRecord& record, std::span<const Piece> pieces);
  std::vector<int> sources_of(uint64_t row, uint64_t data_units) const;
  Status hold_from_lanes(const layout::RowRecord& record, std::span<const Piece> pieces, uint64_t next_row);
  std::shared_ptr<HeldRow> start_row(const layout::RowRecord& record);
  std::shared_ptr<HeldRow> row_under_way(const layout::RowRecord& record);
  void start_ahead(uint64_t row);
  Status finish_row(HeldRow& row, bool rebuild);

  Members& members_;
  RecordStore& records_;
  const catalog::Located& located_;
  layout::Geometry geometry_;
  std::shared_ptr<const coding::Code> code_;
  RowBlocks blocks_;
  int rank_;
  // Where the last read ended, as a logical offset, and of what version the records were; and whether this one goes on there.
  uint64_t read_to_ = ~0ull, read_version_ = 0;
  bool sequential_ = false;
  Intervals missed_;                 // rows that late members have not got
  uint64_t missed_since_ = 0;        // Members::late_since of these
  bool gaps_are_zeros_ = false;      // of the row that is being rebuilt
  uint64_t last_recovered_ = ~0ull;  // the last row of which anything had to be rebuilt
  // The last row that was read or rebuilt whole, and the one after it on its way. Good as long as no record has changed since.
  std::shared_ptr<HeldRow> held_, ahead_;
};

}  // namespace holdfast::engine
