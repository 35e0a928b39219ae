// A job with checkpoints: its attempts one after another, and what goes on beside each of them.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "cli/job/launcher.hpp"
#include "cli/redundant/teams.hpp"

namespace holdfast::cli {

struct CheckpointOptions {
  bool resume = false;
  int restarts = 0, keep = 2;
  std::string simulated_loss;  // --simulate-loss 1,4@30
  int simulated_nodes = 0;
  std::string with;          // how something is started on another node
  std::string restart_with;  // the command of restarts, where it is another one
  std::string drain;         // --drain
  int teams = 1;             // --replicas
};

inline constexpr int exit_ranks_lost = 121;
inline constexpr int exit_restart_refused = 122;
inline constexpr int exit_not_protected = 123;

// What can be known before anything is made.
Status check_checkpoints(const Settings& settings, const CheckpointOptions& options);

// `attempt` runs a command once and answers its exit code; negative: it could not be started. Each time the environment says which attempt it is.
// `command` is the first attempt's. The answer is the last one's code, or one of those above. The pool is open and its agents run.
// `beginning`: for a team of it that is started again.
using Attempt = std::function<int(const std::vector<std::string>& command, const FindBeginning& beginning)>;
int run_attempts(const Settings& settings, const CheckpointOptions& options, const std::vector<std::string>& command, const Mpi& mpi,
                 const Attempt& attempt);

}  // namespace holdfast::cli
