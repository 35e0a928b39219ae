// A file of a checkpoint that processes of several nodes write, each by an open of its own: 'shared:PATTERN' says so. It grows on the nodes' targets, as
// what ranks open together (together.hpp). Here nobody tells the others of it, so nodes keep a record of it, and whoever opens the file finds that.
// docs/decisions/0052
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/catalog.hpp"
#include "catalog/located.hpp"
#include "checkpoint/local.hpp"
#include "checkpoint/parts.hpp"
#include "checkpoint/run.hpp"
#include "layout/manifest.hpp"

namespace holdfast::checkpoint {

inline constexpr const char* shared_directory = "shared";  // beside the states: records
inline constexpr const char* sealed_directory = "sealed";  // ... and of which of them it was decided that they are complete
inline constexpr const char* over_directory = "over";  // ... and which of them nodes that did not answer may have still, though they are so no more

struct SharedFile {
  LocalName name;             // of the version that it becomes
  uint32_t ranks = 1;         // of the job
  std::string stem;           // see layout::Version
  layout::Manifest manifest;  // where it lies
  // Its generation when it was a copy of the version before, and no more. Nothing where it began empty. docs/decisions/0103
  std::optional<uint64_t> begun_as{};
  bool is_sealed = false;  // nobody opens it to write any more
  size_t copies = 1;       // of its record, among the nodes that were asked
  bool is_last = true;     // else it has been truncated since, as its program sees it
};

// A new one over the nodes, and the way to one that is there. Its openers know nothing of each other: where so few nodes answer that the others would do
// without them, nothing is changed.
Result<catalog::Located> make_shared_file(const layout::Version& version, const Run& run, uint32_t mode, const Settings& settings);
catalog::Located locate_shared(const layout::Manifest& manifest, const Settings& settings);
Status truncate_shared_file(const layout::Manifest& manifest, const Settings& settings);

// Those of one attempt. A record is kept by M + 1 nodes, the first that answer in an order that the path says. Whoever misses M nodes at most asks one of
// them.
class SharedFiles {
 public:
  // Asks which nodes answer. Kind::lost where they are too few.
  static Result<SharedFiles> look(const Run& run, const Settings& settings);

  // Until this goes nobody else makes, opens or seals a file of that path.
  Status take_turn(const std::string& file);
  // The oldest version first. What a node that was away has of one that was sealed meanwhile, or was begun anew, is passed over.
  Result<std::vector<SharedFile>> find(const std::string& file) const;
  Result<std::vector<SharedFile>> find_all() const;
  // In a turn.
  Status add(const SharedFile& one) const;
  // Nobody has it open to write, and all ranks are done with it; where the job has `ended` well all are. Of one that is not the last all ranks have written it, or gone on
  // without. Kind::busy: not yet. Kind::lost: a node does not say so.
  Status is_complete(const SharedFile& one, bool ended) const;
  // In a turn: it becomes a version. Also of one that somebody else has begun to seal. The number of its targets that are lost.
  Result<int> seal(const SharedFile& one) const { return seal_as(one, one.name, one.stem); }
  // The same where its program has given it another name. Where that fails it keeps its own.
  Result<int> seal_as(const SharedFile& one, const LocalName& name, const std::string& stem) const;
  // In that turn, of those of its path that were found: what some ranks had written before all of them truncated it becomes complete no more.
  void forget_older_than(const SharedFile& one, const std::vector<SharedFile>& found) const;
  // The same where that one is a version: nothing of before is written any more. What is complete becomes one as well, and the rest goes, also where a node that could tell
  // more of it does not answer.
  void settle_older_than(const SharedFile& one, const std::vector<SharedFile>& found) const;
  // In turns of both paths, and nobody has it open: it is written under that name from here on. What ranks have said of it holds.
  Status rename(const SharedFile& one, const LocalName& name, const std::string& stem, const SharedFiles& of_goal) const;
  // In a turn, of one that is_only_looked_at(): it becomes the version of that name, and is empty, or `keeps` what it holds. As any file that is truncated it stays
  // the same file to whoever has it open, and takes part in that as well.
  Status begin_anew(SharedFile& one, const LocalName& name, bool keeps = false) const;
  // In a turn: its generation does not tell any more whether it is a copy still. By who has opened it to write and has not written: it does again. By who is to write: it is
  // a version, whoever writes to it.
  Status opened_and_not_written(SharedFile& one) const;
  Status is_no_copy(SharedFile& one) const;
  // In a turn: nothing leads to it any more. What has it open keeps it until the attempt is over.
  void forget(const SharedFile& one) const;
  // Nobody has written to it since it began as a copy: what the version before says holds.
  bool is_untouched(const SharedFile& one) const;
  // ... and no process that can be heard of has said that it is about to.
  bool is_only_looked_at(const SharedFile& one) const;
  // The same by their word alone: a generation changes as well when a handle is closed that has not written.
  bool is_unwritten(const SharedFile& one) const { return one.begun_as && !one.is_sealed && !is_noted(one); }
  bool is_noted(const SharedFile& one, bool by_silent_ones = false) const;  // they may be the ones that have heard of it
  // Where a node does not answer, what lies in the file tells of its ranks. `still_on`: the node of another one than `rank` that has written to it and has it
  // open, of those that can be heard of; empty: none.
  struct Written {
    bool by_any = false;
    std::string still_on;
  };
  Written who_has_written(const SharedFile& one, uint32_t rank) const;
  // Whether this node is the one that has to look after that file.
  bool is_keeper(const std::string& file, const std::string& node) const;

 private:
  SharedFiles(const Run& run, const Settings& settings, catalog::TargetSet pool, int most_lost);
  bool has_content(const SharedFile& one) const;
  std::vector<const catalog::Member*> in_order(const std::string& file) const;
  std::vector<const catalog::Member*> keepers(const std::string& file) const;
  Result<std::vector<SharedFile>> found_on(const std::vector<const catalog::Member*>& nodes, const std::string& file) const;
  Status put_record(const SharedFile& one) const;
  void forget_names(const SharedFile& one, bool for_good = true) const;
  Status put_on_keepers(const std::string& file, const std::string& name, const std::string& content) const;
  bool was_sealed(const SharedFile& one) const;
  Status make_version(const layout::Version& version, catalog::Located& located, int& lost) const;

  const Run run_;
  const Settings settings_;
  const std::string below_;  // the attempt's directory, on each node
  catalog::TargetSet pool_;
  int most_lost_;
  std::vector<const catalog::Member*> holding_;  // whose locks are held
  std::vector<std::unique_ptr<target::Lock>> turn_;
};

// What an attempt has left, when its job has ended: whatever is complete becomes a version. Sentences of what does not, or is degraded.
std::vector<std::string> seal_left(const Run& run, const Settings& settings, bool ended_well);

}  // namespace holdfast::checkpoint
