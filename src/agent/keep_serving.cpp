#include "agent/keep_serving.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "agent/restarts.hpp"
#include "target/agent_again.hpp"
#include "target/agent_registry.hpp"

namespace holdfast::agent {

namespace {

// Whoever asks for it hears why it is not there.
void leave_dead(const Orders& orders) {
  auto note = target::read_note(orders.registry, orders.node, orders.directories.front());
  if (!note.ok()) return;
  note->left_dead = true;
  (void)target::write_note(orders.registry, *note);
}

// In memory that parent and child share: the child that had said that it serves may be dead by now.
std::atomic<bool>* shared_flag() {
  void* const page = mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return page == MAP_FAILED ? nullptr : new (page) std::atomic<bool>(false);
}

// Whoever is told to end removes its note. One that was killed cannot: its note goes when the user stops it, for it does not answer.
bool is_forgotten(const Orders& orders) {
  return target::read_note(orders.registry, orders.node, orders.directories.front()).status().kind() == Kind::not_found;
}

void forget(const Orders& orders) {
  for (const std::string& key : keys_of(orders)) target::forget_again(orders.registry, key);
}

bool was_asked_to_end(int status) {
  if (!WIFSIGNALED(status)) return false;
  const int signal = WTERMSIG(status);
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

}  // namespace

void keep_serving(const Orders& orders, int control) {
  Restarts restarts;
  std::atomic<bool>* const spoke = shared_flag();
  while (spoke) {
    // Who started it hears of the first one that comes so far; the descriptor stays open.
    const int tell = *spoke ? -1 : control;
    const pid_t child = fork();
    if (child == 0) _exit(serve_agent(orders, tell, [spoke] { *spoke = true; }) ? 0 : 1);
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (child < 0) return;
    if (was_asked_to_end(status)) return forget(orders);
    if (!WIFSIGNALED(status)) return;
    if (*spoke && is_forgotten(orders)) return;
    if (!restarts.may_start()) return leave_dead(orders);
  }
}

}  // namespace holdfast::agent
