// holdfast agents start|status|stop: the processes that offer nodes' own directories to other nodes.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "agent/start.hpp"
#include "base/node_path.hpp"
#include "base/say.hpp"
#include "base/shell_word.hpp"
#include "checkpoint/run.hpp"
#include "cli/command.hpp"
#include "cli/job/agents.hpp"
#include "cli/job/agents_there.hpp"
#include "cli/job/hosts.hpp"
#include "cli/job/node_agents.hpp"
#include "cli/job/program.hpp"
#include "cli/job/slurm_step.hpp"
#include "cli/log/job.hpp"
#include "cli/output.hpp"
#include "target/agent_again.hpp"

namespace holdfast::cli {

namespace {

struct AgentsOptions {
  std::vector<std::string> directories, nodes;
  std::string node, hosts, with;
  double linger_s = 0;
  bool make = false, this_node_only = false, restart = false, foreground = false, json = false;
};

struct Seen {
  target::AgentNote note;
  Status state;
  agent::About about;
};
Seen look_at(const std::string& registry, const target::KnownAgent& known) {
  Seen seen{known.note, known.state, {}};
  if (!seen.state.ok()) return seen;
  auto about = agent::ask(registry, seen.note);
  seen.state = about.ok() || !seen.note.left_dead ? about.status() : Status(Kind::lost, why_left_dead(seen.note));
  if (about.ok()) seen.about = *about;
  return seen;
}

// NODE, or NODE:DIR.
bool is_meant(const target::AgentNote& note, const std::string& named) {
  if (!names_a_node(named)) return note.node == named;
  const NodePath address = parse_node_path(plain_address(named));
  return note.node == address.node && std::count(note.directories.begin(), note.directories.end(), address.path) > 0;
}

bool is_meant(const target::AgentNote& note, const std::vector<std::string>& named) {
  return named.empty() || std::any_of(named.begin(), named.end(), [&](const std::string& one) { return is_meant(note, one); });
}

Status check_directories(const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) {
    if (directory.find('\n') != std::string::npos)
      return Status(Kind::invalid, fmt::format("the directory '{}' has a newline in its name and cannot be served; rename it", directory));
    struct stat state = {};
    if (::stat(directory.c_str(), &state) == 0 && !S_ISDIR(state.st_mode))
      return Status(Kind::invalid, fmt::format("{} is not a directory and cannot be served; name a directory", directory), ENOTDIR);
    if (::access(directory.c_str(), R_OK | W_OK | X_OK) != 0)
      return Status::from_errno(errno,
                                fmt::format("{} cannot be served; {}: {}", directory,
                                            errno == EACCES ? "name a directory of your own" : "make the directory or name another", directory));
  }
  return {};
}

// Until the agent has ended, or a signal asks this process to end: then both do.
int stay(const agent::Orders& orders, const raw::Fd& lifetime) {
  const sigset_t asked = heeded({SIGINT, SIGTERM, SIGHUP});
  sigprocmask(SIG_BLOCK, &asked, nullptr);
  const raw::Fd signals(signalfd(-1, &asked, SFD_CLOEXEC));
  pollfd wait[] = {{lifetime.get(), POLLIN, 0}, {signals.get(), POLLIN, 0}};
  while (poll(wait, 2, -1) < 0 && errno == EINTR) {
  }
  const std::string registry = agents_directory();
  const auto note = target::read_note(registry, orders.node, orders.directories.front());
  if (wait[0].revents != 0) return note.ok() && note->left_dead ? fail(Status(Kind::lost, why_left_dead(*note))) : exit_ok;
  Status ended = note.ok() ? agent::end(registry, *note) : note.status();
  // It has just been killed: forgotten, it is not started again.
  if (note.ok() && ended.kind() == Kind::lost) ended = target::forget_agent(registry, *note);
  return ended.ok() ? exit_ok : fail(ended);
}

// The job's nodes, or those that the user has named. In a task of a step there is one such command on each node.
bool means_other_nodes(const AgentsOptions& options) {
  if (!options.hosts.empty() || !options.with.empty()) return true;
  return options.node.empty() && !options.foreground && !options.this_node_only && is_slurm_job() && !is_slurm_task();
}

// 0 is for ever: less than a second is one.
uint64_t whole_seconds(double seconds) { return uint64_t(std::ceil(seconds)); }

int start_on_nodes(const AgentsOptions& options) {
  auto hosts = hosts_of_job(options.hosts);
  if (!hosts) return fail(hosts.status());
  if (hosts->empty())
    return fail(Status(Kind::invalid, "--with says how agents of other nodes are started, and not which nodes: name them with --hosts n1,n2,..."));
  std::vector<std::string> patterns;
  for (const std::string& directory : options.directories) patterns.push_back(plain_path(path_from_here(directory)));
  std::vector<NodeDirectories> nodes;
  for (const std::string& host : *hosts) {
    NodeDirectories& node = nodes.emplace_back(NodeDirectories{host, {}});
    for (const std::string& pattern : patterns) node.directories.push_back(with_node(pattern, host));
  }
  const JobAgents job{nodes, patterns, {options.with, whole_seconds(options.linger_s), options.make}};
  if (const Status started = start_agents(job); !started) return fail(started);
  std::vector<std::string> missing;
  for (const NodeDirectories& node : nodes) {
    if (!is_served(node)) missing.push_back(node.node);
    else
      for (const std::string& directory : node.directories) show("{}:{}\n", node.node, directory);
  }
  if (missing.empty()) return exit_ok;
  const char* const way = options.with.empty() && !is_slurm_job() ? ": say how a command is run there, with --with 'ssh {node}'" : "";
  return fail(Status(Kind::lost, fmt::format("no agent serves {} on {}{}", plural(patterns.size(), "directory"), fmt::join(missing, ", "), way)));
}

int start(const AgentsOptions& options) {
  for (const std::string& directory : options.directories)
    if (const Status known = check_marks(directory); !known) return fail(known);
  if (means_other_nodes(options)) return start_on_nodes(options);
  agent::Orders orders;
  orders.node = options.node.empty() ? own_node_name() : options.node;
  orders.linger_s = whole_seconds(options.linger_s);
  orders.restart = options.restart || options.foreground;
  if (options.this_node_only) orders.reach = transport::Reach::node;
  for (const std::string& directory : options.directories) {
    orders.directories.push_back(plain_path(path_from_here(with_node(directory, orders.node))));
    if (options.make) (void)make_missing(orders.directories.back());  // whether it is there is asked next
  }
  agent::Orders own = orders;
  if (options.foreground) own.directories = unserved(own.node, own.directories);  // what is served stays another one's
  const auto started = start_agent(orders);
  if (!started.ok()) return fail(started.status());
  for (const std::string& directory : orders.directories) show("{}:{}\n", orders.node, directory);
  std::fflush(stdout);
  return options.foreground && *started ? stay(own, *started) : exit_ok;
}

Status none_known(const std::string& named) {
  return Status(Kind::not_found,
                names_a_node(named) ? fmt::format("no agent is known that serves {}", named) : fmt::format("no agent of node {} is known", named));
}

int status(const AgentsOptions& options) {
  const std::string registry = agents_directory();
  std::vector<Seen> all;
  for (const target::KnownAgent& known : target::known_agents(registry))
    if (is_meant(known.note, options.nodes)) all.push_back(look_at(registry, known));
  for (const std::string& named : options.nodes)
    if (std::none_of(all.begin(), all.end(), [&](const Seen& seen) { return is_meant(seen.note, named); }))
      all.emplace_back().state = none_known(named), all.back().note.node = named;
  const bool all_up = std::all_of(all.begin(), all.end(), [](const Seen& seen) { return seen.state.ok(); });
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const Seen& seen : all)
      list.push_back({{"node", seen.note.node},
                      {"host", seen.note.host},
                      {"process", seen.note.process},
                      {"state", seen.state.ok() ? "up" : "lost"},
                      {"why", seen.state.sentence()},
                      {"directories", seen.note.directories},
                      {"clients", seen.about.clients},
                      {"requests", seen.about.requests},
                      {"refused", seen.about.refused}});
    print_json(list);
    return all_up ? exit_ok : exit_degraded;
  }
  if (all.empty()) show("no agents are known in {}; start one: holdfast agents start DIR\n", registry);
  else {
    Table table({"node", "host", "state", ">clients", ">requests", "directories", "why"});
    for (const Seen& seen : all)
      table.add({seen.note.node, seen.note.host, seen.state.ok() ? "up" : "lost", std::to_string(seen.about.clients),
                 std::to_string(seen.about.requests), fmt::format("{}", fmt::join(seen.note.directories, ", ")), seen.state.sentence()},
                {Colour::none, Colour::none, seen.state.ok() ? Colour::good : Colour::bad});
    table.print("");
    for (const Seen& seen : all)
      if (seen.about.refused)
        show("{} has hung up on {}: another secret, another version, or no client of ours\n", seen.note.node,
             plural(seen.about.refused, "connection"));
  }
  return all_up ? exit_ok : exit_degraded;
}

