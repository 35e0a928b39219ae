// Whole checkpoints of a run that become plain files at their own paths. Some do so beside the job, the newest ones before a batch system ends it,
// and the last one when it has ended.
#pragma once
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/versions.hpp"
#include "checkpoint/choice.hpp"
#include "checkpoint/drain.hpp"
#include "checkpoint/survey.hpp"
#include "cli/job/allocation_end.hpp"
#include "engine/maintenance.hpp"

namespace holdfast::cli {

// What --drain says. Of protected files: whether they are brought to their paths. Of checkpoints: which.
struct DrainWhich {
  bool any = true;
  uint64_t every = 0;  // and each so-manieth whole one while the job runs; 0: none
  bool operator==(const DrainWhich&) const = default;
};
// "end", "last", "every:N", "none"; empty: last. Kind::invalid with the mend.
Result<DrainWhich> parse_drain(const std::string& text);

// The files of one checkpoint to their own paths, and a record of it on the nodes.
Result<checkpoint::Drained> drain_to_own_paths(const checkpoint::Checkpoint& which, const std::vector<catalog::FoundVersion>& versions,
                                               const Settings& settings, const engine::Progress& progress,
                                               const std::function<layout::Attempt()>& running = {});

class Drainer {
 public:
  Drainer(const Settings& settings, const DrainWhich& which) : settings_(settings), which_(which) {}
  ~Drainer() { (void)finish(); }
  Drainer(const Drainer&) = delete;

  // From whoever looks at the versions while the job runs, before old ones are dropped. `run`, `first_attempt`: whose checkpoints count. `running`: the
  // attempt by now.
  void offer(const std::vector<checkpoint::Checkpoint>& all, const std::vector<catalog::FoundVersion>& versions, const std::string& run,
             const layout::Attempt& first_attempt, const layout::Attempt& running);
  bool drains() const { return which_.any; }
  // It has its turn and is to stay for that long.
  bool needs(const layout::Version& version) const;
  // Once finished: it had its turn and is not drained. It can be later, which was said.
  bool has_left(const checkpoint::Protected& file) const;
  // Waits until those that had their turn are drained. False where none had.
  bool finish();
  // In the caller, once finished. True where it is at its paths now.
  bool drain_last(const checkpoint::Checkpoint& last, const checkpoint::Survey& survey);

 private:
  using Key = std::tuple<std::string, layout::Attempt, uint64_t>;  // run, attempt, step
  struct Order {
    checkpoint::Checkpoint checkpoint;
    std::vector<catalog::FoundVersion> versions;
  };
  bool is_last_chance_for(const checkpoint::Checkpoint& one);
  static Key key_of(const checkpoint::Checkpoint& one) { return {one.run, one.attempt, one.step}; }
  bool was_written_again(const checkpoint::Checkpoint& one, bool is_newest) const;
  void drain_again(const checkpoint::Checkpoint& one, const std::vector<catalog::FoundVersion>& versions);
  static Order order_for(const checkpoint::Checkpoint& one, const std::vector<catalog::FoundVersion>& versions);
  void begin_work();
  void give_order(const checkpoint::Checkpoint& one, const std::vector<catalog::FoundVersion>& versions);
  void work();
  bool drain(const Order& order, const engine::Progress& progress);

  const Settings& settings_;
  const DrainWhich which_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::set<Key> counted_;  // those that were whole
  using Numbers = std::map<checkpoint::FilePlace, uint32_t>;
  struct Ordered {
    std::set<std::string> ids;
    Numbers numbers;
  };
  static Numbers numbers_of(const checkpoint::Checkpoint& one);
  std::map<Key, Ordered> ordered_;  // those that had their turn, with their files' ids and numbers then
  AllocationEnd allocation_;
  double bytes_per_second_ = 100e6;  // a guess, until one has been drained
  std::optional<Order> next_, now_;
  std::map<Key, Order> again_;                 // had their turn before, and written again since
  std::map<Key, std::set<std::string>> done_;  // the ids of the files that were drained
  layout::Attempt running_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace holdfast::cli
