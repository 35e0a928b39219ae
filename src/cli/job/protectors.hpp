// The protectors of an attempt: a process for each node that lives.
#pragma once
#include <chrono>
#include <mutex>
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
  // They end when everything that is closed is protected, or cannot be, or their node has not answered for some deadlines. The addresses of those
  // that did not manage all of it.
  std::vector<std::string> finish();
  void kill(const std::string& node);  // of that address, as its node's loss would

 private:
  using Clock = std::chrono::steady_clock;
  struct One {
    std::string node;
    pid_t process;
    raw::Fd held;  // its standard input
    bool here, killed = false;
    Clock::time_point silent_since = Clock::time_point::max();  // the agent of its node
  };
  void give_up_if_lost(One& one) const;
  std::mutex mutex_;  // of who ends them, and who kills one
  std::vector<One> all_;
  uint64_t deadline_ms_ = 0;
};

}  // namespace holdfast::cli
