#include "cli/job/protectors.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "base/node_path.hpp"
#include "base/say.hpp"
#include "base/shell_word.hpp"
#include "cli/job/agents.hpp"
#include "cli/job/program.hpp"
#include "cli/job/slurm_step.hpp"

namespace holdfast::cli {

namespace {

// What a protector is told at the beginning of its standard input (protector_main.cpp): the node's address, settings, run, and where the agents are.
// Each ends with a zero; an empty one is last. In no argument, for the way to another node may go through a second shell.
std::string orders_for(const std::string& address, const checkpoint::Run& run, const Settings& settings) {
  std::string orders = address;
  orders += '\0';
  const auto add = [&](const std::string& name, const std::string& value) { orders += name + "=" + value + '\0'; };
  add(checkpoint::run_variable, encode(run));
  add("HOLDFAST_AGENTS", agents_directory());
  for (const auto& [name, value] : settings.environment()) add(name, value);
  return orders + '\0';
}

// All of it is in the pipe before anybody reads: nobody waits for a node that does not answer.
bool give(const raw::Fd& pipe, const std::string& orders) {
  const size_t room = orders.size() + sizeof(checkpoint::attempt_is_over);
  (void)::fcntl(pipe.get(), F_SETPIPE_SZ, int(std::max<size_t>(room, 64 << 10)));
  return ::fcntl(pipe.get(), F_SETFL, O_NONBLOCK) == 0 && ::write(pipe.get(), orders.data(), orders.size()) == ssize_t(orders.size());
}

// How something is started on another node: by the user's command, or as a step of the Slurm job beside the program's.
std::string way_to(const std::string& node, const std::string& with) {
  if (!with.empty()) return with_node(with, node);
  if (!is_slurm_job()) return "";
  return step_on({node}, "protector") + " --quiet";
}

// Its standard input is the pipe's end; all signals are as at a program's start.
Result<pid_t> spawn(const std::vector<std::string>& words, int input) {
  std::vector<char*> arguments, environment;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  for (char** one = environ; *one; ++one)
    if (const std::string text = *one; !text.starts_with("HOLDFAST_") && !text.starts_with("LD_PRELOAD=")) environment.push_back(*one);
  environment.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  // Of a group of its own: what is typed at the terminal ends the job, and what it has closed is protected all the same.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  pid_t process = -1;
  const int error = ::posix_spawn(&process, arguments[0], &files, &attributes, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return error == 0 ? Result<pid_t>(process) : Status::from_errno(error, words[0]);
}

bool is_served(const std::string& address) {
  const NodePath parsed = parse_node_path(address);
  return unserved(parsed.node, {parsed.path}).empty();
}

}  // namespace

std::vector<Status> Protectors::start(const checkpoint::Run& run, const Settings& settings, const std::string& with) {
  std::vector<Status> remarks;
  deadline_ms_ = settings.deadline_ms;
  if (const Status installed = is_installed("protector", "nothing protects the checkpoints that are written"); !installed) return {installed};
  for (const std::string& address : run.nodes) {
    const std::string node = parse_node_path(address).node;
    const bool here = run.simulated || node.empty() || is_own_node(node);
    const std::string way = here ? "" : way_to(node, with);
    if (!here && way.empty()) {
      remarks.emplace_back(
          Kind::invalid,
          fmt::format("nothing protects what is written on node {}: name the command that starts programs there: --with 'ssh {{node}}'", node));
      continue;
    }
    orders_[address] = orders_for(address, run, settings);
    One one{address, -1, {}, way, {}};
    if (const Status begun = begin(one); begun) all_.push_back(std::move(one));
    else remarks.push_back(begun);
  }
  return remarks;
}

Status Protectors::begin(One& one) const {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status::from_errno(errno, "pipe");
  raw::Fd held(ends[1]);
  const raw::Fd input(ends[0]);
  const bool told = give(held, orders_.at(one.node));
  const auto process = one.way.empty() ? spawn({installed_beside("protector")}, input.get())
                                       : spawn({"/bin/sh", "-c", one.way + " " + shell_quoted(installed_beside("protector"))}, input.get());
  if (!process) return process.status();
  one.process = *process;
  one.held = std::move(held);
  return told ? Status() : Status(Kind::io, fmt::format("the protector of node {} cannot be told what to do", parse_node_path(one.node).node));
}

// A sentence for the user.
Status Protectors::begin_anew(One& one) const {
  const std::string how = !one.status                ? "has ended"
                          : WIFSIGNALED(*one.status) ? fmt::format("was ended by signal {}", WTERMSIG(*one.status))
                                                     : fmt::format("has ended with {}", WEXITSTATUS(*one.status));
  const std::string what = fmt::format("the protector of node {} {}", parse_node_path(one.node).node, how);
  const Status begun = begin(one);
  return Status(Kind::io, begun ? what + "; it is started anew" : fmt::format("{}, and cannot be started anew: {}", what, begun.sentence()));
}

// Its number is another process's from then on. Who waits for the job waits for any child, and may have been told first (cli/log/job.cpp).
bool Protectors::has_ended(One& one) {
  if (one.process < 0) return true;
  int status = 0;
  const pid_t ended = ::waitpid(one.process, &status, WNOHANG);
  if (ended == 0) return false;
  one.process = -1;
  one.status = ended > 0 ? std::optional(status) : std::nullopt;
  return true;
}

// Nothing is started on a node that is lost.
bool Protectors::is_to_be_had(const One& one) { return one.way.empty() || is_served(one.node); }

std::vector<Status> Protectors::revive() {
  constexpr std::chrono::seconds between(15);
  std::vector<Status> remarks;
  std::lock_guard lock(mutex_);
  for (One& one : all_) {
    const auto now = Clock::now();
    if (finishing_ || one.killed || now < one.next_start || !has_ended(one) || !is_to_be_had(one)) continue;
    one.next_start = now + between;
    remarks.push_back(begin_anew(one));
  }
  return remarks;
}

// By a word. The end of its input alone may be that of the way to it, and the job goes on.
void Protectors::let_end(One& one) {
  if (one.held) (void)!::write(one.held.get(), &checkpoint::attempt_is_over, sizeof(checkpoint::attempt_is_over));
  one.held.reset();
}

std::vector<std::string> Protectors::finish() {
  constexpr std::chrono::milliseconds step(20), ask_every(1000);
  std::vector<std::string> failed;
  {
    std::lock_guard lock(mutex_);
    finishing_ = true;
    for (One& one : all_) let_end(one);
  }
  const auto is_done = [&](One& one) {
    if (!has_ended(one)) return false;
    // What it has left undone another one does. That is tried once.
    const bool died = !one.status || WIFSIGNALED(*one.status) || WEXITSTATUS(*one.status) > 1;
    if (died && !one.killed && !std::exchange(one.is_last, true) && is_to_be_had(one)) {
      say("holdfast: {}\n", begin_anew(one).sentence());
      let_end(one);
      if (one.process > 0) return false;
    }
    if (died && !one.killed) died_.push_back(one.node);
    if (one.status != std::optional(0)) failed.push_back(one.node);  // killed: a simulated loss, which counts as any
    return true;
  };
  for (auto asked = Clock::now();;) {
    {
      std::lock_guard lock(mutex_);
      for (auto one = all_.begin(); one != all_.end();) one = is_done(*one) ? all_.erase(one) : one + 1;
      if (all_.empty()) return failed;
    }
    std::this_thread::sleep_for(step);
    if (Clock::now() - asked < ask_every) continue;
    for (One& one : all_) give_up_if_lost(one);
    asked = Clock::now();
  }
}

// What goes to a node that has lost its power, such as ssh, may wait for it for hours.
void Protectors::give_up_if_lost(One& one) const {
  constexpr int deadlines = 3;
  if (one.way.empty() || one.process < 0) return;
  const auto now = Clock::now();
  if (is_served(one.node)) one.silent_since = Clock::time_point::max();
  else one.silent_since = std::min(one.silent_since, now);
  if (now - one.silent_since > deadlines * std::chrono::milliseconds(deadline_ms_))
    one.is_last = true, ::kill(-one.process, SIGKILL);  // its group: the shell and what it has started
}

void Protectors::kill(const std::string& node) {
  std::lock_guard lock(mutex_);
  for (One& one : all_)
    if (one.node == node && !std::exchange(one.killed, true) && one.process > 0) ::kill(one.process, SIGKILL);
}

}  // namespace holdfast::cli
