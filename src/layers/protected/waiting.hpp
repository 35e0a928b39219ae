// How a loop that has found something busy waits before it asks again. The simulator puts the next process's turn in its place.
#pragma once
#include <chrono>
#include <thread>

namespace holdfast::layers {

using Waiting = void (*)(std::chrono::microseconds);
inline Waiting wait_a_little = [](std::chrono::microseconds pause) { std::this_thread::sleep_for(pause); };

}  // namespace holdfast::layers
