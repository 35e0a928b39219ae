// Directories that programs make for each step ('case/{step}/*'). They lie at the user's path, with or without checkpoints in them.
#pragma once
#include <cstdint>
#include <functional>

#include "checkpoint/pattern.hpp"

namespace holdfast::checkpoint {

using MayGo = std::function<bool(uint64_t step)>;
// Removes the empty ones of steps that `may_go`: their checkpoints are not there any more, or are not to be seen. A program that goes on from the
// last of its directories would choose one of those. What holds anything stays. Marks (directory_mark.hpp) go from all of them. No rank may be at work.
void tidy_step_directories(const Patterns& patterns, const MayGo& may_go);

}  // namespace holdfast::checkpoint
