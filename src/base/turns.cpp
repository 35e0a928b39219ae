#include "base/turns.hpp"

#include <new>

namespace holdfast {

namespace {

template <typename Try, typename Wait>
void take(Try tried, Wait wait) {
  while (!tried())
    if (!let_a_thread_on()) return wait();
}

struct Waiting {
  explicit Waiting(std::atomic<int>& all) : count(all) { ++count; }
  Waiting(const Waiting&) = delete;
  ~Waiting() { --count; }
  std::atomic<int>& count;
};

}  // namespace

// Whoever finds nobody waiting pays for one lock, as with a mutex.
void Turns::lock() {
  if (waiting_.load(std::memory_order_relaxed) == 0 && turn_.try_lock()) return void(++taken_);
  const Waiting waiting(waiting_);
  take([this] { return next_.try_lock(); }, [this] { next_.lock(); });
  std::lock_guard next(next_, std::adopt_lock);
  take([this] { return turn_.try_lock(); }, [this] { turn_.lock(); });
  ++taken_;
}

// What they have left in both is nobody's to take back.
void Turns::begin_anew() {
  waiting_ = 0;
  new (&next_) std::mutex;
  new (&turn_) std::shared_mutex;
}

void Turns::lock_shared() {
  if (waiting_.load(std::memory_order_relaxed) == 0 && turn_.try_lock_shared()) return;
  const Waiting waiting(waiting_);
  take([this] { return next_.try_lock(); }, [this] { next_.lock(); });
  std::lock_guard next(next_, std::adopt_lock);
  take([this] { return turn_.try_lock_shared(); }, [this] { turn_.lock_shared(); });
}

}  // namespace holdfast
