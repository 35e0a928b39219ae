// What one node's programs have closed is protected, small files of one step together and others one at a time, or two while a newer checkpoint waits.
// What the checkpoint that the attempt began with has lost is made anew. States are names (local.hpp): whoever goes on from where another one was killed
// lists them.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/versions.hpp"
#include "checkpoint/local.hpp"
#include "checkpoint/pattern.hpp"
#include "checkpoint/protect.hpp"
#include "checkpoint/run.hpp"
#include "checkpoint/untouched.hpp"

namespace holdfast::checkpoint {

class Protector {
 public:
  // Of node `own`, an address of the run. `say` is told sentences for the user.
  Protector(Settings settings, Run run, const std::string& own, std::function<void(const std::string&)> say);

  // The directories. Where the node was started anew in this attempt, what was not protected has failed, and copies of what was are gone. Not ok: the node
  // cannot keep checkpoints.
  Status begin();
  const LocalFiles& files() const { return files_; }
  // One look: all that is closed, by everybody; then, where nothing of it is left, one of those that are to be made anew. True where it was one of these:
  // there may be more.
  bool work();
  // By a second thread beside work() and finish_closed(): a file of a newer checkpoint than what these have in hands, which would have to wait for it. Or
  // small files of it, together. False where there is none.
  bool protect_newer();
  // Once the attempt is over, or nobody tells any more whether it is. False where something is closed that a program still has open to write, or a second thread
  // has some in hands: it may be looked for again.
  bool finish_closed();
  // By the first thread.
  bool is_second_at_work() const;
  // The attempt is over, nothing more comes, and no second thread is left: what is left is not protected. False where that, or anything before, has failed.
  bool end();

 private:
  void protect_all();
  bool take_twins();
  bool renew_next();
  void seal_shared();
  bool seal_if_complete(const LocalName& name);
  Status complete_shared(const LocalName& name, std::optional<uint32_t> rank) const;
  bool has_seen_all(const std::vector<catalog::FoundVersion>& found) const;
  const catalog::FoundVersion* next_to_renew(const std::vector<catalog::FoundVersion>& found) const;
  std::vector<LocalName> left_in_hands() const;
  bool must_wait(const LocalName& name, bool is_other_at_work) const;
  bool take(const LocalName& name);
  std::vector<LocalName> take_newer();
  // A file in "protecting", and the version that it becomes.
  struct Taken {
    LocalName name;
    layout::Version version;
  };
  void protect_taken(const std::vector<LocalName>& names, catalog::VersionList& versions);
  void protect_small(std::vector<Taken> files, catalog::VersionList& versions);
  void protect_alone(const Taken& file, catalog::VersionList& versions);
  Result<ProtectedNow> protect_file(const Taken& file, catalog::VersionList& versions) const;
  void are_protected(std::span<const Taken> files, const ProtectedNow& now, catalog::VersionList& versions);
  bool was_dropped(const LocalName& name, catalog::VersionList& versions) const;
  bool is_noted_as_dropped(const LocalName& name) const;
  bool is_newer_whole(const LocalName& name, catalog::VersionList& versions) const;
  void forget(const LocalName& name);
  void let_go(const LocalName& name, const Status& why);
  Status check_not_overtaken(const LocalName& name, catalog::VersionList& versions) const;
  bool is_small(State state, const LocalName& name) const;
  void leave_room_after(const LocalName& name, catalog::VersionList& versions);
  Result<layout::Version> version_now(const LocalName& name) const;
  Status complete(const LocalName& name) const;
  void fail(const LocalName& name, const Status& status);
  Status fail_all_of_before();
  Status forget_copies_of_before() const;
  void say_why(const LocalName& name, const Status& status);
  void say_degraded(const LocalName& name, int lost);
  bool is_new(uint64_t step, const std::string& cause);

  const Settings settings_;
  const Run run_;
  const std::string own_;
  const std::function<void(const std::string&)> say_;
  const LocalFiles files_;
  const Untouched untouched_{files_};
  std::optional<Patterns> patterns_;
  bool is_rolled_ = false;   // rolls say what belongs to a checkpoint
  bool has_shared_ = false;  // processes of several nodes may write a file
  unsigned looks_ = 0, sealing_look_ = 0, looks_between_ = 1, turns_ = 0;
  catalog::VersionList versions_;
  std::set<std::string> asked_;     // ids of what was to be made anew
  std::set<std::string> unsealed_;  // files of which it was said that they could not be sealed
  bool renewed_ = false;
  unsigned incomplete_looks_ = 0, looks_to_leave_out_ = 0;
  // What the two threads have in hands.
  struct Hands;
  const std::shared_ptr<Hands> hands_;
};

}  // namespace holdfast::checkpoint
