#include "cli/job/commands.hpp"

#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <list>

#include <fmt/format.h>

namespace holdfast::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t most_commands_at_once = 32;
constexpr int between_looks_ms = 5;

// No process group tells who they are: one of its own would not be the terminal's.
void add_started_by(pid_t process, std::vector<pid_t>& all) {
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", process));
  for (pid_t child = 0; children >> child;) {
    all.push_back(child);
    add_started_by(child, all);
  }
}

void end_with_children(pid_t process) {
  std::vector<pid_t> all = {process};
  add_started_by(process, all);
  for (const pid_t one : all) ::kill(one, SIGKILL);
}

struct RunningCommand {
  size_t index;
  pid_t process;
  Clock::time_point give_up;
  bool given_up = false;
};

bool command_has_ended(const RunningCommand& one) {
  const pid_t got = ::waitpid(one.process, nullptr, WNOHANG);
  return got == one.process || (got < 0 && errno != EINTR);
}

bool begin_command(const std::string& command, pid_t& process) {
  const char* const arguments[] = {"sh", "-c", command.c_str(), nullptr};
  return ::posix_spawn(&process, "/bin/sh", nullptr, nullptr, const_cast<char* const*>(arguments), environ) == 0;
}

}  // namespace

std::vector<size_t> run_commands(const std::vector<std::string>& commands, std::chrono::milliseconds patience) {
  std::vector<size_t> late;
  std::list<RunningCommand> running;
  for (size_t next = 0; next < commands.size() || !running.empty();) {
    while (next < commands.size() && running.size() < most_commands_at_once) {
      RunningCommand one{next, 0, Clock::now() + patience};
      if (begin_command(commands[next++], one.process)) running.push_back(one);
    }
    running.remove_if(command_has_ended);
    for (RunningCommand& one : running) {
      if (one.given_up || Clock::now() < one.give_up) continue;
      one.given_up = true;
      end_with_children(one.process);
      late.push_back(one.index);
    }
    if (!running.empty()) (void)::poll(nullptr, 0, between_looks_ms);
  }
  return late;
}

}  // namespace holdfast::cli
