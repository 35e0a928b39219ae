// What committed journals hold that may not be in its place yet: rows' records, where their units lie, and which bytes of a row each
// committer vouches for. Readers look here first.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/intervals.hpp"
#include "engine/journal_entry.hpp"
#include "engine/record_store.hpp"

namespace holdfast::engine {

// Where a unit lies that a journal holds.
struct JournalPlace {
  std::string object;
  uint64_t offset = 0;
  uint64_t stored_bytes = 0;
};

class JournalOverlay {
 public:
  JournalOverlay(Members& members, const RecordStore& records, const catalog::Located& located)
      : members_(members), records_(records), located_(located) {}

  // Reads those that the manifest names and that are not known yet: a journal never changes once a manifest names it. False where one is on no
  // member any more. Then it was put in its place, and the manifest that names it is perhaps an old one by now.
  bool follow_manifest();
  void forget();
  // The journals that were read, in the manifest's order.
  const std::vector<std::string>& known() const { return known_; }
  // Why a journal that may be there could not be read from any member. Nobody knows then which rows are the newest, and none is read.
  const Status& unread() const { return unread_; }

  bool holds(uint64_t row) const { return rows_.contains(row); }
  const std::map<uint64_t, layout::RowRecord>& rows() const { return rows_; }
  const layout::RowRecord* record_of(uint64_t row) const;      // null where no journal holds the row
  const JournalPlace* place_of(uint64_t row, int unit) const;  // null where no journal holds the unit
  // The bytes of a row that journals vouch for, those left out that were folded in before `time_ns`. The newest journal has all of them.
  Intervals vouched_since(uint64_t row, uint64_t time_ns) const;

  // One journal over those of before. False as above.
  bool add(const std::string& name);

 private:
  struct Vouched {
    Intervals parts;       // of the row
    uint64_t time_ns = 0;  // when the row was folded in
  };
  void add_entries(const std::string& name, int member, const std::vector<JournalEntry>& entries);
  void note_parts(Vouched& vouched, const JournalEntry& entry) const;
  bool is_anywhere(std::span<const Status> answers);

  Members& members_;
  const RecordStore& records_;
  const catalog::Located& located_;
  std::map<std::pair<uint64_t, int>, JournalPlace> places_;  // by row and unit
  std::map<uint64_t, layout::RowRecord> rows_;
  std::map<uint64_t, std::map<uint64_t, Vouched>> vouched_;  // by row and the committer's generation
  std::vector<std::string> known_;
  Status unread_;
};

}  // namespace holdfast::engine
