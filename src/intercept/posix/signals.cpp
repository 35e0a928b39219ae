#include "intercept/posix/signals.hpp"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <atomic>
#include <iterator>

#include "base/raw_syscalls.hpp"
#include "intercept/posix/descriptors.hpp"

namespace holdfast::intercept::posix {

volatile sig_atomic_t signal_that_waits = 0;

namespace {

// Those that end a process by default and can be caught.
constexpr int ending[] = {SIGHUP, SIGINT,  SIGQUIT, SIGILL,  SIGABRT, SIGBUS,  SIGFPE,    SIGUSR1, SIGSEGV, SIGUSR2,
                          SIGPIPE, SIGALRM, SIGTERM, SIGXCPU, SIGXFSZ, SIGSYS, SIGVTALRM, SIGPROF};
constexpr int patience_ms = 20000;  // for files to be closed; the storage's own deadlines are shorter

std::atomic<bool> watching{false};
std::atomic<pid_t> answered_by{0};  // the process whose thread answers
raw::Fd asked, answered;

bool ends(int signal) {
  for (const int one : ending)
    if (one == signal) return true;
  return false;
}
bool is_fault(int signal) { return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGSYS; }

// A handler may take no lock, and the thread that it interrupts may hold any: another thread does the work.
void* answer(void*) {
  ++inside;
  uint64_t count = 0;
  while (raw::read(asked.get(), &count, sizeof count) < 0 && errno == EINTR) {
  }
  (void)let_go_of_all();
  OpenFile::remove_unlinked();
  count = 1;
  (void)!raw::write(answered.get(), &count, sizeof count);
  return nullptr;
}

void start_answering() {
  asked.reset(eventfd(0, EFD_CLOEXEC));
  answered.reset(eventfd(0, EFD_CLOEXEC));
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (asked && answered && pthread_create(&thread, nullptr, answer, nullptr) == 0) {
    pthread_detach(thread);
    answered_by = getpid();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Once; a signal in the middle of it ends the process at once.
void ask_and_wait() {
  const pid_t me = getpid();
  pid_t expected = me;
  if (!answered_by.compare_exchange_strong(expected, 0)) return;
  const uint64_t one = 1;
  if (raw::write(asked.get(), &one, sizeof one) != ssize_t(sizeof one)) return;
  pollfd waiting{answered.get(), POLLIN, 0};
  while (poll(&waiting, 1, patience_ms) < 0 && errno == EINTR) {
  }
}

void at_signal(int signal) {
  const int error = errno;
  if (inside > 0 && !is_fault(signal) && signal != SIGABRT) {
    signal_that_waits = signal;  // this thread may hold what the answer needs: after its call
    return;
  }
  if (inside == 0) ask_and_wait();
  struct sigaction usual = {};
  usual.sa_handler = SIG_DFL;
  real().sigaction(signal, &usual, nullptr);
  raise(signal);  // comes when this handler returns; a fault comes again by itself
  errno = error;
}

bool is_ours(const struct sigaction& action) { return !(action.sa_flags & SA_SIGINFO) && action.sa_handler == at_signal; }

struct sigaction our_action() {
  struct sigaction action = {};
  action.sa_handler = at_signal;
  action.sa_flags = SA_RESTART;
  return action;
}

}  // namespace

void signal_after_call() {
  const int signal = signal_that_waits;
  signal_that_waits = 0;
  if (signal) raise(signal);
}

void watch_signals() {
  if (watching.exchange(true)) return;
  start_answering();
  for (const int signal : ending) {
    struct sigaction now;
    if (real().sigaction(signal, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) || now.sa_handler != SIG_DFL) continue;
    const struct sigaction ours = our_action();
    real().sigaction(signal, &ours, nullptr);
  }
}

void watch_signals_in_child() {
  if (watching.load() && OpenFile::any_written()) start_answering();
}

}  // namespace holdfast::intercept::posix

using namespace holdfast::intercept::posix;

// A program that asks sees what it has set; one that wants the usual end of a process gets it, after ours.
HF_DOOR int sigaction(int signal, const struct sigaction* action, struct sigaction* before) noexcept {
  if (!watching.load(std::memory_order_relaxed) || !ends(signal) || !of_this_process()) return real().sigaction(signal, action, before);
  const bool usual = action && !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;
  const struct sigaction ours = our_action();
  struct sigaction old;
  const int result = real().sigaction(signal, usual ? &ours : action, &old);
  if (result != 0 || !before) return result;
  *before = old;
  if (is_ours(old)) before->sa_handler = SIG_DFL;
  return result;
}
HF_DOOR sighandler_t signal(int number, sighandler_t handler) noexcept {
  if (!watching.load(std::memory_order_relaxed) || !ends(number)) return real().signal(number, handler);
  struct sigaction action = {}, before;
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  return sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}
