// One log for each process and file.
#pragma once
#include "frontend/shared_pointer/logged.hpp"

namespace holdfast::frontend {

// Where the logs of this file lie: beside it, or on its targets.
Result<std::shared_ptr<layers::Shelf>> shelf_of(const RecordPlan& plan);

}  // namespace holdfast::frontend
