// Starting agents on this node.
#pragma once
#include <string>
#include <vector>

#include "agent/serve.hpp"

namespace holdfast::cli {

// The agent of orders.node, unless one runs that serves all these directories: false then. The registry is the user's (agents_directory).
Result<bool> start_agent(agent::Orders orders);
// What the agent of that node serves; nothing where none answers.
std::vector<std::string> served_directories(const std::string& node);
// NODE:DIR of all that agents serve which are known; whether they answer is not asked.
std::vector<std::string> known_directories();

}  // namespace holdfast::cli
