// The members of one open file as this process sees them: which still answer, their lanes and open objects.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/member_set.hpp"
#include "base/status.hpp"
#include "catalog/located.hpp"
#include "target/lane_group.hpp"
#include "target/lane_lock.hpp"

namespace holdfast::engine {

// What a lane's call works on. Shared, for a call that hangs outlives the file.
class MemberHandle {
 public:
  explicit MemberHandle(std::shared_ptr<target::Target> target) : target_(std::move(target)) {}
  // For the lane's calls: what was held back is written before.
  target::Target& target();
  const std::shared_ptr<target::Target>& shared_target() const { return target_; }
  bool is_far() const { return target_->is_far(); }
  bool caches_by_node() const { return target_->caches_by_node(); }
  bool moves_objects() const { return target_->moves_objects(); }

  // --- a small object that is read before it is asked for, with the locks under which it is to be read
  // What was read ahead in rounds before counts no more, nor does what comes late of them.
  void begin_ahead(uint64_t round);
  void read_ahead(uint64_t round, const std::string& name, uint64_t max_bytes);
  // The same with a lock.
  Result<std::unique_ptr<target::Lock>> lock_and_read_ahead(uint64_t round, const std::string& lock, target::Hold hold, const std::string& name,
                                                            uint64_t max_bytes);
  // As it was read ahead in this round, once; else as it is now.
  Result<Bytes> get(const std::string& name, uint64_t max_bytes);

  // The object of that name, opened once. A later call with OpenMode::create reopens one that was opened to read.
  Result<std::shared_ptr<target::Object>> object(const std::string& name, target::OpenMode mode);
  // Makes everything that was opened to write durable; with `durable` false, visible to all nodes, and asks whether it is still there.
  Status settle(bool durable);
  // A small object that is to have the name `name` is written under another one; the next settle makes it durable with all else.
  void stage(const std::string& name, const std::string& scratch, ByteView content);
  // Replaces a small object whole. Where this content was staged and has become durable it only gets its name.
  Status put(const std::string& name, ByteView content, bool durable);
  Status write_back();  // visible to all nodes
  Status write(const std::string& name, uint64_t offset, std::span<const iovec> from);
  Status write(const std::string& name, uint64_t offset, ByteView from);
  // Several such writes in their order, in one wait where each costs one.
  struct Write {
    std::string name;
    uint64_t offset = 0;
    std::vector<iovec> from;
  };
  Status write_together(std::vector<Write> writes);
  // Where it is far, few bytes that are written from here on go with the settle that follows, or before any other call: at most this many.
  static constexpr uint64_t most_held_bytes = 256 << 10;
  void hold_writes(bool hold);
  // Reads exactly into.size() bytes; what the object does not have reads as zeros. Kind::not_found where there is no object.
  Status read(const std::string& name, uint64_t offset, ByteSpan into);
  // Of an object that lies with an agent: computed there. Kind::unsupported where it is to be read.
  Result<std::vector<uint64_t>> checksums(const std::string& name, const target::CheckedBlocks& blocks);
  // Cuts the object to `bytes` where it is longer, and with `exact` extends it where it is shorter. No object is fine unless exact.
  Status resize(const std::string& name, uint64_t bytes, bool exact);
  // Makes the object at least so long, and makes it where there is none.
  Status grow(const std::string& name, uint64_t bytes);
  // True where all of it was in memory (see Object::read_cached); never waits, not even for a call of a lane.
  bool read_cached(const std::string& name, uint64_t offset, ByteSpan into);
  void forget(const std::string& name);
  // Everything is opened anew at its next use; what is not durable yet stays with those that the next settle syncs.
  void forget_all();

