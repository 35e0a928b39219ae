// The protectors of an attempt: a process for each node that lives.
#pragma once
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
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
  // One that has ended while the job runs is started anew, and goes on with what was closed meanwhile. One sentence for each; a few times a minute at
  // most for one node. From any thread.
  std::vector<Status> revive();
  // They end when everything that is closed is protected, or cannot be, or their node has not answered for some deadlines. The addresses of those
  // that did not manage all of it.
  std::vector<std::string> finish();
  const std::vector<std::string>& died() const { return died_; }  // of these the ones that have said nothing at their end, when all have finished
  void kill(const std::string& node);                             // of that address, as its node's loss would

 private:
  using Clock = std::chrono::steady_clock;
  struct One {
    std::string node;
    pid_t process;              // -1: it has ended
    raw::Fd held;               // its standard input
    std::string way;            // to another node; empty: here
    std::optional<int> status;  // with which it has, where that is known
    bool killed = false, is_last = false;
    Clock::time_point silent_since = Clock::time_point::max();  // the agent of its node
    Clock::time_point next_start = Clock::time_point::min();
  };
  static bool has_ended(One& one);
  static bool is_to_be_had(const One& one);
  static void let_end(One& one);
  Status begin(One& one) const;
  Status begin_anew(One& one) const;
  void give_up_if_lost(One& one) const;
  std::mutex mutex_;  // of who ends them, who kills one, and who starts one anew
  std::vector<One> all_;
  bool finishing_ = false;
  std::vector<std::string> died_;
  std::map<std::string, std::string> orders_;  // by address
  uint64_t deadline_ms_ = 0;
};

}  // namespace holdfast::cli
