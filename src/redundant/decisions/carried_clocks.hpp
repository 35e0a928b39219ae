// Clocks go on where a leader is lost: what the next one answers continues what all were told by the lost one.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

namespace holdfast::redundant {

template <class Time>
void raise_to(std::atomic<Time>& most, Time value) {
  for (Time seen = most.load(std::memory_order_relaxed); value > seen && !most.compare_exchange_weak(seen, value, std::memory_order_relaxed);) {
  }
}

// Processor time: each process has its own. The next leader goes on from what was said last.
class CarriedTime {
 public:
  // What the leader says, whose own time this is.
  int64_t of(int64_t own) {
    raise_to(added_, last_.load(std::memory_order_relaxed) - own);
    return own + added_.load(std::memory_order_relaxed);
  }
  void told(int64_t said) { raise_to(last_, said); }

 private:
  std::atomic<int64_t> last_{0}, added_{0};
};

// A clock that runs by itself, whose zero is its node's own (CLOCK_MONOTONIC, MPI_Wtime). Zeros of two nodes may be years apart. Each answer of a leader tells the others how far
// theirs is from its own. The one that was on its way for the shortest time tells it best. The unit is the user's.
template <class Time>
class CarriedClock {
 public:
  // Two clocks that are nearer than this are one, and an answer was on its way.
  explicit constexpr CarriedClock(Time alike) : alike_(alike) {}

  // What the leader says when its own clock shows this. Never less than what was said before.
  Time of(Time own) const { return std::max(own + ahead(), last_.load(std::memory_order_relaxed)); }

  void said(Time value) { raise_to(last_, value); }
  // By who was told, and whose own clock shows this now.
  void heard(Time value, Time own) {
    raise_to(ahead_, value - own);
    said(value);
  }

  // How far the program's time is ahead of this node's; 0 where nothing was heard.
  Time ahead() const {
    const Time known = ahead_.load(std::memory_order_relaxed);
    return known == none || (known < alike_ && -known < alike_) ? Time(0) : known;
  }

 private:
  static constexpr Time none = std::numeric_limits<Time>::lowest();
  const Time alike_;
  std::atomic<Time> ahead_{none}, last_{none};
};

}  // namespace holdfast::redundant