bool is_simulated(const std::string& node, const std::vector<std::string>& directories) {
  return std::all_of(directories.begin(), directories.end(), [&](const std::string& directory) { return is_of_simulated(node, directory); });
}
// One with --this-node-only has no ways to it either, and its node is a real one.
bool is_simulated(const target::AgentNote& note) { return transport::ways_to(note.endpoints).empty() && is_simulated(note.node, note.directories); }
bool is_simulated(const agent::Orders& orders) { return orders.reach == transport::Reach::node && is_simulated(orders.node, orders.directories); }

// That of a simulated node, which has ended or was killed, is not forgotten with the node of its name that runs; nor the other way round.
bool is_another_kind(const std::string& key, const std::string& registry, const std::vector<target::KnownAgent>& known) {
  const auto again = target::read_again(registry, key);
  const auto orders = again.ok() ? agent::decode_orders(again->orders) : Result<agent::Orders>(again.status());
  const auto running = std::find_if(known.begin(), known.end(),
                                    [&](const target::KnownAgent& one) { return one.state.ok() && one.note.node == target::node_of_key(key); });
  return orders.ok() && running != known.end() && is_simulated(running->note) != is_simulated(*orders);
}

// It may have been about to be started again.
void forget_again(const AgentsOptions& options, const std::string& registry, const std::vector<target::KnownAgent>& known) {
  for (const std::string& key : target::keys_to_start_again(registry)) {
    const bool all = options.nodes.empty();
    const bool node = std::count(options.nodes.begin(), options.nodes.end(), target::node_of_key(key)) > 0;
    const bool one = std::any_of(options.nodes.begin(), options.nodes.end(), [&](const std::string& named) {
      const NodePath address = parse_node_path(names_a_node(named) ? plain_address(named) : named);
      return !address.node.empty() && target::agent_key(address.node, address.path) == key;
    });
    if (all || one || (node && !is_another_kind(key, registry, known))) target::forget_again(registry, key);
  }
}

