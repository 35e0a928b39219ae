// When the batch system ends the job, as far as it says so.
#pragma once
#include <chrono>
#include <optional>
#include <string>

namespace holdfast::cli {

class AllocationEnd {
 public:
  using Clock = std::chrono::system_clock;
  // Whether the allocation ends within so long from now; false where nothing is known. Before it says yes the batch system is asked anew: an operator
  // may have given the job more time. For one thread at a time.
  bool is_within(std::chrono::seconds lead);

 private:
  void ask();
  std::optional<Clock::time_point> end_;
  Clock::time_point asked_{};
};

// "2026-11-24T08:00:00", in local time, as squeue prints it; nothing for "N/A" and the like.
std::optional<AllocationEnd::Clock::time_point> parse_end_time(const std::string& text);

}  // namespace holdfast::cli
