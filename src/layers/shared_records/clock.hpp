// Timestamps that compare across the processes of a job: nanoseconds on rank 0's monotonic clock.
//
// Processes that share rank 0's clock (one boot of one kernel) have its readings exactly. Elsewhere the offset is bounded by round
// trips: rank 0 read its clock after our message had left and before its answer was here, so the truth lies between two
// differences (F. Cristian, Probabilistic clock synchronization, 1989). Bounds from later round trips give the drift.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "exchange/exchange.hpp"

namespace holdfast::layers {

class TimeSource {
 public:
  virtual ~TimeSource() = default;
  virtual int64_t now_ns() = 0;    // never goes back
  virtual std::string node() = 0;  // processes that say the same read the same clock
};
std::shared_ptr<TimeSource> system_time();  // CLOCK_MONOTONIC; boot id and time namespace

struct Stamp {
  uint64_t time_ns = 0;
  uint64_t uncertainty_ns = 0;  // the true time is at most so far away
};

class Clock {
 public:
  explicit Clock(std::shared_ptr<TimeSource> source) : source_(std::move(source)), node_(source_->node()) {}

  // Collective: measures the offset to rank 0's clock, better the more round trips.
  void estimate(exchange::Exchange& ranks, int round_trips);
  // Collective and cheap: estimates again where the last time is long ago on any rank.
  void refresh(exchange::Exchange& ranks);
  // Later than every stamp that this process got before.
  Stamp now();
  int64_t offset_ns();
  uint64_t uncertainty_ns();
  const std::string& node() const { return node_; }

 private:
  struct Bounds {  // of (rank 0's clock - ours) at our time `at`
    int64_t at = 0, low = 0, high = 0;
    int64_t middle() const { return low + (high - low) / 2; }
    uint64_t radius() const { return uint64_t(high - low + 1) / 2; }
  };
  void take(const Bounds& bounds);
  int64_t offset_at(int64_t at) const;
  uint64_t uncertainty_at(int64_t at) const;

  std::shared_ptr<TimeSource> source_;
  std::string node_;
  std::mutex mutex_;
  bool exact_ = true;
  Bounds first_, last_;
  bool have_first_ = false;
  double drift_ = 0;             // of rank 0's clock against ours
  double drift_error_ = 200e-6;  // quartz is within 100 ppm, and there are two of them
  uint64_t latest_ = 0;
};

}  // namespace holdfast::layers
