#include "intercept/posix/signals.hpp"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <cstring>
#include <iterator>

#include <fmt/format.h>

#include "base/own_numbers.hpp"
#include "base/raw_syscalls.hpp"
#include "base/without_signals.hpp"
#include "catalog/probe.hpp"
#include "intercept/posix/descriptors.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::frontend::posix {

__thread volatile uint64_t signals_put_off = 0;

}  // namespace holdfast::frontend::posix

namespace holdfast::intercept::posix {

namespace {

// Those that end a process by default and can be caught.
constexpr int ending[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGABRT, SIGBUS,  SIGFPE, SIGUSR1,   SIGSEGV,
                          SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGXCPU, SIGXFSZ, SIGSYS, SIGVTALRM, SIGPROF};
constexpr int patience_ms = 20000;  // for files to be closed; the storage's own deadlines are shorter

std::atomic<bool> watching{false};
std::atomic<int> ends_by{0};        // the signal
std::atomic<pid_t> answered_by{0};  // the process whose thread answers, until it is asked
std::atomic<pid_t> started_in{0};   // the process in which one was started last: a child has none of its parent's threads
raw::Fd asked, answered;

bool ends(int signal) {
  for (const int one : ending)
    if (one == signal) return true;
  return false;
}
bool is_fault(int signal) { return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGSYS; }

// Where twins go on, this process only dies: what it holds they hold, too, and write at their time. A claim that they do not make would stop the job.
bool may_let_go() {
  redundant::Replica* const replica = redundant::Replica::now();
  if (!replica) return true;
  if (replica->is_joining() || !ProcessFile::any_held()) return false;
  const int signal = ends_by;
  replica->ends_by_signal(signal, fmt::format("signal {} has ended it ({})", signal, strsignal(signal)));
  return true;
}

// A handler may take no lock, and the thread that it interrupts may hold any: another thread does the work.
void* answer(void*) {
  ++inside;
  uint64_t count = 0;
  while (raw::read(asked.get(), &count, sizeof count) < 0 && errno == EINTR) {
  }
  if (may_let_go()) {
    (void)let_go_of_all();
    ProcessFile::remove_unlinked();
    catalog::end_idle_lanes();
  }
  count = 1;
  (void)!raw::write(answered.get(), &count, sizeof count);
  return nullptr;
}

void start_answering() {
  const pid_t me = getpid();
  if (started_in.exchange(me) == me) return;
  asked = raw::out_of_the_way(raw::Fd(eventfd(0, EFD_CLOEXEC)));
  answered = raw::out_of_the_way(raw::Fd(eventfd(0, EFD_CLOEXEC)));
  const WithoutSignals none;
  pthread_t thread;
  if (asked && answered && pthread_create(&thread, nullptr, answer, nullptr) == 0) {
    pthread_detach(thread);
    answered_by = me;
  }
}

// Once; a signal in the middle of it ends the process at once.
void ask_and_wait(int signal) {
  const pid_t me = getpid();
  pid_t expected = me;
  if (!answered_by.compare_exchange_strong(expected, 0)) return;
  ends_by = signal;
  const uint64_t one = 1;
  if (raw::write(asked.get(), &one, sizeof one) != ssize_t(sizeof one)) return;
  pollfd waiting{answered.get(), POLLIN, 0};
  while (poll(&waiting, 1, patience_ms) < 0 && errno == EINTR) {
  }
}

constexpr int signals = 64;
using Handler = void (*)(int, siginfo_t*, void*);

// Of the program's own handlers, which ours stands before: a handler of one argument is called with three, which it does not notice.
struct Programs {
  std::atomic<Handler> handler{nullptr};
  std::atomic<bool> takes_info{false};
};
std::array<Programs, signals + 1> programs;

// This thread may hold what a handler needs. The kernel keeps the signal, with all that is known of it, until the call is over. It is
// sent again and blocked where this handler returns to.
bool put_off(int signal, siginfo_t* info, void* context) {
  if (inside == 0 || is_fault(signal) || signal == SIGABRT || signal > signals) return false;
  const int error = errno;
  sigaddset(&static_cast<ucontext_t*>(context)->uc_sigmask, signal);
  signals_put_off = signals_put_off | 1ull << (signal - 1);
  const pid_t process = getpid(), thread = pid_t(syscall(SYS_gettid));
  if (syscall(SYS_rt_tgsigqueueinfo, process, thread, signal, info) != 0) syscall(SYS_tgkill, process, thread, signal);
  errno = error;
  return true;
}

void at_programs_signal(int signal, siginfo_t* info, void* context) {
  if (!put_off(signal, info, context)) programs[size_t(signal)].handler.load()(signal, info, context);
}

void at_signal(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  if (put_off(signal, info, context)) return;
  if (inside == 0) ask_and_wait(signal);
  struct sigaction usual = {};
  usual.sa_handler = SIG_DFL;
  real().sigaction(signal, &usual, nullptr);
  raise(signal);  // comes when this handler returns; a fault comes again by itself
  errno = error;
}

bool is_ours(const struct sigaction& action, Handler handler) { return (action.sa_flags & SA_SIGINFO) && action.sa_sigaction == handler; }
// Not where the kernel forgets the handler when it calls it: put off, the signal would find none.
bool is_programs(const struct sigaction& action) {
  return !(action.sa_flags & SA_RESETHAND) && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

struct sigaction our_action() {
  struct sigaction action = {};
  action.sa_sigaction = at_signal;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  return action;
}

// The program's handler, with ours before it.
struct sigaction before_programs(int signal, const struct sigaction& action) {
  Programs& its = programs[size_t(signal)];
  its.takes_info = action.sa_flags & SA_SIGINFO;
  its.handler = action.sa_sigaction;  // the same word as sa_handler
  struct sigaction ours = action;
  ours.sa_sigaction = at_programs_signal;
  ours.sa_flags |= SA_SIGINFO;
  return ours;
}

// What the program thinks of as set.
void show_as_programs(Handler handler, bool takes_info, struct sigaction& action) {
  if (is_ours(action, at_signal)) {
    action.sa_handler = SIG_DFL;
    action.sa_flags &= ~SA_SIGINFO;
  } else if (is_ours(action, at_programs_signal)) {
    action.sa_sigaction = handler;
    if (!takes_info) action.sa_flags &= ~SA_SIGINFO;
  }
}

}  // namespace

void watch_signals() {
  start_answering();
  if (watching.exchange(true)) return;
  for (int signal = 1; signal <= signals; ++signal) {
    struct sigaction now;
    if (real().sigaction(signal, nullptr, &now) != 0) continue;
    const bool usual = now.sa_handler == SIG_DFL;
    if (usual ? !ends(signal) : !is_programs(now)) continue;
    const struct sigaction ours = usual ? our_action() : before_programs(signal, now);
    real().sigaction(signal, &ours, nullptr);
  }
}

void watch_signals_in_child() {
  if (watching.load() && ProcessFile::any_written()) start_answering();
}

}  // namespace holdfast::intercept::posix

using namespace holdfast::intercept::posix;

// A program that asks sees what it has set; one that wants the usual end of a process gets it, after ours.
HF_DOOR int sigaction(int signal, const struct sigaction* action, struct sigaction* before) noexcept {
  const bool possible = signal > 0 && signal <= signals;
  if (!watching.load(std::memory_order_relaxed) || !possible || !of_this_process()) return real().sigaction(signal, action, before);
  const Handler handler = programs[size_t(signal)].handler;
  const bool takes_info = programs[size_t(signal)].takes_info;
  struct sigaction ours, old;
  const struct sigaction* set = action;
  if (action && action->sa_handler == SIG_DFL && ends(signal)) set = &(ours = our_action());
  if (action && is_programs(*action)) set = &(ours = before_programs(signal, *action));
  const int result = real().sigaction(signal, set, &old);
  if (result != 0 || !before) return result;
  *before = old;
  show_as_programs(handler, takes_info, *before);
  return result;
}
HF_DOOR sighandler_t signal(int number, sighandler_t handler) noexcept {
  if (!watching.load(std::memory_order_relaxed)) return real().signal(number, handler);
  struct sigaction action = {}, before;
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  return sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

namespace holdfast::frontend::posix {

void let_signals_come() {
  const uint64_t came = signals_put_off;
  signals_put_off = 0;
  sigset_t all;
  sigemptyset(&all);
  for (int signal = 1; signal <= intercept::posix::signals; ++signal)
    if (came >> (signal - 1) & 1) sigaddset(&all, signal);
  pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
}

}  // namespace holdfast::frontend::posix
