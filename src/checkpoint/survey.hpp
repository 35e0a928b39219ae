// What the nodes of a pool hold of checkpoints: versions that are protected, and the names in the nodes' own directories.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "catalog/versions.hpp"
#include "checkpoint/choice.hpp"
#include "checkpoint/drained.hpp"
#include "checkpoint/half_written.hpp"
#include "checkpoint/local.hpp"

namespace holdfast::checkpoint {

struct LocalEntry {
  std::string node;  // the address
  std::string run;
  layout::Attempt attempt;
  State state;
  LocalName name;
  std::string why;            // of a failed one
  bool is_untouched = false;  // LocalFile
};

// What a rank could not read of the checkpoint that its attempt had begun with.
struct Unread {
  std::string node, run;    // the address
  layout::Attempt attempt;  // of the rank
  std::string file_id, why;
};

// One note of a rank that is on a node, or was (ended.hpp).
struct RankNoted {
  std::string node, run;  // the address
  layout::Attempt attempt;
  std::string note;
};

struct Survey {
  std::vector<catalog::FoundVersion> versions;
  std::vector<Checkpoint> checkpoints;
  std::vector<Protected> removed;  // by the program, of files that are protected one by one (singles.hpp)
  std::vector<LocalEntry> local;
  std::map<std::string, std::set<layout::Attempt>> attempts;  // by run, of which a directory is there, though it be empty
  EndedWell ended_well;                                       // as far as nodes know it
  std::vector<Unread> unread;
  std::vector<RankNoted> ranks;
  std::vector<DrainedCheckpoint> drained;  // of which all files are still at their paths
  std::vector<DrainedCheckpoint> changed;  // of which not, with those of their files
  std::vector<std::string> live, lost;     // addresses
  std::vector<std::string> unknown;        // of these not all local names could be listed
  std::vector<std::string> silent;         // these may have more than is known here: lost, unknown, or without a list of their versions
};

// Whether a version of the attempt was written on that node (an address).
bool has_written(const std::string& node, const Survey& survey, const Run& run);
// Where rolls say what belongs to a checkpoint: whether each rank of the attempt has left a note, or has written something, on a node that answers, and is none of these; and
// nothing is known that was written on these. A rank stays on its node for an attempt: the others have none.
bool are_all_ranks_heard(const Survey& survey, const Run& run, const std::set<std::string>& but);

// Its checkpoints, from what else it has: by all that is said of them. Who leaves something out of a survey calls it again.
// `damaged`: versions that count as unreadable, by their ids.
void tell_checkpoints(Survey& survey, const std::set<std::string>& damaged = {});

// Of the files of one checkpoint, by rank.
std::vector<layout::Manifest> manifests_of(const Checkpoint& checkpoint, const std::vector<catalog::FoundVersion>& versions);

// To an attempt that has no whole checkpoint of its own yet what it has begun with stays what it was: without what is_later_than() that.
void leave_out_later(std::vector<catalog::FoundVersion>& versions, const Run& run);

// Asked again and again: what is final is read once.
class Surveyor {
 public:
  // `damaged`: as tell_checkpoints() has it.
  Surveyor(std::vector<std::string> directories, uint64_t deadline_ms, std::set<std::string> damaged = {})
      : directories_(std::move(directories)), deadline_ms_(deadline_ms), damaged_(std::move(damaged)) {}
  // `run`: whose local names are asked for, or those of all runs where it is empty. Kind::lost where no node answers.
  Result<Survey> look(const std::string& run);
  // The protected ones alone, which is less to ask.
  Result<std::vector<Checkpoint>> look_at_versions();
  // The same while an attempt of that run goes on. Until it has a whole one of its own its beginning is whole, and the last of those before: nothing gives way to what came late.
  Result<std::vector<Checkpoint>> look_during(const Run& run);
  // Of a version that the last look has found.
  std::optional<layout::Manifest> manifest_of(const std::string& file_id) const;
  // Of those of `old` that the last look has found, by what they are stored in: each list can go as a whole. A pack stays as long as any of its files does.
  std::vector<std::vector<layout::Manifest>> stores_of(const std::vector<Protected>& old) const;
  const std::vector<catalog::FoundVersion>& last_versions() const { return last_; }

 private:
  const std::vector<std::string> directories_;
  const uint64_t deadline_ms_;
  const std::set<std::string> damaged_;
  catalog::VersionList versions_;
  std::vector<catalog::FoundVersion> last_;
};

// One word for where a checkpoint stands, from its versions, its local files and its plain ones.
struct Standing {
  std::string state, why;
  bool drained = false;  // it is at its own path as well
  uint64_t files = 0, bytes = 0;
  uint32_t ranks = 1;
  layout::Attempt attempt;
  uint64_t step = 0;
  std::string file;  // that is protected by itself, and is of no checkpoint; else empty
  std::string run;
  std::vector<std::string> nodes;
  Age age;
};
Age age_of(const LocalEntry& entry);
// Of a checkpoint with a file that was written on two nodes at the same time: which one, and where.
std::string rivalry_in(const Checkpoint& checkpoint, const Survey& survey);
std::vector<Standing> standings_of(const Survey& survey);

}  // namespace holdfast::checkpoint
