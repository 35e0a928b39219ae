// Starting agents on this node.
#pragma once
#include "agent/serve.hpp"

namespace holdfast::cli {

// The agent of orders.node, unless one runs that serves all these directories: false then. The registry is the user's (agents_directory).
Result<bool> start_agent(agent::Orders orders);

}  // namespace holdfast::cli
