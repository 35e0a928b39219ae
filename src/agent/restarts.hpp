// How often an agent that is killed is started again: three times within a minute. What kills it again and again, such as a disk that fails, is
// not helped by one more.
#pragma once
#include <chrono>
#include <vector>

namespace holdfast::agent {

class Restarts {
 public:
  // Whether one more is due now, which is counted then.
  bool may_start() {
    constexpr size_t most = 3;
    constexpr auto within = std::chrono::minutes(1);
    const auto now = Clock::now();
    if (latest_.size() == most) {
      if (now - latest_.front() < within) return false;
      latest_.erase(latest_.begin());
    }
    latest_.push_back(now);
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> latest_;
};

}  // namespace holdfast::agent
