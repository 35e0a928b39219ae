#include "cli/job/pool.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/node_path.hpp"
#include "base/plural.hpp"
#include "base/raw_syscalls.hpp"
#include "catalog/pool.hpp"
#include "catalog/user_files.hpp"
#include "cli/command.hpp"
#include "cli/files/drain.hpp"
#include "cli/job/agents.hpp"
#include "cli/job/hosts.hpp"
#include "cli/job/program.hpp"
#include "cli/job/slurm_step.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {

namespace {

constexpr uint64_t linger_s = 60;
constexpr auto most_wait_for_step = std::chrono::seconds(30);
constexpr size_t started_at_once = 32;
constexpr size_t most_bytes_of_a_variable = (128 << 10) - 64;  // the kernel's limit, with the variable's name

// The last component only: where what it is to lie in is missing, a mount may be.
Status make_missing(const std::string& directory) {
  if (raw::mkdirat(AT_FDCWD, directory.c_str(), 0777) == 0 || errno == EEXIST) return {};
  return Status::from_errno(errno, directory + " cannot be made");
}

struct NodeDirectories {
  std::string node;
  std::vector<std::string> directories;
};

bool is_served(const NodeDirectories& node) {
  const auto served = served_directories(node.node);
  return std::all_of(node.directories.begin(), node.directories.end(),
                     [&](const std::string& directory) { return std::count(served.begin(), served.end(), directory) > 0; });
}

Status start_here(const NodeDirectories& node, transport::Reach reach) {
  for (const std::string& directory : node.directories) HF_TRY(make_missing(directory));
  agent::Orders orders{node.node, "", node.directories, reach, linger_s};
  orders.restart = reach == transport::Reach::network;  // a simulated node may be lost by killing its agent
  return start_agent(orders).status();
}

// One that runs and does not answer is a node that is lost: whether the others are enough is asked next.
Status start_or_leave_out(const NodeDirectories& node, transport::Reach reach) {
  const Status started = start_here(node, reach);
  if (started.kind() != Kind::busy) return started;
  fmt::print(stderr, "holdfast: {} and does not answer: end it, or bring it back\n", started.sentence());
  return {};
}

// By the user's own command. What it says is for the user; that an agent does not come up is found when it is asked.
void start_there(const std::vector<NodeDirectories>& nodes, const std::string& with) {
  const auto self = catalog::read_link("/proc/self/exe");
  std::vector<pid_t> running;
  const auto wait_for_all = [&] {
    for (const pid_t child : running)
      while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
      }
    running.clear();
  };
  for (const NodeDirectories& node : nodes) {
    std::string command = fmt::format("{} env HOLDFAST_AGENTS={} {} agents start --make --restart --linger {} --node {}", with_node(with, node.node),
                                      shell_quoted(agents_directory()), shell_quoted(self ? *self : "holdfast"), linger_s, node.node);
    for (const std::string& directory : node.directories) command += " " + shell_quoted(directory);
    command += " >&2 </dev/null";
    const char* const arguments[] = {"sh", "-c", command.c_str(), nullptr};
    pid_t child = 0;
    if (posix_spawn(&child, "/bin/sh", nullptr, nullptr, const_cast<char* const*>(arguments), environ) == 0) running.push_back(child);
    if (running.size() == started_at_once) wait_for_all();
  }
  wait_for_all();
}

// Nodes of a Slurm job: a process that a step leaves behind may die with it, so the agents are a step of their own.
Status start_in_step(const std::vector<NodeDirectories>& nodes, const std::vector<std::string>& patterns) {
  std::vector<std::string> names;
  for (const NodeDirectories& node : nodes) names.push_back(node.node);
  const auto step = SlurmStep::start(names, patterns, linger_s);
  if (!step) return step.status();
  const auto give_up = std::chrono::steady_clock::now() + most_wait_for_step;
  for (const NodeDirectories& node : nodes)
    while (!is_served(node)) {
      const bool ended = step->ended();
      if (!ended && std::chrono::steady_clock::now() < give_up) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        continue;
      }
      fmt::print(stderr, "holdfast: the agent of node {} has not come up; its job step {}:\n{}", node.node, ended ? "ended" : "said so far",
                 step->said());
      return {};  // whether the others are enough is asked next
    }
  return {};
}

Status start_agents(const std::vector<NodeDirectories>& nodes, const std::vector<std::string>& patterns, const PoolOptions& options) {
  std::vector<NodeDirectories> elsewhere;
  for (const NodeDirectories& node : nodes) {
    if (is_served(node)) continue;
    if (is_own_node(node.node)) HF_TRY(start_or_leave_out(node, transport::Reach::network));
    else elsewhere.push_back(node);
  }
  if (elsewhere.empty()) return {};
  if (!options.with.empty()) start_there(elsewhere, options.with);
  else if (is_slurm_job()) return start_in_step(elsewhere, patterns);
  return {};
}

}  // namespace

