// Calls that each wait for a device, made at the same time. A journal is written once for all of them, and a device flushed once.
#pragma once
#include <functional>
#include <span>

#include "base/status.hpp"

namespace holdfast::target {

// Helpers for side_by_side, up to a bound: companions of the process (companion.hpp), which only a thread of the program's may start. Kept for good.
void keep_helpers(int count);

// Makes all calls and waits for all of them; the first failure in their order. For what no helper is free the caller does itself. A call that hangs
// keeps its helper and the caller, as if the caller had made it.
Status side_by_side(std::span<const std::function<Status()>> calls);

}  // namespace holdfast::target
