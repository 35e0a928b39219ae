// Which checkpoints stand at their own paths as plain files. A record of each lies on the nodes: it outlives the versions, and says whether the
// files are still those that the drain has left.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/catalog.hpp"
#include "checkpoint/choice.hpp"
#include "checkpoint/run.hpp"
#include "layout/manifest.hpp"

namespace holdfast::checkpoint {

inline constexpr const char* drained_directory = "drained";  // in local_directory, beside the runs

struct DrainedFile {
  uint32_t rank = 0;
  layout::PathState state;  // change_ns below 0: it was noted before it was renamed to its place, which changes it; minus the time of its last write
  std::string path;
  std::string version = {};  // version_drained(); empty in a record of before these were in it
  bool operator==(const DrainedFile&) const = default;
  bool still_there() const;
  bool is_about_to_be() const { return state.change_ns < 0; }
  std::optional<std::pair<layout::Attempt, uint32_t>> number() const;  // of that version: the attempt, and its count in that
};
// Tells a file's versions apart, in all attempts of a run.
std::string version_drained(const layout::Version& version);

struct DrainedCheckpoint {
  std::string run;
  layout::Attempt attempt;
  uint64_t step = 0;
  std::vector<DrainedFile> files;  // one of each rank
  struct Written {
    uint64_t count = 0;
    std::string node;  // by its digits
    bool operator==(const Written&) const = default;
  };
  std::map<uint32_t, Written> written = {};  // Ages; empty where they are not known
  bool are_singles = false;                  // files of no checkpoint (singles.hpp)
  bool operator==(const DrainedCheckpoint&) const = default;

  Ages ages() const;
  Age age() const { return ages().begin()->second; }
  uint64_t bytes() const;
  bool still_there() const;               // all of it; of files of no checkpoint any: each stands for itself
  bool has(const Protected& file) const;  // that version
  bool has_versions() const;              // whether it says which versions its files are
  std::string name() const;               // of its record
};

// After a drain of these versions, of a checkpoint with these ages, to their own paths. Of files of no checkpoint, of those that are there.
Result<DrainedCheckpoint> drained_now(const std::vector<layout::Manifest>& files, const Ages& ages);
// Before these, of no checkpoint, are renamed to their own paths from those where they have `grown`.
Result<DrainedCheckpoint> about_to_be_drained(const std::vector<layout::Manifest>& files, const std::vector<std::string>& grown);

std::string encode(const DrainedCheckpoint& drained);
std::optional<DrainedCheckpoint> decode_drained(const std::string& text);

// Of what was drained that is left which is still there. The others: checkpoints, each with those of its files that are changed or gone.
std::vector<DrainedCheckpoint> leave_out_what_has_changed(std::vector<DrainedCheckpoint>& all);

// On every one of these nodes (addresses) that answers. Records of the run whose files are gone, or others by now, go. Of files of no checkpoint the new record
// says as well what others say that is still so, and these go. Those of earlier attempts than
// the drained one's go only where an attempt `begins` with it. The one that runs may have begun with them, and its ranks ask for their files.
// `running`: the attempt, where that is known; it may be a later one than the drained one's.
Status keep_record(const DrainedCheckpoint& drained, const std::vector<std::string>& nodes, uint64_t deadline_ms, bool begins = false,
                   const layout::Attempt& running = {});
// Which plain files the programs of an attempt see: all where it begins from the start, else those of the drained checkpoint that it has begun with. Others at
// paths of that step are of older drains, which may have had files that this one has not.
class PlainFiles {
 public:
  // On node `own`. All three have to live as long.
  PlainFiles(const Run& run, const std::string& own, const Settings& settings) : run_(run), own_(own), settings_(settings) {}
  class Shown {
   public:
    bool has(const std::string& path) const { return all_ || (paths_ && paths_->contains(path)); }

   private:
    friend class PlainFiles;
    bool all_ = false;
    std::shared_ptr<const std::set<std::string>> paths_;
  };
  // Asked of the own node's record, else of the other nodes', once.
  Result<Shown> shown();
  bool has(const std::string& path) {
    const auto some = shown();
    return some && some->has(path);
  }
  // Which version of a file stands at its path, as a drain has left it; nothing where that is not so. All nodes are asked: once, or `anew`.
  // Not ok where none of them answers.
  using Number = std::pair<layout::Attempt, uint32_t>;
  Result<std::optional<Number>> drained(const std::string& path, bool anew = false);

 private:
  Result<DrainedCheckpoint> record() const;

  const Run& run_;
  const std::string& own_;
  const Settings& settings_;
  std::optional<Shown> shown_;
  std::optional<std::vector<DrainedCheckpoint>> records_;
};
// What the nodes of a pool know, by run, attempt and step; whether it is still there is not asked. Where one was drained again, and a node could not note that,
// both records are among them.
// `answered`: by so many nodes.
std::vector<DrainedCheckpoint> records_of(const catalog::TargetSet& pool, size_t* answered = nullptr);

}  // namespace holdfast::checkpoint
