#include "cli/job/protectors.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/node_path.hpp"
#include "catalog/user_files.hpp"
#include "cli/job/agents.hpp"
#include "cli/job/program.hpp"

namespace holdfast::cli {

namespace {

std::string program() {
  const auto self = catalog::read_link("/proc/self/exe");
  return directory_of(self ? *self : "") + "/../libexec/holdfast/protector";
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// What a protector is told: the job's settings, its run, and where the agents are. Never what is preloaded into the job.
std::vector<std::string> variables_of(const checkpoint::Run& run, const Settings& settings) {
  std::vector<std::string> variables{fmt::format("{}={}", checkpoint::run_variable, encode(run)), "HOLDFAST_AGENTS=" + agents_directory()};
  for (const auto& [name, value] : settings.environment()) variables.push_back(name + "=" + value);
  return variables;
}

std::string there(const std::string& with, const std::string& node, const std::vector<std::string>& variables, const std::string& address) {
  std::string command = with;
  for (size_t at; (at = command.find("{node}")) != std::string::npos;) command.replace(at, 6, node);
  command += " env";
  for (const std::string& variable : variables) command += " " + quoted(quoted(variable));
  return fmt::format("{} {} {}", command, quoted(program()), quoted(address));
}

// Its standard input is the pipe's end; all signals are as at a program's start.
Result<pid_t> spawn(const std::vector<std::string>& words, const std::vector<std::string>& variables, int input) {
  std::vector<char*> arguments, environment;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  for (const std::string& variable : variables) environment.push_back(const_cast<char*>(variable.c_str()));
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

}  // namespace

std::vector<Status> Protectors::start(const checkpoint::Run& run, const Settings& settings, const std::string& with) {
  std::vector<Status> remarks;
  const auto variables = variables_of(run, settings);
  for (const std::string& address : run.nodes) {
    const std::string node = parse_node_path(address).node;
    const bool here = run.simulated || node.empty() || is_own_node(node);
    if (!here && with.empty()) {
      remarks.emplace_back(Kind::invalid,
                           fmt::format("nothing protects what is written on node {}: say with --with 'ssh {{node}}' how something is started "
                                       "there",
                                       node));
      continue;
    }
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      remarks.push_back(Status::from_errno(errno, "pipe"));
      continue;
    }
    raw::Fd held(ends[1]);
    const raw::Fd input(ends[0]);
    const auto process =
        here ? spawn({program(), address}, variables, input.get()) : spawn({"/bin/sh", "-c", there(with, node, variables, address)}, {}, input.get());
    if (process) all_.push_back({address, *process, std::move(held)});
    else remarks.push_back(process.status());
  }
  return remarks;
}

void Protectors::finish() {
  for (One& one : all_) one.held.reset();
  for (const One& one : all_)
    while (::waitpid(one.process, nullptr, 0) < 0 && errno == EINTR) {
    }
  all_.clear();
}

void Protectors::kill(const std::string& node) {
  for (const One& one : all_)
    if (one.node == node) ::kill(one.process, SIGKILL);
}

}  // namespace holdfast::cli
