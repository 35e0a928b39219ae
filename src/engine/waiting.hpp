// Time as this room sees it. How a loop that has found a lock busy waits before it asks again, and what time it is.
#pragma once
#include <chrono>
#include <cstdint>
#include <thread>

namespace holdfast::engine {

// How often one looks anew at what others were changing meanwhile, before it is taken as it is.
inline constexpr int most_looks_again = 4;

// Tests whose processes take turns put their own here: there another one has to get on, and no time passes.
inline void (*wait_while_busy)(std::chrono::microseconds) = [](std::chrono::microseconds pause) { std::this_thread::sleep_for(pause); };

// Nanoseconds since 1970, which put the writes of several ranks in order. Tests tell their own time.
inline uint64_t (*clock_ns)() = [] {
  return uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count());
};

}  // namespace holdfast::engine
