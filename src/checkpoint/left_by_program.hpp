// What a job leaves whose ranks have all ended well, and of which an attempt wrote some files alone: the others had nothing left to do.
#pragma once
#include <optional>
#include <vector>

#include "checkpoint/choice.hpp"
#include "checkpoint/run.hpp"

namespace holdfast::checkpoint {

// The checkpoint that this attempt has begun with, in which the files that it has written again take the places of the older ones: natively just this stands at
// their paths. It counts as this attempt's. Nothing where none of them was written again, where one of them cannot be read, was not written to its end or on two nodes,
// and where wildcards leave open which files there are. No rank may be at work, nor have died.
std::optional<Checkpoint> left_by_program(const std::vector<Checkpoint>& all, const Run& run, const Checkpoint& begun);

}  // namespace holdfast::checkpoint