 private:
  struct Open {
    std::shared_ptr<target::Object> object;
    bool writable = false;
    bool dirty = false;
  };
  struct Staged {
    std::string name, scratch;  // empty: there is none
    Bytes content;
    bool durable = false;
  };
  struct Held {
    std::shared_ptr<target::Object> object;
    uint64_t offset;
    Bytes bytes;
  };
  Result<std::shared_ptr<target::Object>> open_once(const std::string& name, target::OpenMode mode);
  void keep_ahead(uint64_t round, const std::string& name, Result<Bytes> content);
  std::vector<Held> take_held();
  bool hold_back(const std::vector<target::Target::ObjectWrite>& writes);
  // What fails of it fails once more at the settle.
  Status write_held();
  std::vector<std::pair<std::string, std::shared_ptr<target::Object>>> dirty_objects();
  Staged take_staged();
  std::shared_ptr<target::Target> target_;
  std::mutex mutex_;
  std::map<std::string, Open> objects_;
  Staged staged_;
  std::mutex brief_;  // of what follows; never kept over a call on the target, which may hang
  uint64_t ahead_round_ = 0;
  std::optional<std::pair<std::string, Result<Bytes>>> ahead_;
  bool holds_ = false;
  std::vector<Held> held_;
  uint64_t held_bytes_ = 0;
  Status held_failure_;
  std::map<std::string, std::shared_ptr<target::Object>>
      dirty_before_;  // written through handles that were let go of; one each, for an fsync is of the whole object
};

using MemberCall = std::function<Status(MemberHandle&)>;

class Members {
 public:
  // `patience`: how many deadlines calls are waited for while more members are late than the scheme can miss (target/lane_group.hpp).
  explicit Members(const catalog::Located& located, int patience = Settings().patience);
  Members(const catalog::Located& located, const Settings& settings) : Members(located, settings.patience) {
    lock_patience_ = std::chrono::milliseconds(settings.lock_patience_ms);
  }
  // Closes the objects in the lanes: closing on a target that hangs must not hang the program.
  ~Members();
  Members(Members&&) = default;
  Members(const Members&) = delete;

  int count() const { return int(members_.size()); }
  bool available(int member) const { return !lost_.has(member); }
  const MemberSet& lost() const { return lost_; }
  MemberSet available() const { return MemberSet::first(count()) - lost_; }
  // Whether any of them can give an object that is durable another name: what a commit writes last can be written early.
  bool can_stage() const;
  int lost_count() const { return lost_.count(); }
  // A member that failed a write, or that the manifest calls stale: neither read nor written any more by this open.
  void lose(int member, const std::string& why);
  // The same for a call that failed so. One that only outlived its deadline may be taken back, until all ranks have agreed on it.
  void lose(int member, const Status& why);
  const std::string& why(int member) const { return members_[member].why; }
  const std::string& path(int member) const { return members_[member].path; }  // for messages, with the nodes if they are known

  // --- members that are late (file_late.cpp): lost, and nobody else has been told that they are
  const MemberSet& late() const { return late_; }
  int may_miss() const { return may_miss_; }
  // By member: 0 while it is there, 1 where it is late, 2 where it is lost for good.
  std::vector<int64_t> losses() const;
  // Differs whenever members are late and none was before.
  uint64_t late_since() const { return late_since_; }
  // They are lost for good.
  void give_up() { late_.clear(); }
  void give_up(const MemberSet& members) { late_ -= members; }
  void give_up(int member) { late_.remove(member); }
  // Whether all calls that it was late with have ended, and well. One that ended badly makes it lost for good.
  bool has_come_back(int member);
  // To be called only when it has been given all that it has missed.
  void take_back(int member);
  // Asks those that are there for a sign of life, and does not wait for it.
  void nudge();
  bool came_back_since(std::chrono::steady_clock::time_point then) const { return lanes_->came_back_since(then); }
  // All ranks' losses together are more than can be missed, and some of them only late: nothing may be committed before that is settled.
  bool contested() const { return contested_; }
  void set_contested(bool contested) { contested_ = contested; }

