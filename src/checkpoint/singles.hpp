// Files of patterns without any field ('results/*.dat'): each is protected by itself, and is of no checkpoint. The versions of one of all attempts of a run
// are a sequence. An attempt begins with the newest of each that can be read. Which of several files belong together nobody says. In a list of checkpoints
// all of a run stand as one (Checkpoint::are_singles).
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/choice.hpp"
#include "checkpoint/survey.hpp"

namespace holdfast::checkpoint {

// Those of which no version can be read: `files` go to `lost`.
void leave_out_lost(Checkpoint& singles);
// What cannot be read, or only as it was before, and is at its path as it was drained, is no loss: such files go to `plain`.
void take_plain(std::vector<Checkpoint>& all, const std::vector<DrainedCheckpoint>& drained, const std::vector<LocalEntry>& local);
// Out of `found`: versions of files that the program has removed since, in that attempt or a later one, as notes on the nodes say.
std::vector<Protected> take_removed(std::vector<Protected>& found, const std::vector<LocalEntry>& local);
// What goes where so many versions of each file stay that endure.
void add_outdated(const Checkpoint& singles, size_t keep, std::vector<Protected>& gone);

// Files of which a newer version is there and cannot be read.
std::vector<std::string> gone_back(const Checkpoint& singles);

// Whether a node has a note of one that was removed.
bool remembers_removed(const Survey& survey, const std::string& run);

// On all nodes of an attempt that begins: what is removed stays so, whichever nodes are lost, or come back with a version of it.
void note_removed(const Survey& survey, const Run& run, uint64_t deadline_ms);

// What an attempt has closed and the nodes do not have: its local files, by path, the newest of each.
std::map<std::string, LocalEntry> unprotected_singles(const Survey& survey, const std::string& run, const layout::Attempt& attempt);

// A line of each file.
void add_standings_of_singles(const Survey& survey, std::vector<Standing>& all);

}  // namespace holdfast::checkpoint
