// Starting the agents of a job's nodes, each by the way that there is to its node.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "transport/endpoint.hpp"

namespace holdfast::cli {

struct NodeDirectories {
  std::string node;
  std::vector<std::string> directories;
};

// What --simulate-nodes makes below the user's directory, with one for each node, by its name.
inline constexpr std::string_view simulated_nodes_directory = "holdfast-nodes";
// Whether such a directory is a simulated node's, by its place.
inline bool is_of_simulated(const std::string& node, const std::string& directory) {
  return directory.ends_with("/" + std::string(simulated_nodes_directory) + "/" + node);
}

struct AgentStart {
  std::string with;           // the command that runs another one on {node}; empty: a step of the Slurm job, where this is one
  uint64_t linger_s = 60;     // they end when nobody has been connected for so long; 0: never by themselves
  bool makes_missing = true;  // directories
  transport::Reach reach = transport::Reach::network;
  std::chrono::milliseconds patience{30000};  // with the command of `with` on one node
};

// The agents that a command has started, or may start.
struct JobAgents {
  std::vector<NodeDirectories> nodes;
  std::vector<std::string> patterns;  // their directories, with {node}; empty: by their names
  AgentStart how;
};

// The last component only: where what it is to lie in is missing, a mount may be.
Status make_missing(const std::string& directory);
// Whether agents of the node answer that serve all of these.
bool is_served(const NodeDirectories& node);
// Where none answers that serves the node's directories. In a Slurm job they are a step of it, unless `how.with` names another way. Else this node's
// is started by this process, and others only by `how.with`. `patterns`: the directories with {node}. What does not come up in a step is told on
// standard error.
Status start_agents(const JobAgents& job);
// One that does not answer any more, by the same way. Nothing is made: a directory that is gone is lost. Whether it has come up is to be asked; that is
// waited for some seconds at most. False where there is no way to that node.
bool start_again(const JobAgents& job, const NodeDirectories& node);

}  // namespace holdfast::cli
