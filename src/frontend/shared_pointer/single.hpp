// One log for all files that this process has open, beside the first of them. Protected files of a target set have one of their own, on its
// targets.
#pragma once
#include "frontend/shared_pointer/logged.hpp"

namespace holdfast::frontend {

// Fills in the log and how the session's note names it.
Status join_common_log(const RecordPlan& plan, const std::shared_ptr<layers::Shelf>& own, layers::RecordOptions& options);

}  // namespace holdfast::frontend
