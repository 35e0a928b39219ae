// The journal: new units of rows that hold synced data, written beside the data before they take its place. So a process that dies leaves either the
// old row or the new one, and never a row that is half of each.
//
// Every member has its own journal object of each committing rank with that member's units only. Losing members costs it no
// more than it costs the data. Format in docs/format.md.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "engine/journal_entry.hpp"
#include "engine/row_writer.hpp"

namespace holdfast::engine {

class Journal {
 public:
  // `name` is "<generation>.<rank>", as the manifest lists it.
  Journal(Members& members, RecordStore& records, const catalog::Located& located, std::string name);

  // Writes the row to the journals of all available members. Kind::lost where more than m units of a row did not arrive. `parts`: the bytes of the
  // row that the committer vouches for. The row's other bytes may still be written by the lone opener, which merges them at its own commit. Empty:
  // the whole row.
  Status append(const CodedRow& row, const Parts& parts = {});
  // The row is a hole from now on, whatever journals of before say.
  Status append_hole(uint64_t row, uint64_t generation);
  bool empty() const { return records_written_.empty(); }
  const std::string& name() const { return name_; }
  const std::vector<layout::RowRecord>& rows() const { return records_written_; }
  // After the commit: copies units and records into their place on every available member.
  void fold();
  // Removes the journal's objects.
  void remove();

 private:
  Status begin_anew(const MemberSet& writing);
  void append_entry(const CodedRow& row, std::span<const Part> parts, uint64_t now, bool with_units);

  Members& members_;
  RecordStore& records_;
  const catalog::Located& located_;
  std::string name_;
  std::vector<layout::RowRecord> records_written_;
  std::vector<uint64_t> ends_;  // by member: where the next entry goes
};

// Folds in what a committer that died left behind. Members that fail are lost.
// Returns how many entries were copied into place.
uint64_t replay_journal(Members& members, RecordStore& records, const catalog::Located& located, const std::string& name);
// Makes durable what others wrote there, before it takes the place of anything.
void sync_journal(Members& members, const catalog::Located& located, const std::string& name);
void remove_journal(Members& members, const catalog::Located& located, const std::string& name);

}  // namespace holdfast::engine
