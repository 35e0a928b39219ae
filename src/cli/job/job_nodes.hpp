// The nodes of a job whose user names none, and how a command is run there.
#pragma once
#include <string>
#include <vector>

#include "cli/job/launcher.hpp"
#include "cli/job/pool.hpp"

namespace holdfast::cli {

// Those that the launcher of the command is told, in its options, in the files that they name and in those of its variables: this node by its own name,
// others by their short ones. Nothing where they are not told, or where all ranks run on this node.
std::vector<std::string> nodes_of_command(const std::vector<std::string>& command, const Mpi& mpi);

// What the user has left out of `options` is filled in. Nodes are the command's where no resource manager names them; agents are started there as the launcher
// or the resource manager starts its own processes, where that command is to be had.
void fill_in(PoolOptions& options, const std::vector<std::string>& command, const Mpi& mpi);

}  // namespace holdfast::cli
