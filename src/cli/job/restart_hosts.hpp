// The command of a job that is started again when nodes were lost: its launcher is told which nodes are there.
#pragma once
#include <string>
#include <vector>

#include "base/status.hpp"
#include "cli/job/launcher.hpp"

namespace holdfast::cli {

struct NodesNow {
  std::vector<std::string> live;  // by name; those that hold most of what is gone on from come first
  std::vector<std::string> lost;
};

// The same command with its hosts rewritten, for mpirun and mpiexec of Open MPI and of MPICH and its kin, and for srun. A node that is there keeps
// its ranks. A lost one's go to a node that had none, or where there is no such node to the others. Hosts are looked for in the options, in the files
// that they or the launchers' variables name, and in the allocation. A command that says nothing of hosts outside of an allocation stays as it is.
// Kind::unsupported for a command that begins with none of these launchers, Kind::lost where no node is left.
Result<std::vector<std::string>> on_live_nodes(const std::vector<std::string>& command, const Mpi& mpi, const NodesNow& now);

// Of an option: its words, with {step} and {nodes} (names with commas between) put in. Kind::invalid for another field or an open quote.
Result<std::vector<std::string>> restart_words(const std::string& option, const std::string& text, const std::string& step,
                                               const std::vector<std::string>& nodes);

}  // namespace holdfast::cli
