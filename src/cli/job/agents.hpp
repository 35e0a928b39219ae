// Starting agents on this node.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "agent/serve.hpp"
#include "base/node_list.hpp"
#include "base/raw_syscalls.hpp"
#include "target/agent_registry.hpp"

namespace holdfast::cli {

// An agent of orders.node for those of these directories that none serves, beside those that run; no descriptor where each is served (agent::start). The
// registry is the user's (agents_directory).
Result<raw::Fd> start_agent(agent::Orders orders);
// That what agents are is installed beside this command. Who starts many asks before that, and says it once.
Status agent_is_installed();
// One line about an agent whose note says that it is left dead.
std::string why_left_dead(const target::AgentNote& note);
// Kind::invalid where another word than {node} stands in such braces, or that one is misspelt.
Status check_marks(const std::string& directory);
// The name by which others call this node: Slurm's in a job step of its, else the short host name.
std::string own_node_name();
bool is_own_node(const std::string& node);
// Those that no agent of that node serves which answers.
std::vector<std::string> unserved(const std::string& node, const std::vector<std::string>& directories);
// NODE:DIR of all that agents serve which are known; whether they answer is not asked.
std::vector<std::string> known_directories();

}  // namespace holdfast::cli
