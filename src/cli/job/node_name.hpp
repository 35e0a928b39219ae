// The name that the user gives to this node: `run --node-name`, for this process and the ranks on this host.
#pragma once
#include <string>

#include "base/status.hpp"

namespace holdfast::cli {

// From now on; the environment tells the job's processes, of which those on other hosts pass it over. Nothing where it is empty.
Status name_this_node(const std::string& name);

}  // namespace holdfast::cli
