// How a loop that has found a lock busy waits before it asks again.
#pragma once
#include <chrono>
#include <thread>

namespace holdfast::layers {

// Tests whose processes take turns put their own here: there another one has to get on, and no time passes.
inline void (*wait_while_busy)(std::chrono::microseconds) = [](std::chrono::microseconds pause) { std::this_thread::sleep_for(pause); };

}  // namespace holdfast::layers
