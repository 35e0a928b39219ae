// The lanes to the targets of one file, and whether one of them may be given up. A target that does not answer within its deadline is set
// aside. But where more of them are late at once than the file can miss, that is load (a busy disk, a machine that was stopped). Giving them up would
// lose what is being written. Then they are waited for as long as any call comes back, up to a number of deadlines.
#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "target/lane.hpp"

namespace holdfast::target {

class LaneGroup : public std::enable_shared_from_this<LaneGroup> {
 public:
  using Clock = std::chrono::steady_clock;

  // Null where a target is lost already. `may_miss`: how many the file can do without. `patience`: deadlines, at the most.
  LaneGroup(std::vector<std::shared_ptr<Lane>> lanes, int may_miss, int patience);

  // The same lane for callers who wait as this group says.
  std::shared_ptr<Lane> lane(int index);
  // Its target is not used any more by this file, whatever the reason.
  void lose(int index) { lost_[size_t(index)] = true; }
  void take_back(int index) { lost_[size_t(index)] = false; }
  // A call has taken `age`, which is its deadline at least: whether to wait on.
  bool waits_on(Clock::duration age, Clock::duration deadline, Clock::time_point now = Clock::now());
  // Whether any call has ended since.
  bool came_back_since(Clock::time_point then) const;

 private:
  int late(Clock::duration deadline, Clock::time_point now) const;

  const std::vector<std::shared_ptr<Lane>> lanes_;
  const int may_miss_, patience_;
  std::vector<std::atomic<bool>> lost_;                            // by lane
  std::atomic<Clock::time_point> load_seen_{Clock::time_point()};  // when more were late than the file can miss
};

}  // namespace holdfast::target