int stop_one(const std::string& registry, const target::KnownAgent& known) {
  const Status status = known.state.ok() ? agent::end(registry, known.note) : known.state;
  if (status.ok()) return exit_ok;
  if (!known.state.ok() || status.kind() != Kind::lost) return fail(status);
  if (const Status gone = target::forget_agent(registry, known.note); !gone) return fail(gone);
  say("holdfast: {}; it is forgotten\n", status.sentence());
  return exit_ok;
}

// Who ends a simulated node does not mean the node of that name, nor the other way round.
Status check_is_one_kind(const std::string& named, const std::vector<target::KnownAgent>& known) {
  std::vector<std::string> real, simulated;
  for (const target::KnownAgent& one : known)
    if (one.state.ok() && is_meant(one.note, named))
      for (const std::string& directory : one.note.directories)
        (is_simulated(one.note) ? simulated : real).push_back(one.note.node + ":" + directory);
  if (real.empty() || simulated.empty()) return {};
  return Status(Kind::invalid, fmt::format("{} is a node ({}) and a simulated one ({}); name the directories of the one that is meant", named,
                                           fmt::join(real, ", "), fmt::join(simulated, ", ")));
}

int stop(const AgentsOptions& options) {
  const std::string registry = agents_directory();
  const std::vector<target::KnownAgent> known = target::known_agents(registry);
  for (const std::string& named : options.nodes)
    if (const Status one = check_is_one_kind(named, known); !one) return fail(one);
  forget_again(options, registry, known);
  int code = exit_ok;
  for (const std::string& named : options.nodes)
    if (std::none_of(known.begin(), known.end(), [&](const target::KnownAgent& one) { return is_meant(one.note, named); }))
      code = fail(none_known(named));
  for (const target::KnownAgent& one : known)
    if (is_meant(one.note, options.nodes)) code = std::max(code, stop_one(registry, one));
  return code;
}

}  // namespace

std::string why_left_dead(const target::AgentNote& note) {
  std::string directories;
  for (const std::string& directory : note.directories) directories += " " + shell_word(directory);
  return fmt::format(
      "the agent of node {} was killed four times within a minute and stays down; find out why, then run there: holdfast "
      "agents start --node {}{}",
      note.node, note.node, directories);
}

Status check_marks(const std::string& directory) {
  for (size_t begin = directory.find('{'); begin != std::string::npos; begin = directory.find('{', begin + 1)) {
    const size_t end = directory.find('}', begin);
    if (end == std::string::npos) break;
    if (const std::string mark = directory.substr(begin, end + 1 - begin); mark != node_mark)
      return Status(Kind::invalid, fmt::format("'{}' has {}, which stands for nothing; the node's name is {}", directory, mark, node_mark));
  }
  return {};
}

std::string own_node_name() {
  if (const std::string given = checkpoint::given_node_name(); !given.empty()) return given;
  const std::string slurm = environment_variable("SLURMD_NODENAME");
  return slurm.empty() ? short_host_name() : slurm;
}

bool is_own_node(const std::string& node) {
  if (node == checkpoint::given_node_name()) return true;
  const std::string slurm = environment_variable("SLURMD_NODENAME");
  return slurm.empty() ? is_this_host(node) : node == slurm;
}

