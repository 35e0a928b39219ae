// Who may look at something, and who may change it: lookers side by side, everybody else alone. They come in the order in which they asked, so
// that neither can keep the other waiting for ever.
#pragma once
#include <cstdint>
#include <mutex>
#include <shared_mutex>

namespace holdfast::engine {

// For std::lock_guard (alone) and std::shared_lock (beside other lookers).
class Turns {
 public:
  void lock() {
    std::lock_guard guard(next_);
    turn_.lock();
    ++taken_;
  }
  void unlock() { turn_.unlock(); }
  void lock_shared() {
    std::lock_guard guard(next_);
    turn_.lock_shared();
  }
  void unlock_shared() { turn_.unlock_shared(); }
  // How many have been alone so far: for who holds it either way.
  uint64_t taken() const { return taken_; }

 private:
  std::mutex next_;  // held by the one who waits for the turn
  std::shared_mutex turn_;
  uint64_t taken_ = 0;
};

}  // namespace holdfast::engine
