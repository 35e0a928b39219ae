#include "base/quiet_thread.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>

#include "base/without_signals.hpp"

namespace holdfast {

namespace {

constinit std::array<std::atomic<int>, 64> numbers{};

bool replace_number(int before, int number) {
  return std::any_of(numbers.begin(), numbers.end(), [=](std::atomic<int>& one) {
    int expected = before;
    return one.compare_exchange_strong(expected, number);
  });
}

void* serve(void* handed) {
  const std::unique_ptr<std::function<void()>> work(static_cast<std::function<void()>*>(handed));
  const int number = int(syscall(SYS_gettid));
  (void)replace_number(0, number);
  in_quiet_thread = true;
  (*work)();
  (void)replace_number(number, 0);
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

bool is_quiet_thread(int thread) {
  return std::any_of(numbers.begin(), numbers.end(), [thread](const std::atomic<int>& one) { return one == thread; });
}

}  // namespace holdfast
