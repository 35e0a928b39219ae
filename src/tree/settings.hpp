// What this process's user asked for.
#pragma once
#include "base/config.hpp"

namespace holdfast::tree {

// Read once, at the first call, and the same for all ways to files. The hints of an open come on top.
const Result<Settings>& process_settings();

}  // namespace holdfast::tree
