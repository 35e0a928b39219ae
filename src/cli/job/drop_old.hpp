// Checkpoints of a run that are too old.
#pragma once
#include <vector>

#include "base/config.hpp"
#include "checkpoint/choice.hpp"
#include "checkpoint/run.hpp"
#include "checkpoint/survey.hpp"
#include "cli/job/plain_before.hpp"

namespace holdfast::cli {

// Of those that the surveyor has found with its last look. What stood at their paths before `first_attempt` has been replaced by them.
void drop_old(const checkpoint::Surveyor& surveyor, const std::vector<checkpoint::Protected>& old, const checkpoint::Run& run,
              const Settings& settings, const layout::Attempt& first_attempt, PlainBefore& before);

}  // namespace holdfast::cli
