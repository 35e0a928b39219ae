// The pool of nodes' directories that a job keeps its files in.
#pragma once
#include <string>

#include "base/config.hpp"
#include "base/status.hpp"

namespace holdfast::cli {

struct PoolOptions {
  std::string hosts;  // a list or a file; empty: the resource manager's
  std::string drain;  // parse_drain(): whether files on nodes only become plain at their paths when the job ends; empty: as `drains`
  std::string with;   // the command that runs another one on {node}; empty: agents of other nodes are started by the user
};

// What --local says of every node becomes NODE:DIR of each node; directories and agents are made where they are missing.
Status resolve_pool(Settings& settings, const PoolOptions& options);
// Nodes of this machine: a directory and an agent each. They are kept, and the agents end a while after their last client.
Status simulate_nodes(int count, Settings& settings);
// Whether files are to be brought to their paths when the job ends: by default inside an allocation, whose nodes' disks may be wiped after it.
bool drains(const PoolOptions& options);
// After the program: files whose bytes lie on these nodes only are named, or brought to their paths. The exit code of the whole, of which `code` is the
// program's.
int end_pool(const Settings& settings, const PoolOptions& options, int code);
// Every directory of it gets its identity, or one sentence says why not. What is left out is told on standard error.
Status open_pool(const Settings& settings);

}  // namespace holdfast::cli
