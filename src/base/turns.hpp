// Who may look at something, and who may change it: lookers side by side, everybody else alone. Who waits for the turn lets nobody by that comes
// later, so that lookers cannot keep others waiting for ever.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <shared_mutex>

namespace holdfast {

// Threads of the simulator take turns, and no system wakes them: lets another one of the process go on. False: they are the system's threads.
inline bool (*let_a_thread_on)() = [] { return false; };

// For std::lock_guard (alone) and std::shared_lock (beside other lookers).
class Turns {
 public:
  void lock();
  void unlock() { turn_.unlock(); }
  void lock_shared();
  void unlock_shared() { turn_.unlock_shared(); }
  // How many have been alone so far: for who holds it either way.
  uint64_t taken() const { return taken_; }
  // In the child of a fork, by who was alone: the threads that held it or waited for it are not there.
  void begin_anew();

 private:
  std::atomic<int> waiting_{0};
  std::mutex next_;  // held by the one who waits for the turn
  std::shared_mutex turn_;
  uint64_t taken_ = 0;
};

}  // namespace holdfast
