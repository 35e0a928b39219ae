// What the versions that are there add up to. A checkpoint commits by enumeration. It is whole once each of its files has a readable version
// of its step, and nobody has to be told. Which these are their places say; where names do not tell how many there are, versions that are rolls list
// them (roll.hpp). Attempts never mix.
#pragma once
#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "catalog/versions.hpp"
#include "checkpoint/run.hpp"
#include "layout/manifest.hpp"

namespace holdfast::checkpoint {

// A version that is protected, as it was found.
struct Protected {
  layout::Version version;
  std::string file_id;
  uint64_t bytes = 0;
  bool readable = true, complete = true;  // complete: no member lacks its part, nor its copy of the manifest
  bool endures = true;                    // FoundVersion::endures
  std::vector<std::string> on = {};
  std::string written_on() const { return catalog::node_digits_of(file_id); }
};

// When something of a run was written, as far as that can be told.
struct Age {
  layout::Attempt attempt = 0;
  uint64_t step = 0, written = 0;
  std::string node;  // whose files `written` counts, by its digits (catalog::digits_of_node)
};
// The attempts come first, then the order in which one node has written them. Of two nodes nobody can say which was first: the step counts.
bool is_before(const Age& a, const Age& b);

// Of one checkpoint, by place, or where rolls say what belongs to it by rank: of its last file there. Two are compared by the first place of both that one node
// has counted; else by the last of both that one node has counted, for ranks may write the same files in turn; else by the first of both, or their first ones.
using Ages = std::map<uint32_t, Age>;
bool is_before(const Ages& a, const Ages& b);

// Which file of a checkpoint, and the same one in every other: its number, or that of none and its stem (Patterns::place).
struct FilePlace {
  FilePlace(uint32_t of_rank, std::string name = "") : number(of_rank), stem(std::move(name)) {}
  explicit FilePlace(const layout::Version& version) : FilePlace(version.rank, version.is_single() ? version.file : version.stem) {}
  uint32_t number;
  std::string stem;
  auto operator<=>(const FilePlace&) const = default;
};

struct Checkpoint {
  std::string run;
  layout::Attempt attempt;
  uint64_t step = 0;
  uint32_t ranks = 0;                     // places that a whole one has: one for each rank, or what the patterns say
  uint32_t writers = 0;                   // ranks that have to say what else belongs to it; 0: nothing does
  std::map<FilePlace, Protected> files;   // the newest version of each
  std::map<FilePlace, Protected> beside;  // written of this step, and listed by no roll, once that is whole: removed before, or begun after it
  std::map<uint32_t, Protected> rolls;    // by rank, the newest of each
  std::optional<Protected> roll_of_all;
  std::vector<Protected> older;   // versions that a newer one of the same file has replaced
  std::vector<Protected> rivals;  // written beside the newest on another node: nobody can say which is right
  uint64_t bytes = 0;
  bool are_singles = false;      // files of no checkpoint, of all attempts of the run: each stands for itself (singles.hpp)
  std::vector<Protected> lost;   // of these: those of which no version can be read
  std::vector<Protected> plain;  // ... those that are newer at their paths, as they were drained, than what can be read
  bool is_mixed = false;         // some of its files have been written anew, others not yet
  bool is_emptied = false;       // nothing is in any of its files, and another one has content
  std::string torn_update;       // the file by which that is so, where it was not written again to its end (updates.hpp)
  // A file of it that was closed fewer times than those in its place before it (half_written.hpp); no name: none.
  struct HalfWritten {
    std::string file;
    uint32_t times = 0, usual = 0;
  } half_written;
  std::string removed;   // the file of it that the program has removed, where it has begun nothing newer (given_up.hpp)
  bool has_all() const;  // readable or not
  // What belongs to it beside its places is known and there.
  bool is_rolled() const;
  // By a file that was written after all others, and completes it: these are of one turn.
  bool is_said_at_once() const;
  // One that has written nothing of it, where others are further: nobody can tell it from one that is late.
  std::optional<uint32_t> silent_rank() const;
  // One sentence: why it is not, where it could be; else empty.
  std::string why_not_rolled() const;
  size_t files_of_all() const;  // as far as it is known
  void leave_out_what_is_not_listed();
  bool whole() const;
  bool endures() const;  // whole, and so after as many losses as the scheme bears
  const Protected* file_at(const std::string& path) const;
  const Protected* counterpart_of(const Protected& file) const;  // what has its place in this one; null where nothing has
  bool complete() const;
  const Protected* first_file() const;  // that says when it was written; null where it has none
  Age age() const;
  Ages ages() const;
  Age age_beside(uint32_t at, uint32_t writer) const;  // of its file at that place, where it has one, or of the last by that rank
  std::set<std::string> nodes() const;

 private:
  using ByPath = std::unordered_map<std::string_view, const Protected*>;
  ByPath by_path() const;
  std::set<std::string> missing() const;
  static bool has_what_is_rolled(const Protected& roll, const ByPath& files);
  std::vector<const Protected*> rolls_that_count() const;
};

// Whether that version is of what an attempt has begun with.
inline bool is_of(const layout::Version& version, const std::string& run, const Run::From& from) {
  return version.run == run && (version.is_single() || (version.attempt == from.attempt && version.step == from.step));
}

// What the same slot held before, or a file of it before its last close. A node that was away when that was replaced has it still: where the newer one is lost it
// stands for nothing. Rolls have no turn of their own; of files that are protected one by one an older version is taken.
inline bool is_older_than(const layout::Version& version, const Run::From& from) {
  if (version.roll || version.is_single() || version.attempt != from.attempt || version.step != from.step) return false;
  return (version.turn && version.turn < from.turn) || (version.times && version.times < from.times);
}
// What processes of its attempt have protected since it was chosen: they may outlive that attempt, where `run` was killed. What its slot holds then is of another
// time than what ranks have read already.
bool is_later_than(const layout::Version& version, const std::string& file_id, const Run::From& from);
// What an attempt begins with that begins with it.
Run::From from_of(const Checkpoint& one);

// Of all runs, in their order: by run, attempt, and as they were written. Where no two files of one place come from several nodes the node's own order
// says that; else the step does.
std::vector<Checkpoint> checkpoints_of(const std::vector<Protected>& found);
// "checkpoint 30"; of files that are protected one by one: "1 file that is protected by itself", "3 files that are protected one by one".
std::string name_of(const Checkpoint& one);
// What the next attempt of that run begins with; of two that are whole the later attempt's, then the one written later. None that the program has given up.
const Checkpoint* newest_whole(const std::vector<Checkpoint>& all, const std::string& run);
// Those of that run that go where `keep` whole ones that endure stay: all that are older than these, whole or not, and versions that were replaced.
// What is newer than the oldest of them stays, whole or not, and so does each file that its writer wrote after its file of that one. Of files that are
// protected one by one so many versions of each stay.
std::vector<Protected> to_drop(const std::vector<Checkpoint>& all, const std::string& run, size_t keep);

}  // namespace holdfast::checkpoint
