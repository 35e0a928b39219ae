#include "cli/job/doctor_nodes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <memory>
#include <set>
#include <vector>

#include "base/node_path.hpp"
#include "base/plural.hpp"
#include "catalog/domains.hpp"
#include "catalog/pool.hpp"
#include "catalog/probe.hpp"
#include "cli/command.hpp"
#include "cli/job/agents.hpp"
#include "cli/job/hosts.hpp"
#include "cli/job/program.hpp"
#include "cli/job/slurm_step.hpp"
#include "cli/output.hpp"
#include "layout/manifest.hpp"
#include "target/address.hpp"
#include "target/agent_registry.hpp"
#include "target/lane.hpp"

namespace holdfast::cli {

namespace {

struct Asked {
  std::string address;
  bool run_starts_it = false;  // --local '{node}' asks `run` for it
};

class Nodes {
 public:
  explicit Nodes(const Settings& settings) : settings_(settings) {}

  Findings run(const std::string& hosts) {
    for (const std::string& target : settings_.targets)
      if (names_a_node(target)) asked_.push_back({plain_address(target)});
    find_pool(hosts);
    look_at_registry();
    if (!asked_.empty())
      if (const Status there = agent_is_installed(); !there) found_.fail(there.sentence());
    look_at_all();
    look_at_domains();
    look_at_scheme();
    return std::move(found_);
  }

 private:
  void find_pool(const std::string& hosts) {
    auto nodes = hosts_of_job(hosts);
    if (!nodes) return found_.fail(nodes.status().sentence());
    if (nodes->empty()) nodes->push_back(own_node_name());
    for (const std::string& directory : settings_.local)
      if (const Status known = names_a_node(directory) ? Status() : check_marks(directory); !known)
        return found_.fail("--local: " + known.sentence());
    for (const std::string& directory : settings_.local) {
      if (names_a_node(directory)) asked_.push_back({plain_address(directory)});
      else
        for (const std::string& node : *nodes) asked_.push_back({node + ":" + plain_path(path_from_here(with_node(directory, node))), true});
    }
  }

  // What the user has started once is asked too: it may be what his files lie on.
  void look_at_registry() {
    const std::string registry = agents_directory();
    if (registry.empty() || ::access(registry.c_str(), F_OK) != 0) return;
    if (const auto opened = target::open_registry(registry); !opened) return found_.fail(opened.status().sentence());
    std::set<std::string> asked;
    for (const Asked& one : asked_) asked.insert(one.address);
    std::vector<std::string> others;
    for (const std::string& address : known_directories())
      if (!asked.contains(address)) others.push_back(address);
    for (const catalog::Probe& probe : catalog::probe_directories(others, {}, settings_.deadline_ms))
      if (!probe.reachable() && target::is_unreached(probe.path))
        found_.warn(fmt::format("{}; or forget it: holdfast agents stop {}", why(probe), parse_node_path(probe.path).node));
  }

  void look_at_all() {
    std::vector<std::string> addresses;
    for (const Asked& one : asked_) addresses.push_back(one.address);
    const auto probes = catalog::probe_directories(addresses, {}, settings_.deadline_ms);
    for (size_t i = 0; i < probes.size(); ++i)
      if (probes[i].reachable() ? look_at(probes[i]) : look_at_missing(asked_[i], probes[i])) usable_.push_back(asked_[i].address);
  }

  // With the line that starts its agent.
  static std::string why(const catalog::Probe& probe) {
    const std::string& sentence = probe.status.sentence();
    const bool starts = sentence.find("holdfast agents start") != std::string::npos || !target::is_unreached(probe.path);
    return starts ? sentence : fmt::format("{}; {}", sentence, how_to_reach(probe.path));
  }

  bool look_at_missing(const Asked& asked, const catalog::Probe& probe) {
    const NodePath place = parse_node_path(asked.address);
    if (!asked.run_starts_it || !target::is_unreached(asked.address)) return found_.fail(why(probe)), false;
    if (!is_slurm_job() && !is_own_node(place.node)) {
      found_.warn(fmt::format("no agent of node {} answers; 'holdfast run' starts it where --with 'ssh {{node}}' or the like says how, else {}",
                              place.node, how_to_reach(asked.address)));
      return true;
    }
    const std::string above = directory_of(place.path);
    if (is_own_node(place.node) && ::access(place.path.c_str(), W_OK | X_OK) != 0 && ::access(above.c_str(), W_OK | X_OK) != 0)
      return found_.fail(fmt::format("{} cannot be made here: make it (mkdir -p {}), or is a mount missing?", place.path, place.path)), false;
    found_.ok(fmt::format("{} has no agent yet: 'holdfast run' starts it", asked.address));
    return true;
  }

  bool look_at(const catalog::Probe& probe) {
    const std::string& address = probe.path;
    if (probe.has_marker && !probe.marker && !probe.pool) return found_.fail(fmt::format("{}: {}", address, probe.marker_status.sentence())), false;
    if (!probe.has_marker && !probe.empty)
      return found_.fail(fmt::format("{} is not empty and is not a target: give an empty directory", address)), false;
    auto space = std::make_shared<target::Space>();
    const Status tried = probe.lane->run([target = probe.target, space]() -> Status {
      const std::string name = fmt::format(".holdfast-doctor-{}", ::getpid()), block(4096, 'h');
      const Status put = target->put(name, std::as_bytes(std::span(block.data(), block.size())), true);
      (void)target->remove(name);
      HF_TRY(put);
      auto answered = target->space();
      if (answered) *space = *answered;
      return answered.status();
    });
    if (!tried) {
      found_.fail(fmt::format("a file at {} cannot be written: {}: mend the directory there, or give another", address, tried.sentence()));
      return false;
    }
    constexpr uint64_t nearly_full = 20;  // less than a twentieth is free
    const std::string sentence =
        fmt::format("{} is served and can be written, {} free of {}", address, human_bytes(space->free_bytes), human_bytes(space->total_bytes));
    if (space->free_bytes < space->total_bytes / nearly_full) found_.warn(sentence + ": make room before a large job, or give another directory");
    else found_.ok(sentence);
    return true;
  }

  void look_at_domains() {
    if (settings_.domains.empty()) return;
    const auto domains = catalog::read_domains(settings_.domains);
    if (!domains) return found_.fail(domains.status().sentence());
    std::set<std::string> missing;
    for (const std::string& address : usable_)
      if (!domains->contains(node_of(address))) missing.insert(node_of(address));
    if (missing.empty()) return found_.ok(fmt::format("{} says where {} are", settings_.domains, plural(domains->size(), "node")));
    found_.fail(fmt::format("{} does not say where {} {}; add a line for each: {} RACK POWER", settings_.domains,
                            missing.size() == 1 ? "this node is:" : "these nodes are:", fmt::join(missing, ", "), *missing.begin()));
  }

  void look_at_scheme() {
    if (settings_.local.empty() || !settings_.protects()) return;
    const Status enough = catalog::check_enough_nodes(settings_, usable_);
    enough ? found_.ok(fmt::format("{} fits on {}", *settings_.protect, plural(catalog::count_nodes(usable_), "node")))
           : found_.fail(enough.sentence());
  }

  const Settings& settings_;
  Findings found_{"node"};
  std::vector<Asked> asked_;
  std::vector<std::string> usable_;
};

}  // namespace

Findings look_at_nodes(const Settings& settings, const std::string& hosts) { return Nodes(settings).run(hosts); }

}  // namespace holdfast::cli
