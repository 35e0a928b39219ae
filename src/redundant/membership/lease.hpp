// How long a process on another node than the hub's may act, and from when on the hub may take it for ended, though nobody has said so. Each goes by its own
// clock: a process counts from when it said what the hub has heard, the hub from when it heard it, which is later.
#pragma once
#include <atomic>
#include <cstdint>

namespace holdfast::redundant {

// A process's own.
class Lease {
 public:
  // By a word of this process that has come back from the hub.
  void renew(int64_t said_ms, int64_t deadline_ms);
  // From then on it must not act.
  bool is_over(int64_t now_ms) const;

 private:
  std::atomic<int64_t> until_ms_{0};
};

// The hub's view of a process that it has not heard of for so long.
bool has_ended_itself(int64_t unheard_ms, int64_t deadline_ms);
// It is declared lost. A process on another node has a moment to end itself first.
constexpr int64_t far_margin_ms = 500;
bool is_lost_far_away(int64_t unheard_ms, int64_t deadline_ms, int64_t margin_ms = far_margin_ms);

}  // namespace holdfast::redundant
