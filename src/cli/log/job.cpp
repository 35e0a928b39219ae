#include "cli/log/job.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <optional>

namespace holdfast::cli {

namespace {

std::optional<struct sigaction> of_broken_pipes;  // as this process was started with

bool told_to_end = false;

// In the child: becomes the command, or tells the parent why not.
[[noreturn]] void become_child(const std::vector<std::string>& command, const sigset_t& before, pid_t parent, int tell) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  become(command);
  const int reason = errno;
  (void)!::write(tell, &reason, sizeof reason);
  ::_exit(127);
}

// What came from the terminal, the child has got too; what was sent to us was meant for it. `timeout` sends its signal to us, and to all of the group. Each is
// handed on once: at the third that Open MPI's mpirun gets it leaves its ranks behind.
class HandingOn {
 public:
  explicit HandingOn(pid_t child) : child_(child) {}
  void hand_on(const siginfo_t& signal) {
    if (signal.si_code > 0) return;
    const auto now = std::chrono::steady_clock::now();
    const auto [at, first] = last_.try_emplace(signal.si_signo, now);
    if (!first && is_to_end(signal.si_signo) && now - at->second < as_one) return;
    at->second = now;
    ::kill(child_, signal.si_signo);
  }

 private:
  static bool is_to_end(int number) { return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT; }

  static constexpr std::chrono::milliseconds as_one{500};
  const pid_t child_;
  std::map<int, std::chrono::steady_clock::time_point> last_;
};

int wait_for(pid_t child, const sigset_t& signals) {
  HandingOn signals_of_child(child);
  while (true) {
    siginfo_t signal;
    if (::sigwaitinfo(&signals, &signal) < 0) continue;
    if (signal.si_signo != SIGCHLD) {
      hear_of_signal(signal.si_signo);
      signals_of_child.hand_on(signal);
      continue;
    }
    int status = 0;
    pid_t who;
    while ((who = ::waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
      if (who != child) continue;
      if (WIFSTOPPED(status)) ::raise(SIGSTOP);
      else return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
  }
}

}  // namespace

void hear_of_signal(int number) {
  const sigset_t ending = heeded({SIGINT, SIGTERM, SIGHUP, SIGQUIT});
  if (sigismember(&ending, number) == 1) told_to_end = true;
}

// A terminal goes on being read, and a pipe that was empty at its end has nothing to lose.
Input::Input() {
  struct stat state = {};
  if (::fstat(STDIN_FILENO, &state) != 0) return;
  is_file_ = S_ISREG(state.st_mode) && (begins_ = ::lseek(STDIN_FILENO, 0, SEEK_CUR)) >= 0;
  pollfd now{STDIN_FILENO, POLLIN, 0};
  const bool may_come = ::poll(&now, 1, 0) == 0 || (now.revents & POLLIN);
  int bytes = 0;
  const bool has_ended = (now.revents & POLLHUP) && ::ioctl(STDIN_FILENO, FIONREAD, &bytes) == 0 && bytes == 0;
  may_be_read_ = (S_ISFIFO(state.st_mode) || S_ISSOCK(state.st_mode)) && may_come && !has_ended;
}

bool Input::begin_again() const { return is_file_ ? ::lseek(STDIN_FILENO, begins_, SEEK_SET) >= 0 : !may_be_read_; }

bool was_told_to_end() { return told_to_end; }

void outlive_broken_pipes() {
  if (of_broken_pipes) return;
  struct sigaction ignored = {};
  ignored.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignored, &of_broken_pipes.emplace());
}

sigset_t heeded(std::initializer_list<int> signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : signals) {
    struct sigaction now = {};
    if (::sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_IGN) ::sigaddset(&set, signal);
  }
  return set;
}

void become(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  if (of_broken_pipes) ::sigaction(SIGPIPE, &*of_broken_pipes, nullptr);
  ::execvp(arguments[0], arguments.data());
}

int run_to_end(const std::vector<std::string>& command) {
  int tell[2];
  if (::pipe2(tell, O_CLOEXEC) != 0) return -1;
  sigset_t all, before;
  ::sigfillset(&all);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTSTP, SIGTTIN, SIGTTOU}) ::sigdelset(&all, fault);
  ::sigprocmask(SIG_BLOCK, &all, &before);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) become_child(command, before, parent, tell[1]);
  ::close(tell[1]);
  int reason = child < 0 ? errno : 0;
  if (child > 0 && ::read(tell[0], &reason, sizeof reason) != sizeof reason) reason = 0;
  ::close(tell[0]);
  int code = -1;
  if (child > 0) code = wait_for(child, all);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  errno = reason;
  return reason ? -1 : code;
}

}  // namespace holdfast::cli