  std::shared_ptr<target::Ticket> submit(int member, MemberCall call);
  bool read_cached(int member, const std::string& name, uint64_t offset, ByteSpan into) {
    return members_[member].handle->read_cached(name, offset, into);
  }
  // Kind::busy where another opener holds it.
  Result<std::unique_ptr<target::Lock>> lock(int member, const std::string& name, target::Hold hold = target::Hold::alone) {
    return ask_for_lock(member, name, hold).wait();
  }
  target::AskedLock ask_for_lock(int member, const std::string& name, target::Hold hold);
  // Small objects that are read with a lock, or beside those of other members, in one wait. The next `get` of each counts as made under the locks.
  // `name` gives a member's.
  struct Ahead {
    std::function<std::string(int member)> name;
    uint64_t max_bytes = 0;
  };
  target::AskedLock ask_for_lock(int member, const std::string& name, target::Hold hold, const Ahead& ahead);
  void read_ahead(int member, const Ahead& ahead);
  bool is_far(int member) const { return members_[member].handle && members_[member].handle->is_far(); }
  // What was read ahead and not asked for counts no more.
  void forget_ahead();
  void hold_writes(bool hold);
  std::chrono::milliseconds lock_patience() const { return lock_patience_; }  // how long a busy one is waited for
  // What was opened is opened anew at its next use: another node may have written it meanwhile (close-to-open).
  void reopen_objects();
  // The same, only on members whose nodes cache for themselves: other ranks may run on other nodes.
  void reopen_cached();
  // What this process has written there goes to where other nodes see it. A failure loses the member.
  void write_back();
  // Runs the same kind of call on every available member side by side; an empty one is none. A failure loses the member.
  void each(const std::function<MemberCall(int member)>& make_call);
  // The same, in two steps: what is begun is handed to wait_all.
  using Begun = std::vector<std::pair<int, std::shared_ptr<target::Ticket>>>;
  Begun begin_each(const std::function<MemberCall(int member)>& make_call);
  // Like each, but only reports: the status by member (ok with no call where the member is not available).
  std::vector<Status> ask_each(const std::function<MemberCall(int member)>& make_call);
  void wait_all(Begun& tickets);
  // Whether those that are lost had no space left, all of them.
  bool lost_for_space() const { return lost_.any() && (lost_ - full_).none(); }
  bool full(int member) const { return full_.has(member); }  // lost, because it had no space left
  // EMFILE where too many are lost only because this process had no descriptor for some of them; else 0.
  int reason() const;
  // "target /a (why); target /b (why)", with those that could not be read when they were last asked to: for messages.
  std::string describe_lost() const;

  // Whether nothing has to be noted of a read that went well.
  bool reads_well(int member) const { return members_[member].failed_reads == 0 && members_[member].read_failure.empty(); }
  // Members that have been asked to be read only when there is nothing better: they failed several reads in a row.
  bool avoid(int member) const { return members_[member].failed_reads >= 3; }
  void note_read(int member, bool ok, const std::string& why = "") {
    members_[member].failed_reads = ok ? 0 : members_[member].failed_reads + 1;
    members_[member].read_failure = ok ? "" : why;
  }

 private:
  // `call` for the members whose nodes cache for themselves, none for the others.
  std::function<MemberCall(int)> where_nodes_cache(MemberCall call) const;

  struct State {
    std::string path;
    std::shared_ptr<MemberHandle> handle;
    std::shared_ptr<target::Lane> lane;
    std::string why;
    int failed_reads = 0;
    std::string read_failure;    // of the last read, where the target said why
    uint64_t late_failures = 0;  // of its lane, when the file was opened
  };
  std::vector<State> members_;
  std::shared_ptr<target::LaneGroup> lanes_;
  MemberSet lost_, full_, unopened_, late_;  // these three of those that are lost
  uint64_t late_since_ = 0;
  uint64_t ahead_round_ = 0;
  int may_miss_ = 0;
  bool patient_ = true, contested_ = false;
  std::chrono::milliseconds lock_patience_{Settings().lock_patience_ms};
};

}  // namespace holdfast::engine
