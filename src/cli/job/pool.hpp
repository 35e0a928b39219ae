// The pool of nodes' directories that a job keeps its files in.
#pragma once
#include <cstdint>
#include <string>

#include "base/config.hpp"
#include "base/status.hpp"
#include "cli/job/node_agents.hpp"

namespace holdfast::cli {

struct PoolOptions {
  std::string hosts;          // a list or a file; empty: the resource manager's
  std::string drain;          // parse_drain(): whether files on nodes only become plain at their paths when the job ends; empty: as `drains`
  std::string with;           // the command that runs another one on {node}; empty: a step of the Slurm job, else by the user
  uint64_t linger_s = 60;     // of agents that are started
  bool is_filled_in = false;  // `hosts` or `with` is not of the user
};

// What --local says of every node becomes NODE:DIR of each node; directories and agents are made where they are missing. For --targets NODE:DIR the agents
// are. What comes out is what this may start again.
Result<JobAgents> resolve_pool(Settings& settings, const PoolOptions& options);
// Nodes of this machine: a directory and an agent each. They are kept, and the agents end a while after their last client.
Result<JobAgents> simulate_nodes(int count, Settings& settings, const PoolOptions& options);
// Whether files are to be brought to their paths when the job ends: by default inside an allocation, whose nodes' disks may be wiped after it.
bool drains(const PoolOptions& options);
// After the program: files whose bytes lie on these nodes only are named, or brought to their paths, but those of other jobs that run. The exit code of the whole, of which `code` is the
// program's.
int end_pool(const Settings& settings, const PoolOptions& options, int code);
// Every directory of it gets its identity, or one sentence says why not. What is left out is told on standard error.
Status open_pool(const Settings& settings);

}  // namespace holdfast::cli
