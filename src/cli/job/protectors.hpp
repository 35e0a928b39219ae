// The protectors of an attempt: a process for each node that lives.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/raw_syscalls.hpp"
#include "base/status.hpp"
#include "checkpoint/run.hpp"

namespace holdfast::cli {

class Protectors {
 public:
  // Other nodes than this one are reached by the command `with`, or in a Slurm job by srun. One sentence for each node that has none.
  std::vector<Status> start(const checkpoint::Run& run, const Settings& settings, const std::string& with);
  // They end when everything that is closed is protected, or cannot be. `lost` answers which nodes (addresses) have gone: what was started there
  // is not waited for, for the way to a lost node may hang.
  void finish(const std::function<std::vector<std::string>()>& lost);
  void kill(const std::string& node);  // of that address, as its node's loss would

 private:
  struct One {
    std::string node;
    pid_t process;
    raw::Fd held;  // its standard input
  };
  std::vector<One> all_;
};

}  // namespace holdfast::cli
