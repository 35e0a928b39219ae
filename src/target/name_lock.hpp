// Locks by name, for storage whose kernel locks stop at the node: what the server says of names holds for all nodes.
//
// A lock L is held by whoever has the name `L.held`. Each hold has a number of its own and a claim, the file `L.claim.NUMBER` that says
// whose it is; `L.held` is a second link to it.
//
// Release: `L.held`, then the claim. Where `L.held` cannot be removed the claim stays too, and the hold counts as that of a dead one in the process that
// had it. A hold whose owner is provably dead is ended by others, and never by time:
//
// 1. Whoever wants to end hold X renames its claim to `L.claim.X.OWN`, OWN being the number of its own claim. The server renames, so
//    one of several gets it; the others find no such name. That file is the right to remove X's name.
// 2. Does X still hold? The link count of that file says so: two where `L.held` is its other link. Nobody else can change it, for
//    X is dead and the right is ours. `L.held` is looked at through no cache: a claim's name is never used for anything else.
// 3. `L.held` goes, then the claim, and all try to link their own.
//
// One that dies between 1 and 3 leaves `L.claim.X.OWN`, and its own claim says that it is dead. The next one renames on
// (`L.claim.X.NEXT`) and looks again. Three that try at once: one renames, two find nothing to rename and see the lock busy. One that
// has read X in `L.held` long ago, while Y holds by now, finds no claim of X. It went before anybody could follow X.
//
// Shared holds are names `L.held.NUMBER`. They are made, and asked about, by one who has `L.held` at that moment.
//
// Where files have no links, or these are not counted, `L.held` is a file of its own, made exclusively, and step 2 reads it. That can be believed
// because a death is proved on the owner's own node: what its processes have removed, its kernel does not remember.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "target/lock_owner.hpp"
#include "target/target.hpp"

namespace holdfast::target {

// The directory in which a lock's names are. Each call is one of the server's.
class NameStore {
 public:
  virtual ~NameStore() = default;
  virtual std::string describe() const = 0;
  virtual Status make(const std::string& name, const std::string& content) = 0;  // Kind::exists
  virtual Status link(const std::string& from, const std::string& to) = 0;       // Kind::exists; Kind::unsupported
  virtual Status rename(const std::string& from, const std::string& to) = 0;     // Kind::not_found
  virtual Status remove(const std::string& name) = 0;                            // Kind::not_found
  virtual Result<std::string> read(const std::string& name) = 0;                 // Kind::not_found
  virtual Result<int> links(const std::string& name) = 0;                        // Kind::not_found; never from a cache
  virtual Result<std::vector<std::string>> list() = 0;
};

// Numbers of holds of this process that are over, though their names could not be removed. Whoever has failed to do so may live for long.
class LeftHolds {
 public:
  static const std::shared_ptr<LeftHolds>& of_this_process();
  void add(const std::string& number);
  bool has(const std::string& number) const;

 private:
  mutable std::mutex mutex_;
  std::set<std::string> numbers_;
};

// What the protocol knows of processes; tests have their own.
struct Processes {
  std::function<LockOwner()> new_hold = target::new_hold;
  std::function<bool(const LockOwner&)> is_dead = is_provably_dead;
  std::shared_ptr<LeftHolds> left = LeftHolds::of_this_process();
};

// Kind::busy, with who it is, where another one holds it.
Result<std::unique_ptr<Lock>> lock_by_name(std::shared_ptr<NameStore> store, const std::string& name, Hold hold, Processes processes = {});

// `kernel` says what the kernel's lock of the same name came to. Adds a lock by name where that one does not keep other nodes out (`reaches_all`) or
// where there are no such locks. Both are let go together, the name first. `names` opens the lock's directory, and is asked only then.
Result<std::unique_ptr<Lock>> also_by_name(Result<std::unique_ptr<Lock>> kernel, const std::function<bool()>& reaches_all,
                                           const std::function<Result<std::shared_ptr<NameStore>>()>& names, const std::string& name, Hold hold);

// Whether a name is one that a lock by name leaves beside the lock's own: ".held", ".claim." and what follows them.
bool is_name_of_lock(const std::string& name);
// Removes them all, whoever holds them, and says of each which it was and whose.
Result<std::vector<std::string>> break_locks(NameStore& store);

}  // namespace holdfast::target
