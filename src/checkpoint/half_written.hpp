// Programs that write a checkpoint's file by several opens: section by section, or a library's two. Each close makes a version. Where the job dies between
// two of them, the last version is of a file that is written in part, and its name looks as good as any.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/choice.hpp"

namespace holdfast::checkpoint {

// Marks what may be so: a file that was closed fewer times than each one in its place before it, and that its rank has not gone past. Those before are of its
// attempt, or else of the last one that has some. Only where something older is whole: else it may be all that there is.
// `all`: in their order, of all runs.
void mark_half_written(std::vector<Checkpoint>& all);

// Attempts whose program has ended well have closed their files as often as they meant to. By run.
using EndedWell = std::map<std::string, std::set<layout::Attempt>>;
void unmark_ended_well(std::vector<Checkpoint>& all, const EndedWell& ended);

// For those who look at versions alone, and know nothing of ends: the ids of their files.
void add_half_written(const std::vector<Checkpoint>& all, std::set<std::string>& ids);

// "/data/ck.7.h5 was closed 1 time, and those before it 2 times: it may be written in part"; empty where nothing is marked.
std::string why_half_written(const Checkpoint& one);

}  // namespace holdfast::checkpoint
