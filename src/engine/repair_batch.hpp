// What a repair believes of a file, and does to it, under one holding of the file's lock. Whatever was read before the lock may have been
// changed by a running job since. Each batch reads manifest and records anew, through objects that it opens itself.
#pragma once
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/file.hpp"
#include "engine/inspector.hpp"
#include "engine/node_sums.hpp"

namespace holdfast::engine {

// What goes on from batch to batch of one repair.
struct RepairLedger {
  RepairLedger(catalog::Located& where, const Settings& settings)
      : located(where), failed(where.members.size()), askers(std::chrono::milliseconds(settings.deadline_ms)) {
    report.per_member_units.resize(failed.size());
  }

  catalog::Located& located;  // its manifest, members and replacements follow what the repair has made of the file
  RepairReport report;
  std::vector<std::string> failed;  // by member: why nothing more is written there; empty while all went well
  std::set<uint64_t> lost_rows;
  bool records_lost = false;         // no target knows what some row holds
  MemberSet incomplete;              // members that lack something which cannot be had now
  std::vector<std::string> reasons;  // by member: why it is incomplete
  MemberSet overtaken;               // members that lack what a job has synced while they were repaired
  SumAskers askers;

  void lacks(const MemberSet& members, const std::string& why);
  void lacks(int member, const std::string& why) { lacks(MemberSet::of(member), why); }
  void give_up(int member, const std::string& why) { failed[size_t(member)] = why; }
};

class RepairBatch {
 public:
  // Waits for the lock.
  static Result<std::unique_ptr<RepairBatch>> begin(RepairLedger& ledger, const Settings& settings);

  const layout::Manifest& manifest() const { return look_.located.manifest; }
  bool alone() const { return alone_; }  // nobody writes the file, and nobody can while we hold the lock
  // Members that are written to and are not current: what is lacking there, and of what may be believed there, the others know better.
  MemberSet newcomers() const;

  // What dead writers left in the way: unnamed journals, spills; committed journals; other things in the places of objects.
  Status clear_the_way();
  // Whether agents of other nodes help: then several rows are under way at once.
  bool by_nodes() const { return sums_.possible(); }
  // One row's units and records. `since`: only if it may have changed since that manifest.
  void mend(uint64_t row, const layout::Manifest* since);
  // What is still under way of the rows so far.
  void mend_rest();
  // What was mended is made durable; a member that cannot do so is given up.
  void make_durable();
  // Ends of objects, and the manifest that makes complete members current.
  Status finish();
  // Writers that ended without closing. What they wrote and never synced is read once more (what verifies, else zeros) and written as a generation of
  // its own, which becomes a synced one. Dying in it leaves what was before.
  Status fold_sessions();

 private:
  RepairBatch(RepairLedger& ledger, const Settings& settings, Locks locks);

  MemberSet targets() const;
  bool current(int member) const { return look_.members.available(member) && !moved_.has(member); }
  Status on(int member, MemberCall call) { return onto_.submit(member, std::move(call))->wait(); }
  // The same kind of call on each target, side by side; an empty one is none. Who fails it is given up.
  void on_targets(const std::function<MemberCall(int member)>& make_call);
  // What was not written has a reason, and its member is given up.
  struct Write {
    int member;
    std::shared_ptr<target::Ticket> ticket;  // null: it was not begun
  };
  Write begin_to_write(int member, std::string name, uint64_t offset, Bytes bytes);
  Status end(const Write& write);

  // repair_batch.cpp
  bool nobody_writes();
  MemberSet members_to_move();
  Result<std::vector<std::string>> objects_like(Members& members, int member, const std::string& prefix);
  void remove_litter();
  Status replay_journals();
  void make_room_for_objects();
  Status write_again(RowWriter& writer, uint64_t row, uint64_t generation);
  void set_ends();
  void distrust_old_ends();
  bool records_beyond_end(int member);  // of a newcomer, synced
  MemberSet complete() const;

  // repair_rows.cpp
  struct Row;
  struct Range;
  void mend_slots(const layout::RowRecord& record);
  MemberSet slot_targets(uint64_t row) const;
  std::vector<Write> write_slots(const layout::RowRecord& record, const std::vector<Bytes>& slots);
  void note_slots(const std::vector<Write>& writes);
  void distrust_old_slots(const layout::RowRecord& record);
  void mend_units(const layout::RowRecord& record);
  void look_at(Range& range);
  void ask_for(Range& range);
  void finish(Range& range);
  void end(Range& range);
  void end_all_but(size_t count);
  bool mend_range(Range& range);
  bool find_missing(Range& range);
  void take_over(Range& range);
  void take_sums(Range& range);
  void write_range(Range& range);

  RepairLedger& ledger_;
  Locks locks_;     // held until all else of the batch is gone
  Inspector look_;  // where content comes from: the members that the manifest names
  bool alone_ = false;
  MemberSet moved_;        // members whose replacement is written to
  catalog::Located goal_;  // where it goes: replacements stand in the places of those that they replace
  Members onto_;
  JournalOverlay no_journals_;
  RowSources places_;
  RowRebuilder there_;  // what the goal has in its places already
  RowSources sources_;  // where content comes from, for nodes that rebuild it together
  NodeSums sums_;
  std::deque<std::shared_ptr<Range>> going_, written_;  // each in their order
};

}  // namespace holdfast::engine
