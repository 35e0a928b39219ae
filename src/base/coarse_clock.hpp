// The kernel's coarse clock: a tick (4 ms or less) behind at most, and read without a call of the system. For what is to be asked once in a
// while by code that runs on every small call.
#pragma once
#include <cstdint>
#include <ctime>

namespace holdfast {

inline int64_t coarse_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return int64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
}

}  // namespace holdfast
