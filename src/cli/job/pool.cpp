#include "cli/job/pool.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>

#include "base/node_path.hpp"
#include "base/plural.hpp"
#include "base/say.hpp"
#include "base/shell_word.hpp"
#include "catalog/pool.hpp"
#include "catalog/user_files.hpp"
#include "cli/command.hpp"
#include "cli/files/drain.hpp"
#include "cli/job/agents.hpp"
#include "cli/job/hosts.hpp"
#include "cli/job/live_jobs.hpp"
#include "cli/job/node_agents.hpp"
#include "cli/job/program.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {

namespace {

constexpr int deadlines_for_a_start = 3;  // of an agent on another node: with a login there

}  // namespace

namespace {

void add_directory(std::vector<NodeDirectories>& nodes, const NodePath& address) {
  const auto same = std::find_if(nodes.begin(), nodes.end(), [&](const NodeDirectories& one) { return one.node == address.node; });
  (same == nodes.end() ? nodes.emplace_back(NodeDirectories{address.node, {}}) : *same).directories.push_back(address.path);
}

// Of targets that name their nodes: the agents that can be started from here. No directory is made, for a mount may be missing; and what cannot be
// started is a lost target, which may be borne.
Result<JobAgents> start_agents_of_targets(const Settings& settings, const PoolOptions& options) {
  const auto hosts = hosts_of_job(options.hosts);
  if (!hosts) return hosts.status();
  JobAgents job{{}, {}, {options.with, options.linger_s, false}};
  job.how.patience = deadlines_for_a_start * std::chrono::milliseconds(settings.deadline_ms);
  for (const std::string& target : settings.targets) {
    const NodePath address = parse_node_path(target);
    const bool is_meant = hosts->empty() || std::count(hosts->begin(), hosts->end(), address.node) > 0;
    if (!address.node.empty() && is_meant) add_directory(job.nodes, address);
  }
  if (const Status started = start_agents(job); !started) say("holdfast: {}\n", started.sentence());
  return job;
}

// Where the way was not the user's own, it is named. Whether the agents that are there suffice is asked next.
void say_who_has_not_come_up(const JobAgents& job) {
  std::vector<std::string> missing;
  for (const NodeDirectories& node : job.nodes)
    if (!is_served(node)) missing.push_back(node.node);
  if (missing.empty()) return;
  if (job.how.with.empty())
    say("holdfast: no command is known that starts agents on {}: name one with --with 'ssh {{node}}'\n", fmt::join(missing, ", "));
  else say("holdfast: '{}' has not brought up agents on {}: name another command with --with\n", job.how.with, fmt::join(missing, ", "));
}

}  // namespace

Result<JobAgents> resolve_pool(Settings& settings, const PoolOptions& options) {
  std::vector<std::string> patterns, resolved;
  for (const std::string& directory : settings.local) {
    if (names_a_node(directory)) resolved.push_back(directory);
    else if (const Status known = check_marks(directory); !known) return Status(known.kind(), "--local: " + known.sentence());
    else patterns.push_back(directory);
  }
  if (patterns.empty()) {
    if (settings.protects() && std::any_of(settings.targets.begin(), settings.targets.end(), names_a_node))
      return start_agents_of_targets(settings, options);
    if (options.hosts.empty()) return JobAgents();
    return Status(Kind::invalid, "--hosts names the nodes that give the directory of --local, or those of --targets: give --local '/DIR-{node}'");
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
      return Status(Kind::invalid, fmt::format("{} needs {} nodes and this is one ({}), which fits no scheme; name the nodes with --hosts n1,n2,... "
                                               "or to the launcher, or try it on this machine with --simulate-nodes {} instead of --local",
                                               scheme->name(), scheme->width(), hosts->front(), scheme->width()));
  }
  JobAgents job{std::move(nodes), std::move(patterns), {options.with, options.linger_s}};
  job.how.patience = deadlines_for_a_start * std::chrono::milliseconds(settings.deadline_ms);
  HF_TRY(start_agents(job));
  if (options.is_filled_in) say_who_has_not_come_up(job);
  return job;
}

