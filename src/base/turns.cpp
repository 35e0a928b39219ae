#include "base/turns.hpp"

#include <new>

namespace holdfast {

namespace {

template <typename Try, typename Wait>
void take(Try tried, Wait wait) {
  while (!tried())
    if (!let_a_thread_on()) return wait();
}

}  // namespace

void Turns::lock() {
  take([this] { return next_.try_lock(); }, [this] { next_.lock(); });
  std::lock_guard next(next_, std::adopt_lock);
  take([this] { return turn_.try_lock(); }, [this] { turn_.lock(); });
  ++taken_;
}

// What they have left in both is nobody's to take back.
void Turns::begin_anew() {
  new (&next_) std::mutex;
  new (&turn_) std::shared_mutex;
}

void Turns::lock_shared() {
  take([this] { return next_.try_lock(); }, [this] { next_.lock(); });
  std::lock_guard next(next_, std::adopt_lock);
  take([this] { return turn_.try_lock_shared(); }, [this] { turn_.lock_shared(); });
}

}  // namespace holdfast
