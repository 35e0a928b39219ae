// Programs that write a checkpoint's file by several opens: section by section, or a library's two. Each close makes a version. Where the job dies between
// two of them, the last version is of a file that is written in part, and its name looks as good as any.
//
// A version says how often its file was closed in that turn of its rank, and how often each file before it in its place was at least (layout::Version: times, fewest). The
// last version in a place speaks for all that are before it: whatever has fewer closes than that has a later version somewhere, or should have got one.
#pragma once
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/choice.hpp"

namespace holdfast::checkpoint {

// What the file of that step says of those before it, of which `last` is the last version in its place. LocalName, or layout::Version. What is written anew in the same
// step says what the one in its place did.
template <class Last>
uint32_t fewest_after(const Last& last, uint64_t step) {
  if (last.step == step || last.times == 0) return last.fewest;
  return last.fewest ? std::min(last.fewest, last.times) : last.times;
}

// Marks what may be so: a file that was closed fewer times than the last version in its place says of those before it in their attempt. Of the first one of an attempt the
// last attempt speaks that had as many files. Only where something older is whole, or is one of the `drained` ones: else it may be all that there is.
// `all`: in their order, of all runs.
struct DrainedCheckpoint;
void mark_half_written(std::vector<Checkpoint>& all, const std::vector<DrainedCheckpoint>& drained);

// Attempts whose program has ended well have closed their files as often as they meant to. By run. Not where a later close of a file lies on its node still, or failed.
struct LocalEntry;
using EndedWell = std::map<std::string, std::set<layout::Attempt>>;
void unmark_ended_well(std::vector<Checkpoint>& all, const EndedWell& ended, const std::vector<LocalEntry>& local);
// What an attempt has begun with is whole to it: `run` has looked at more than versions.
void unmark_beginning(std::vector<Checkpoint>& all, const Run& run);

// For those who look at versions alone, and know nothing of ends: the ids of their files.
void add_half_written(const std::vector<Checkpoint>& all, std::set<std::string>& ids);

// "/data/ck.7.h5 was closed 1 time, and those before it 2 times: it may be written in part"; empty where nothing is marked.
std::string why_half_written(const Checkpoint& one);

}  // namespace holdfast::checkpoint