Result<raw::Fd> start_agent(agent::Orders orders) {
  orders.registry = agents_directory();
  if (orders.registry.empty())
    return Status(Kind::invalid, "the agents of nodes are noted below your home directory, and nobody knows it: set HOME or XDG_STATE_HOME");
  if (!names_a_node(orders.node + ":/"))
    return Status(Kind::invalid, fmt::format("'{}' is no node's name: letters, digits, '.', '_' and '-'", orders.node));
  HF_TRY(check_directories(orders.directories));
  orders.directories = unserved(orders.node, orders.directories);
  while (!orders.directories.empty()) {
    auto started = agent::start(orders, installed_beside("agent"));
    if (started.ok()) return started;
    const size_t wanted = orders.directories.size();
    const Status& why = started.status();
    // Somebody was quicker, with some of them or with all.
    if (why.kind() == Kind::exists) orders.directories = unserved(orders.node, orders.directories);
    if (orders.directories.size() == wanted)
      return Status(why.kind(), fmt::format("the agent of node {} cannot be started: {}", orders.node, why.sentence()));
  }
  return raw::Fd();
}

Status agent_is_installed() { return is_installed("agent", "no agent of a node can be started"); }

std::vector<std::string> unserved(const std::string& node, const std::vector<std::string>& directories) {
  const std::string registry = agents_directory();
  std::map<transport::Identity, bool> answers;
  std::vector<std::string> left;
  for (const std::string& directory : directories) {
    const auto note = target::read_note(registry, node, directory);
    if (note.ok() && !answers.count(note->id)) answers[note->id] = agent::ask(registry, *note).ok();
    if (!note.ok() || !answers[note->id]) left.push_back(directory);
  }
  return left;
}

std::vector<std::string> known_directories() {
  std::vector<std::string> all;
  for (const target::KnownAgent& known : target::known_agents(agents_directory()))
    for (const std::string& directory : known.note.directories) all.push_back(known.note.node + ":" + directory);
  return all;
}

void add_agents(CLI::App& app, int& code) {
  auto options = std::make_shared<AgentsOptions>();
  CLI::App* agents = app.add_subcommand("agents", "Offer directories of this node to other nodes, as targets NODE:/DIR");
  agents->require_subcommand(1);
  CLI::App* starting = agents->add_subcommand("start", "Start this node's agent; in a Slurm job, those of all its nodes as a step of it");
  starting->add_option("DIR", options->directories, "Directories that it serves; {node} is the node's name")->required()->type_name("");
  CLI::Option* const node =
      starting->add_option("--node-name,--node", options->node, "This node alone, by that name (Slurm's in a job step, else its short host name)")
          ->type_name("NAME");
  CLI::Option* const hosts =
      starting->add_option("--hosts", options->hosts, "Start the agents of these nodes")->type_name("LIST|FILE")->excludes(node);
  CLI::Option* const with =
      starting->add_option("--with", options->with, "Command that starts them, such as 'ssh {node}'")->type_name("COMMAND")->excludes(node);
  starting->add_option("--linger", options->linger_s, "End when nobody has been connected for so many seconds (0: never)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 1e9));
  starting->add_flag("--restart", options->restart, "When it is killed, start it again, at most three times a minute");
  starting
      ->add_flag("--foreground", options->foreground, "Stay until it ends, and start it again as with --restart: for job steps and service managers")
      ->excludes(hosts)
      ->excludes(with);
  starting->add_flag("--make", options->make, "Make the directories that are missing");
  starting->add_flag("--this-node-only", options->this_node_only, "Take no connections from other nodes")->excludes(hosts)->excludes(with);
  starting->footer("Example:\n  holdfast agents start /nvme/me\n  holdfast run --protect rs:4+2 --targets n1:/nvme/me,n2:/nvme/me,... mpirun ./app");
  starting->callback([options, &code] { code = start(*options); });
  CLI::App* asking = agents->add_subcommand("status", "Which agents there are, and whether they answer");
  asking->add_option("NODE", options->nodes, "Nodes, or NODE:DIR (all that are known)")->type_name("");
  CLI::Option* const json = asking->add_flag("--json", options->json, "For machines");
  add_there(*asking, options->hosts, options->with)->excludes(json);
  asking->callback([options, &code] {
    const auto there = ask_there("status", options->hosts, options->with, options->nodes);
    code = there ? *there : status(*options);
  });
  CLI::App* ending = agents->add_subcommand("stop", "End agents");
  ending->add_option("NODE", options->nodes, "Nodes, or NODE:DIR (all that are known)")->type_name("");
  add_there(*ending, options->hosts, options->with);
  ending->callback([options, &code] {
    const auto there = ask_there("stop", options->hosts, options->with, options->nodes);
    code = there ? *there : stop(*options);
  });
  agents->footer("Example:\n  holdfast agents start --node n1 /nvme/me\n  holdfast agents status");
}

}  // namespace holdfast::cli
