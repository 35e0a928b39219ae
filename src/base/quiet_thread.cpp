#include "base/quiet_thread.hpp"

#include <pthread.h>
#include <signal.h>

#include <memory>

namespace holdfast {

namespace {

void* serve(void* handed) {
  const std::unique_ptr<std::function<void()>> work(static_cast<std::function<void()>*>(handed));
  (*work)();
  return nullptr;
}

}  // namespace

bool start_quiet_thread(std::function<void()> work) {
  auto handed = std::make_unique<std::function<void()>>(std::move(work));
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool started = pthread_create(&thread, nullptr, serve, handed.get()) == 0;
  if (started) {
    pthread_detach(thread);
    (void)handed.release();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace holdfast
