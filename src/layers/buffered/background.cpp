#include "layers/buffered/background.hpp"

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

#include "base/meter.hpp"
#include "base/quiet_thread.hpp"

namespace holdfast::layers {

namespace {

using Steady = std::chrono::steady_clock;
using Milliseconds = Background::Milliseconds;

struct Queue {
  std::mutex mutex;
  std::condition_variable work;
  std::deque<std::function<void()>> waiting;
  std::multimap<Steady::time_point, std::function<Milliseconds()>> later;  // by when
};

// What is next, taken out of the queue; what has become due goes before what only waits its turn, which may never end.
std::function<void()> next_of(Queue& queue, std::unique_lock<std::mutex>& lock) {
  for (;;) {
    if (!queue.later.empty() && queue.later.begin()->first <= Steady::now()) {
      auto due = queue.later.extract(queue.later.begin());
      return [&queue, work = std::move(due.mapped())] {
        const Milliseconds again = work();
        if (again == Milliseconds::zero()) return;
        std::lock_guard guard(queue.mutex);
        queue.later.emplace(Steady::now() + again, work);
      };
    }
    if (!queue.waiting.empty()) {
      auto work = std::move(queue.waiting.front());
      queue.waiting.pop_front();
      return work;
    }
    if (queue.later.empty()) queue.work.wait(lock);
    else queue.work.wait_until(lock, queue.later.begin()->first);
  }
}

// Never ends and is never freed. The process may end at any time while it works, and what has to be done by then is waited for by whoever submitted
// it.
void serve(Queue& queue) {
  std::unique_lock lock(queue.mutex);
  while (true) {
    auto work = next_of(queue, lock);
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
}

class Thread final : public Background {
 public:
  bool submit(std::function<void()> work) override {
    Queue* queue = running();
    if (!queue) return false;
    {
      std::lock_guard guard(queue->mutex);
      // What it costs counts as the submitter's file's.
      queue->waiting.push_back([work = std::move(work), meter = current_meter] {
        const MeterScope measured(meter);
        work();
      });
    }
    queue->work.notify_one();
    return true;
  }
  bool submit_after(Milliseconds delay, std::function<Milliseconds()> work) override {
    Queue* queue = running();
    if (!queue) return false;
    {
      std::lock_guard guard(queue->mutex);
      queue->later.emplace(Steady::now() + delay, std::move(work));
    }
    queue->work.notify_one();
    return true;
  }
  Milliseconds now() override { return std::chrono::duration_cast<Milliseconds>(Steady::now().time_since_epoch()); }

 private:
  // The thread of a parent did not come along through fork, and its queue may have been locked at that moment. A child makes
  // both anew. The old queue's memory is given up.
  Queue* running() {
    std::lock_guard guard(starting_);
    if (owner_ != getpid()) {
      auto* fresh = new Queue;
      if (!start_quiet_thread([fresh] { serve(*fresh); })) {
        delete fresh;
        return nullptr;
      }
      queue_ = fresh;
      owner_ = getpid();
    }
    return queue_;
  }

  std::mutex starting_;
  Queue* queue_ = nullptr;
  pid_t owner_ = 0;
};

class Immediate final : public Background {
 public:
  bool submit(std::function<void()>) override { return false; }
  bool submit_after(Milliseconds, std::function<Milliseconds()>) override { return false; }
  Milliseconds now() override { return Milliseconds::zero(); }
};

}  // namespace

Background& background_thread() {
  static auto* made = new Thread;
  return *made;
}

Background& no_background() {
  static Immediate made;
  return made;
}

}  // namespace holdfast::layers
