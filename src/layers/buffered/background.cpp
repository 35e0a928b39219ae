#include "layers/buffered/background.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>

namespace holdfast::layers {

namespace {

struct Queue {
  std::mutex mutex;
  std::condition_variable work;
  std::deque<std::function<void()>> waiting;
};

// Never ends and is never freed: the process may end at any time while it works, and what has to be done by then is waited for
// by whoever submitted it.
void* serve(void* handed) {
  Queue& queue = *static_cast<Queue*>(handed);
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
  return nullptr;
}

// Signals are the program's: its handlers run in its own threads.
bool start(Queue& queue) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool started = pthread_create(&thread, nullptr, serve, &queue) == 0;
  if (started) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
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
      if (!start(*fresh)) {
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
