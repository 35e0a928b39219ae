#include "layers/buffered/background.hpp"

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>

#include "base/quiet_thread.hpp"

namespace holdfast::layers {

namespace {

struct Queue {
  std::mutex mutex;
  std::condition_variable work;
  std::deque<std::function<void()>> waiting;
};

// Never ends and is never freed: the process may end at any time while it works, and what has to be done by then is waited for
// by whoever submitted it.
void serve(Queue& queue) {
  std::unique_lock lock(queue.mutex);
  while (true) {
    queue.work.wait(lock, [&] { return !queue.waiting.empty(); });
    auto work = std::move(queue.waiting.front());
    queue.waiting.pop_front();
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
      queue->waiting.push_back(std::move(work));
    }
    queue->work.notify_one();
    return true;
  }

 private:
  // The thread of a parent did not come along through fork, and its queue may have been locked at that moment: a child makes
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