Status resolve_pool(Settings& settings, const PoolOptions& options) {
  std::vector<std::string> patterns, resolved;
  for (const std::string& directory : settings.local) (names_a_node(directory) ? resolved : patterns).push_back(directory);
  if (patterns.empty()) {
    if (options.hosts.empty()) return {};
    return Status(Kind::invalid, "--hosts names the nodes that give the directory of --local: give --local '/DIR-{node}'");
  }
  if (!resolved.empty())
    return Status(Kind::invalid, fmt::format("--local names {} of one node and {} of each; name one kind", resolved[0], patterns[0]));
  auto hosts = hosts_of_job(options.hosts);
  if (!hosts) return hosts.status();
  const bool alone = hosts->empty();
  if (alone) hosts->push_back(own_node_name());
  std::vector<NodeDirectories> nodes;
  for (const std::string& host : *hosts) {
    NodeDirectories& node = nodes.emplace_back(NodeDirectories{host, {}});
    for (const std::string& pattern : patterns) {
      node.directories.push_back(with_node(pattern, host));
      resolved.push_back(host + ":" + node.directories.back());
    }
  }
  settings.local = std::move(resolved);
  HF_TRY(settings.check());
  if (alone && settings.protects()) {
    auto scheme = layout::Scheme::parse(*settings.protect);
    if (scheme && scheme->width() > 1)
      return Status(
          Kind::invalid,
          fmt::format("{} needs {} nodes and this is one ({}): the largest scheme that fits is none, for one node alone bears no loss; name "
                      "the nodes with --hosts n1,n2,..., or try it on this machine with --simulate-nodes {} in the place of --local",
                      scheme->name(), scheme->width(), hosts->front(), scheme->width()));
  }
  return start_agents(nodes, patterns, options);
}

Status simulate_nodes(int count, Settings& settings) {
  if (!settings.targets.empty() || !settings.local.empty())
    return Status(Kind::invalid, fmt::format("--simulate-nodes and --{} say both where the files are kept; leave one of them out",
                                             settings.targets.empty() ? "local" : "targets"));
  const std::string nodes = absolute_path("holdfast-nodes");
  HF_TRY(make_missing(nodes));
  for (int i = 1; i <= count; ++i) {
    const NodeDirectories node{fmt::format("n{}", i), {fmt::format("{}/n{}", nodes, i)}};
    HF_TRY(start_or_leave_out(node, transport::Reach::node));
    settings.local.push_back(node.node + ":" + node.directories[0]);
  }
  return {};
}

bool drains(const PoolOptions& options) {
  if (!options.drain.empty()) return options.drain != "none";
  constexpr const char* of_allocations[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"};
  return std::any_of(std::begin(of_allocations), std::end(of_allocations), [](const char* name) { return !environment_variable(name).empty(); });
}

namespace {

// The first few, as words of a shell's command line.
std::string some_of(const std::vector<std::string>& files) {
  constexpr size_t most = 5;
  std::string text;
  for (size_t i = 0; i < files.size() && i < most; ++i) text += " " + shell_quoted(files[i]);
  return files.size() > most ? text + " ..." : text;
}

}  // namespace

int end_pool(const Settings& settings, const PoolOptions& options, int code) {
  const auto files = files_on_nodes(settings.local, settings);
  if (!files) {
    fmt::print(stderr, "holdfast: which files lie on nodes only cannot be told: {}\n", files.status().sentence());
    return code == 0 ? exit_stranded : code;
  }
  if (files->empty()) return code;
  if (!drains(options)) {
    fmt::print(stderr, "holdfast: {} {} {} on the nodes' disks only; before these are wiped, run: holdfast drain{}\n", files->size(),
               noun_for(files->size(), "file"), files->size() == 1 ? "lies" : "lie", some_of(*files));
    return code;
  }
  catch_interrupts();
  std::vector<std::string> left;
  for (const std::string& file : *files) {
    const auto drained = drain_file(file, settings);
    if (drained) continue;
    left.push_back(file);
    fmt::print(stderr, "holdfast: {} stays on the nodes' disks: {}\n", file, drained.status().sentence());
    if (interrupted()) break;
  }
  if (left.empty()) return code;
  fmt::print(stderr, "holdfast: before the disks are wiped, run: holdfast drain{}\n", some_of(left));
  return code == 0 ? exit_stranded : code;
}

Status open_pool(const Settings& settings) {
  if (settings.local.empty() || !settings.protects()) return {};
  size_t bytes = 0;
  for (const std::string& directory : settings.local) bytes += directory.size() + 1;
  if (bytes > most_bytes_of_a_variable)
    return Status(Kind::invalid, fmt::format("the names of {} directories are too long for the variable that tells the job of them: give shorter "
                                             "ones with --local",
                                             settings.local.size()));
  const auto look = catalog::open_pool(settings);
  if (!look) return look.status();
  for (const std::string& remark : look->remarks) fmt::print(stderr, "holdfast: {}\n", remark);
  return {};
}

}  // namespace holdfast::cli
