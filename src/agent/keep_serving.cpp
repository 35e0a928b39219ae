#include "agent/keep_serving.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

namespace holdfast::agent {

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t most_starts = 3;
constexpr auto within = std::chrono::minutes(1);

// What kills an agent again and again, such as a disk that fails, is not helped by haste.
void wait_for_turn(std::vector<Clock::time_point>& starts) {
  if (starts.size() == most_starts) {
    std::this_thread::sleep_until(starts.front() + within);
    starts.erase(starts.begin());
  }
  starts.push_back(Clock::now());
}

bool was_killed(int status) {
  if (!WIFSIGNALED(status)) return false;
  const int signal = WTERMSIG(status);
  return signal != SIGTERM && signal != SIGINT && signal != SIGHUP;
}

}  // namespace

void keep_serving(const Orders& orders, int control) {
  std::vector<Clock::time_point> starts;
  for (;; control = -1) {  // who started it heard of the first one; the descriptor stays open
    const pid_t child = fork();
    if (child == 0) _exit(serve_agent(orders, control) ? 0 : 1);
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (child < 0 || !was_killed(status)) return;
    wait_for_turn(starts);
  }
}

}  // namespace holdfast::agent
