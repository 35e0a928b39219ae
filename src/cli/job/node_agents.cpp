#include "cli/job/node_agents.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <thread>

#include "base/config.hpp"
#include "base/raw_syscalls.hpp"
#include "base/say.hpp"
#include "base/shell_word.hpp"
#include "catalog/user_files.hpp"
#include "cli/job/agents.hpp"
#include "cli/job/commands.hpp"
#include "cli/job/program.hpp"
#include "cli/job/slurm_step.hpp"

namespace holdfast::cli {

namespace {

constexpr auto most_wait_for_step = std::chrono::seconds(30);

// The user's own command around ours.
std::string words_there(const NodeDirectories& node, const AgentStart& how) {
  const auto self = catalog::read_link("/proc/self/exe");
  std::string words = fmt::format("{} env HOLDFAST_AGENTS={} {} agents start{} --restart --linger {} --node {}", with_node(how.with, node.node),
                                  shell_quoted(agents_directory()), shell_quoted(self ? *self : "holdfast"), how.makes_missing ? " --make" : "",
                                  how.linger_s, node.node);
  for (const std::string& directory : node.directories) words += " " + shell_quoted(directory);
  return words + " >/dev/null </dev/null";  // the addresses; what goes wrong is on standard error
}

// What it says is for the user; that an agent does not come up is found when it is asked.
void start_there(const std::vector<NodeDirectories>& nodes, const AgentStart& how) {
  std::vector<std::string> commands, late;
  for (const NodeDirectories& node : nodes) commands.push_back(words_there(node, how));
  for (const size_t index : run_commands(commands, how.patience)) late.push_back(nodes[index].node);
  if (!late.empty())
    say("holdfast: '{}' has not ended within {} s for {} and was ended: bring these nodes up, or leave them out of --hosts\n", how.with,
        std::chrono::duration_cast<std::chrono::seconds>(how.patience).count(), fmt::join(late, ", "));
}

// The node's directories with {node}, as those of the other nodes are called too.
std::vector<std::string> patterns_of(const JobAgents& job, const NodeDirectories& node) {
  if (!job.patterns.empty()) return job.patterns;
  std::vector<std::string> patterns;
  for (const std::string& directory : node.directories) patterns.push_back(with_node_mark(directory, node.node));
  return patterns;
}

// Nodes of a Slurm job: a process that a step leaves behind may die with it, so the agents are a step of their own.
Status start_in_step(const std::vector<NodeDirectories>& nodes, const std::vector<std::string>& patterns, const AgentStart& how) {
  std::vector<std::string> names;
  for (const NodeDirectories& node : nodes) names.push_back(node.node);
  const auto step = SlurmStep::start(names, patterns, how);
  if (!step) return step.status();
  const auto give_up = std::chrono::steady_clock::now() + most_wait_for_step;
  for (const NodeDirectories& node : nodes)
    while (!is_served(node)) {
      const bool ended = step->ended();
      if (!ended && std::chrono::steady_clock::now() < give_up) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        continue;
      }
      say("holdfast: the agent of node {} has not come up; its job step {}:\n{}", node.node, ended ? "ended" : "said so far", step->said());
      return {};  // whether the others are enough is asked next
    }
  return {};
}

}  // namespace

Status make_missing(const std::string& directory) {
  if (raw::mkdirat(AT_FDCWD, directory.c_str(), 0777) == 0 || errno == EEXIST) return {};
  return Status::from_errno(errno, directory + " cannot be made");
}

bool is_served(const NodeDirectories& node) { return unserved(node.node, node.directories).empty(); }

namespace {

agent::Orders orders_for(const NodeDirectories& node, const AgentStart& how) {
  agent::Orders orders{node.node, "", node.directories, how.reach, how.linger_s};
  orders.restart = true;
  return orders;
}

// In a Slurm job this node's is in the step too: it ends with the job.
bool is_in_step(const AgentStart& how) { return how.with.empty() && how.reach == transport::Reach::network && is_slurm_job(); }
bool is_here(const NodeDirectories& node, const AgentStart& how) { return how.reach == transport::Reach::node || is_own_node(node.node); }

// One that runs and does not answer is left as it is: whether the others are enough is asked later.
Status start_here(const NodeDirectories& node, const AgentStart& how) {
  if (how.makes_missing)
    for (const std::string& directory : node.directories) HF_TRY(make_missing(directory));
  const Status started = start_agent(orders_for(node, how)).status();
  if (started.kind() != Kind::busy) return started;
  say("holdfast: {}: end it, or bring it back\n", started.sentence());
  return {};
}

Status start_in_steps(const std::vector<NodeDirectories>& nodes, const JobAgents& job) {
  std::map<std::vector<std::string>, std::vector<NodeDirectories>> alike;
  for (const NodeDirectories& node : nodes) alike[patterns_of(job, node)].push_back(node);
  for (const auto& [patterns, group] : alike) HF_TRY(start_in_step(group, patterns, job.how));
  return {};
}

}  // namespace

Status start_agents(const JobAgents& job) {
  const bool in_step = is_in_step(job.how);
  std::vector<NodeDirectories> elsewhere;
  for (const NodeDirectories& node : job.nodes) {
    if (is_served(node)) continue;
    HF_TRY(agent_is_installed());
    if (!in_step && is_here(node, job.how)) HF_TRY(start_here(node, job.how));
    else elsewhere.push_back(node);
  }
  if (elsewhere.empty()) return {};
  if (!job.how.with.empty()) start_there(elsewhere, job.how);
  else if (in_step) return start_in_steps(elsewhere, job);
  return {};
}

bool start_again(const JobAgents& job, const NodeDirectories& node) {
  AgentStart how = job.how;
  how.makes_missing = false;
  if (is_in_step(how)) return SlurmStep::start({node.node}, patterns_of(job, node), how).ok();
  if (is_here(node, how)) return (void)start_agent(orders_for(node, how)), true;
  if (how.with.empty()) return false;
  (void)run_commands({words_there(node, how)}, how.patience);
  return true;
}

}  // namespace holdfast::cli
