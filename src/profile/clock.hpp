// The clock of the hot path is the processor's counter where it is known to run evenly, else nanoseconds. A clock_gettime costs 20 to 40 ns, twice a
// call that is half the budget. A piece says what its ticks are worth.
#pragma once
#include <cstdint>

#include "base/meter.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace holdfast::profile {

inline bool counter_is_even() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & (1u << 8));  // invariant in all power states
#else
  return false;
#endif
}

inline const bool clock_is_counter = counter_is_even();

inline uint64_t ticks() {
#if defined(__x86_64__)
  if (clock_is_counter) [[likely]]
    return __rdtsc();
#endif
  return meter_now_ns();
}

}  // namespace holdfast::profile
