// Checkpoints that the program itself has removed, and not for the sake of a newer one: nobody begins with them.
#pragma once
#include <vector>

#include "checkpoint/choice.hpp"
#include "checkpoint/survey.hpp"

namespace holdfast::checkpoint {

// A file of it, by the program: natively nothing would be at its path.
bool was_removed(const Checkpoint& one, const std::vector<LocalEntry>& local);

// What was removed as the older one serves as long as the newer one is not whole. Where nothing newer was begun, in the attempt of the removal or later, the
// program has found it bad. Of each run the newest ones that are so are marked, down to the first that is not. Where there is no such one, and no plain files
// either, none is marked: programs that remove what they have read, or a file before they write it anew, lose nothing when they die in between.
void mark_given_up(std::vector<Checkpoint>& all, const std::vector<LocalEntry>& local, const std::vector<DrainedCheckpoint>& drained);

}  // namespace holdfast::checkpoint