Result<JobAgents> simulate_nodes(int count, Settings& settings, const PoolOptions& options) {
  if (!settings.targets.empty() || !settings.local.empty())
    return Status(Kind::invalid, fmt::format("--simulate-nodes and --{} say both where the files are kept; leave one of them out",
                                             settings.targets.empty() ? "local" : "targets"));
  const std::string nodes = path_from_here(std::string(simulated_nodes_directory));
  HF_TRY(make_missing(nodes));
  JobAgents job;
  job.how.linger_s = options.linger_s, job.how.reach = transport::Reach::node;
  for (int i = 1; i <= count; ++i) {
    const NodeDirectories& node = job.nodes.emplace_back(NodeDirectories{fmt::format("n{}", i), {fmt::format("{}/n{}", nodes, i)}});
    HF_TRY(make_missing(node.directories[0]));  // agents of a run before may still serve it, and be all that is left of it
    settings.local.push_back(node.node + ":" + node.directories[0]);
  }
  HF_TRY(start_agents(job));
  return job;
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

namespace {

// Of those on the nodes the ones that this job is to look after: its own, and those of jobs that have ended, whatever ended them.
std::vector<std::string> own_or_left(const std::vector<FileOnNodes>& files) {
  const OtherJobs others = other_jobs();
  std::vector<std::string> own, unknown;
  for (const FileOnNodes& file : files) {
    if (others.unknown.count(file.job)) unknown.push_back(file.path);
    else if (!others.alive.count(file.job)) own.push_back(file.path);
  }
  if (!unknown.empty())
    say("holdfast: {} of other jobs {} on the nodes' disks only, and {} has no locks that tell whether these jobs run; once they have ended, run: "
        "holdfast drain{}\n",
        plural(unknown.size(), "file"), unknown.size() == 1 ? "lies" : "lie", agents_directory(), some_of(unknown));
  return own;
}

int drain_all(const std::vector<std::string>& files, const Settings& settings, int code) {
  catch_interrupts();
  std::vector<std::string> left;
  for (const std::string& file : files) {
    const auto drained = drain_file(file, settings);
    if (drained) continue;
    left.push_back(file);
    say("holdfast: {} stays on the nodes' disks: {}\n", file, drained.status().sentence());
    if (interrupted()) break;
  }
  if (left.empty()) return code;
  say("holdfast: before the disks are wiped, run: holdfast drain{}\n", some_of(left));
  return code == 0 ? exit_stranded : code;
}

}  // namespace

int end_pool(const Settings& settings, const PoolOptions& options, int code) {
  const auto found = files_on_nodes(settings);
  if (!found) {
    say("holdfast: which files lie on nodes only cannot be told: {}\n", found.status().sentence());
    return code == 0 ? exit_stranded : code;
  }
  const std::vector<std::string> files = own_or_left(*found);
  if (files.empty()) return code;
  if (drains(options)) return drain_all(files, settings, code);
  say("holdfast: {} {} on the nodes' disks only; before these are wiped, run: holdfast drain{}\n", plural(files.size(), "file"),
      files.size() == 1 ? "lies" : "lie", some_of(files));
  return code;
}

namespace {

// Half of what the kernel gives a program for its arguments and its environment, and a launcher adds to both.
size_t most_bytes_for_settings() {
  constexpr long most_of_any = 6 << 20;
  const long most = ::sysconf(_SC_ARG_MAX);
  return size_t(most > 0 ? std::min(most, most_of_any) : most_of_any) / 2;
}

}  // namespace

Status open_pool(const Settings& settings) {
  if (settings.local.empty() || !settings.protects()) return {};
  size_t bytes = 0;
  for (const auto& [name, value] : settings.environment()) bytes += name.size() + value.size() + sizeof "=" + sizeof(char*);
  if (bytes > most_bytes_for_settings())
    return Status(Kind::invalid, fmt::format("the names of {} directories are too long for the environment that tells the job of them: give shorter "
                                             "ones with --local, or allow it more (ulimit -s unlimited)",
                                             settings.local.size()));
  const auto look = catalog::open_pool(settings);
  if (!look) return look.status();
  for (const std::string& remark : look->remarks) say("holdfast: {}\n", remark);
  return {};
}

}  // namespace holdfast::cli
