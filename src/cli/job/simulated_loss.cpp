#include "cli/job/simulated_loss.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <sstream>

#include "base/config.hpp"
#include "base/node_path.hpp"
#include "base/rank_variables.hpp"
#include "base/raw_syscalls.hpp"
#include "cli/job/program.hpp"
#include "target/agent_again.hpp"
#include "target/agent_registry.hpp"

namespace holdfast::cli {

namespace {

template <class Number>
bool parse_number(const std::string& text, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

// The node's address of a process that is a rank of this attempt of the run; nothing where it is none.
std::optional<std::string> node_of(pid_t process, const checkpoint::Run& run) {
  const auto environment = environment_of(process);
  const auto run_of = environment.find(checkpoint::run_variable);
  if (run_of == environment.end() || run_of->second != encode(run)) return std::nullopt;
  int team = 0;
  if (const auto found = environment.find(checkpoint::team_variable); found != environment.end()) (void)parse_number(found->second, team);
  for (const char* one : rank_variables) {
    uint32_t rank = 0;
    const auto found = environment.find(one);
    if (found != environment.end() && parse_number(found->second, rank)) return checkpoint::node_of_rank(run, rank, "", team);
  }
  return std::nullopt;
}

// The number of an agent that has ended may be another process's by now.
void kill_agent(pid_t process) {
  const raw::Fd handle(int(::syscall(SYS_pidfd_open, process, 0)));
  std::error_code error;
  const auto program = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", process), error);
  if (handle && !error && program.filename() == "agent") (void)::syscall(SYS_pidfd_send_signal, handle.get(), SIGKILL, nullptr, 0);
}

}  // namespace

Result<SimulatedLoss> parse_simulated_loss(const std::string& text, int nodes) {
  SimulatedLoss loss;
  const size_t at = text.find('@');
  bool sound = at != std::string::npos && parse_number(text.substr(at + 1), loss.step);
  std::istringstream list(text.substr(0, at));
  for (std::string one; sound && std::getline(list, one, ',');) {
    uint32_t number = 0;
    sound = parse_number(one, number) && number >= 1 && int(number) <= nodes;
    loss.nodes.push_back(number);
  }
  if (sound && !loss.nodes.empty()) return loss;
  return Status(Kind::invalid, fmt::format("--simulate-loss '{}' is not NODE,...@STEP with nodes from 1 to {}: write 1,4@30", text, nodes));
}

void lose_simulated_node(const std::string& address, const checkpoint::Run& run) {
  const NodePath node = parse_node_path(address);
  if (const auto note = target::read_note(agents_directory(), node.node, node.path); note.ok() && note->process > 0) {
    target::remove_note(agents_directory(), *note);  // nobody starts it again
    target::forget_again(agents_directory(), note->keys.front());
    kill_agent(note->process);
  }
  kill_ranks_on(address, run);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(node.path, ignored)) std::filesystem::remove_all(entry.path(), ignored);
}

void kill_ranks_on(const std::string& address, const checkpoint::Run& run) {
  std::error_code ignored;
  std::vector<pid_t> ranks;
  for (const auto& process : std::filesystem::directory_iterator("/proc", ignored)) {
    pid_t number = 0;
    if (!parse_number(process.path().filename().string(), number)) continue;
    if (node_of(number, run) == address) ranks.push_back(number);
  }
  for (const pid_t rank : ranks) ::kill(rank, SIGKILL);
}

}  // namespace holdfast::cli
