#include "base/quiet_thread.hpp"

#include <pthread.h>

#include <memory>

#include "base/without_signals.hpp"

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
  const WithoutSignals none;
  pthread_t thread;
  const bool started = pthread_create(&thread, nullptr, serve, handed.get()) == 0;
  if (started) {
    pthread_detach(thread);
    (void)handed.release();
  }
  return started;
}

}  // namespace holdfast
