#include "cli/redundant/team_steps.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <sstream>

#include "base/config.hpp"
#include "cli/job/hosts.hpp"
#include "cli/job/launcher_hosts.hpp"

namespace holdfast::cli {

namespace {

struct Step {
  std::vector<std::string> bare;   // the command without words about nodes
  std::vector<std::string> nodes;  // that are named, or all of the allocation
  size_t each = 0;                 // nodes that a team wants; 0: not said
  bool says_ranks = false;
};

Step step_of(const std::vector<std::string>& command) {
  Step step;
  step.says_ranks = !environment_variable("SLURM_NTASKS").empty();  // of the allocation, which srun goes by
  OptionsOf(command, "n").each({"-n", "--ntasks", "--ntasks-per-node"}, [&](const std::string&, const std::string&) { step.says_ranks = true; });
  step.bare = OptionsOf(command, "wNF")
                  .change({"-w", "--nodelist", "-N", "--nodes", "-F", "--nodefile"}, [&](const std::string& option, const std::string& value) {
                    if (option == "-N" || option == "--nodes") std::from_chars(value.data(), value.data() + value.size(), step.each);
                    else if (const auto names = option == "-F" || option == "--nodefile" ? read_hosts(value) : expand_hosts(value))
                      step.nodes = *names;
                    return std::vector<std::string>();
                  });
  if (step.nodes.empty())
    for (const Host& host : hosts_of_allocation()) step.nodes.push_back(host.name);
  return step;
}

// Of each node of the allocation, by Slurm's "2(x3),4"; nothing where that is not said.
std::map<std::string, int> processors_by_node() {
  std::vector<int> numbers;
  std::istringstream said(environment_variable("SLURM_JOB_CPUS_PER_NODE"));
  for (std::string one; std::getline(said, one, ',');) {
    int processors = 0, nodes = 1;
    if (std::sscanf(one.c_str(), "%d(x%d)", &processors, &nodes) < 1) return {};
    numbers.insert(numbers.end(), size_t(std::max(nodes, 0)), processors);
  }
  const Hosts all = hosts_of_allocation();
  std::map<std::string, int> by_node;
  for (size_t i = 0; i < all.size() && numbers.size() == all.size(); ++i) by_node[all[i].name] = numbers[i];
  return by_node;
}

// Slurm gives a node as many ranks as it has processors for.
bool are_alike(const std::vector<std::vector<std::string>>& parts) {
  const std::map<std::string, int> processors = processors_by_node();
  const auto sizes = [&](const std::vector<std::string>& part) {
    std::vector<int> all;
    for (const std::string& node : part) all.push_back(processors.contains(node) ? processors.at(node) : 0);
    return all;
  };
  return std::all_of(parts.begin(), parts.end(), [&](const auto& part) { return sizes(part) == sizes(parts[0]); });
}

std::string lack_of(const Step& step, size_t teams, size_t part) {
  if (!step.says_ranks && step.each == 0) return "how many ranks or nodes a team has is not said (-n, -N)";
  if (part > 0 && step.nodes.size() >= teams * part) return "";
  return fmt::format("{} teams on nodes of their own need {} nodes, and there are {}", teams, teams * std::max<size_t>(part, 1), step.nodes.size());
}

}  // namespace

Result<TeamPlaces> place_steps(const std::vector<std::string>& command, int count) {
  if (environment_variable("SLURM_JOB_ID").empty())
    return Status(Kind::unsupported,
                  "srun and --replicas need an allocation that all teams are in: begin one with salloc --no-kill, or sbatch --no-kill");
  const auto teams = size_t(count);
  const Step step = step_of(command);
  const size_t part = step.each > 0 ? step.each : step.nodes.size() / teams;
  TeamPlaces places;
  places.far = std::any_of(step.nodes.begin(), step.nodes.end(), [](const std::string& node) { return !is_this_host(node); });
  places.commands.assign(teams, command);
  places.lists = {"-w", "--nodelist"};
  if (places.far) places.nodes.assign(teams, step.nodes);
  if (const std::string lack = lack_of(step, teams, part); !lack.empty()) {
    // Where Slurm binds its tasks, it would bind each team's to the same cores. What the user says of that comes behind, and counts.
    for (std::vector<std::string>& words : places.commands) words.insert(words.begin() + 1, {"--overlap", "--cpu-bind=none"});
    places.said = said_of_shared(lack, step.nodes);
    return places;
  }
  places.apart = true;
  std::vector<std::vector<std::string>> parts;
  for (size_t team = 0; team < teams; ++team) {
    const auto first = step.nodes.begin() + ptrdiff_t(team * part);
    parts.emplace_back(first, first + ptrdiff_t(part));
    std::vector<std::string>& words = places.commands[team] = step.bare;
    const std::vector<std::string> put{fmt::format("--nodes={}", part), fmt::format("--nodelist={}", fmt::join(parts.back(), ",")), "--exact",
                                       "--no-kill"};
    words.insert(words.begin() + 1, put.begin(), put.end());
  }
  places.left_over = {step.nodes.begin() + ptrdiff_t(teams * part), step.nodes.end()};
  if (places.far) places.nodes = parts;
  places.said = said_of_parts(parts, places.left_over);
  places.unlike = !are_alike(parts);
  if (places.unlike) places.said += said_of_unlike_nodes;
  return places;
}

}  // namespace holdfast::cli
