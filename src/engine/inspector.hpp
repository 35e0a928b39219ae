// What status, verify and repair look at a file through: its members, its manifest as they have it, and the program's own row reader.
#pragma once
#include <string>
#include <vector>

#include "engine/maintenance.hpp"
#include "engine/manifest_store.hpp"
#include "engine/row_reader.hpp"

namespace holdfast::engine {

inline constexpr uint64_t inspected_bytes = 1 << 20;  // of each unit at a time

// The members that answer, stale ones included.
MemberSet usable_in(const catalog::Located& located);

// The records of one row as each member's sums object has it, raw; empty where it cannot be read, or ends before.
std::vector<Bytes> read_slots(Members& members, const RecordStore& records, uint64_t row, const MemberSet& of);

// The same in two steps.
struct SlotReads {
  std::shared_ptr<std::vector<Bytes>> found;
  std::vector<std::pair<int, std::shared_ptr<target::Ticket>>> tickets;
};
SlotReads begin_to_read_slots(Members& members, const RecordStore& records, uint64_t row, const MemberSet& of);
std::vector<Bytes> slots_of(SlotReads& reads);

struct Inspector : private OtherOpeners {
  Inspector(const catalog::Located& where, const Settings& settings);

  std::vector<Bytes> slots(uint64_t row, const MemberSet& of);

  catalog::Located located;
  Members members;
  RecordStore records;
  JournalOverlay journals;
  RowReader rows;
  ManifestReading reading;
  Status status;  // why there is no manifest to go by

 private:
  Status read_manifest_and_journals(const Settings& settings);
  bool have_not_synced(uint64_t generation) const override { return !located.manifest.is_synced(generation); }
  bool look_again() override { return false; }  // an inspector says what is there, and repair holds the lock
};

// Each member's state and why, from the manifests alone.
FileStatus describe(Inspector& look);
// Where even the manifest cannot be had: everything that is known comes from the catalog.
FileStatus describe_lost(const Inspector& look);
// What the members' states mean for the file, and for how many more losses it has left.
void judge(FileStatus& status);

}  // namespace holdfast::engine
