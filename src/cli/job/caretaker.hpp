// Beside the job: what is whole gets its turn to be drained, what is too old goes, and simulated nodes are lost when their time has come.
#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/seen_whole.hpp"
#include "checkpoint/survey.hpp"
#include "cli/job/checkpointed.hpp"
#include "cli/job/drainer.hpp"
#include "cli/job/plain_before.hpp"
#include "cli/job/protectors.hpp"
#include "cli/job/simulated_loss.hpp"

namespace holdfast::cli {

class Caretaker {
 public:
  Caretaker(const checkpoint::Run& run, const Settings& settings, const CheckpointOptions& options, const std::optional<SimulatedLoss>& loss,
            Protectors& protectors, Drainer& drainer, PlainBefore& plain_before, const layout::Attempt& first_attempt,
            const std::set<std::string>& damaged);
  ~Caretaker() { stop(); }
  void stop();
  // What the last checkpoint has made too old goes as well.
  void finish();
  bool has_lost_nodes() const { return lost_; }
  bool has_seen_ranks() const { return ranks_seen_; }
  // The newest whole one, which stays from then on: a team that is started again reads it.
  std::optional<checkpoint::Run::From> hold_newest();
  // The newest of the run that was whole at any time; once it has stopped.
  const std::optional<checkpoint::SeenWhole>& seen() const { return seen_; }

 private:
  void work();
  void look();
  // Of files that are protected one by one: nothing newer would ever make these give way. Who asks for local names asks for many, so it is done now and then.
  void drop_removed(const std::vector<checkpoint::Checkpoint>& all);
  void tidy(const std::vector<checkpoint::Checkpoint>& all);
  bool is_of_beginning(const layout::Version& version) const;
  bool is_held(const layout::Version& version);

  const checkpoint::Run run_;
  std::optional<checkpoint::Run::From> held_;
  bool keeps_beginning_ = run_.teams > 1;  // for a team that is started again while the others go on
  const Settings& settings_;
  const CheckpointOptions& options_;
  const std::optional<SimulatedLoss>& loss_;
  Protectors& protectors_;
  Drainer& drainer_;
  PlainBefore& before_;
  const layout::Attempt first_attempt_;
  const std::set<std::string> damaged_;
  checkpoint::Surveyor surveyor_;
  std::optional<checkpoint::SeenWhole> seen_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::atomic<bool> lost_{false}, ranks_seen_{false};
  unsigned looks_ = 0;
  std::thread thread_;
};

}  // namespace holdfast::cli
