// What nodes keep of checkpoints beside their versions: local copies, and what attempts have left. What of it goes, and when.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "checkpoint/run.hpp"
#include "checkpoint/survey.hpp"

namespace holdfast::checkpoint {

// These local files go from their nodes. Where the job is in a file's attempt still, its name is remembered there: see drop(). The nodes that could not
// remove one, by address.
std::set<std::string> drop_copies(const std::vector<LocalEntry>& entries, const layout::Attempt& attempt_now, const Settings& settings);

// All that these nodes know of a run of which there is neither a version nor a local file any more.
void forget_run(const std::string& run, const std::vector<std::string>& nodes, uint64_t deadline_ms);

}  // namespace holdfast::checkpoint
