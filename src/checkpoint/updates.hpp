// Files of checkpoints that programs go on with, in place or by appending: some ranks have done so, and others not yet. The version before is gone then, so
// that what is left of the checkpoint may be of two times.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/choice.hpp"
#include "checkpoint/drained.hpp"
#include "checkpoint/pattern.hpp"
#include "checkpoint/survey.hpp"

namespace holdfast::checkpoint {

// Whether it was drained while others had gone on with their files, and the writer of this one had not. The record says no numbers: no.
bool is_of_two_times(const DrainedCheckpoint& drained, const std::string& torn);

// Its plain files are of two times, or are half written, as what these have of its checkpoint shows: nobody is to begin with them.
bool is_drained_in_part(const DrainedCheckpoint& drained, const std::vector<Checkpoint>& all);

// Checkpoints with all their files, of which one was not written again to its end, while another one had been before it. They are mixed. Only where
// something older is whole, or plain files are there that are of one time: what is left may be all that there is.
void mark_torn_updates(std::vector<Checkpoint>& all, const std::vector<LocalEntry>& local, const std::vector<DrainedCheckpoint>& drained);
// The ids of their files, for who looks at versions alone, by which they are whole.
void add_torn_updates(const std::vector<Checkpoint>& all, std::set<std::string>& ids);

// Of the files of a pattern with {rank} those that were written again more often than the others.
struct Uneven {
  size_t more_often = 0, all = 0;
  uint32_t first_rank = 0;  // of the former
};
// Nothing where they are even, or an older checkpoint that is whole has the same differences: that is the program's way.
std::optional<Uneven> written_unevenly(const Checkpoint& one, const std::vector<Checkpoint>& all, const Patterns& patterns);

}  // namespace holdfast::checkpoint
