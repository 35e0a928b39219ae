#include "checkpoint/run.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/config.hpp"
#include "base/host_name.hpp"
#include "base/node_list.hpp"
#include "base/node_path.hpp"
#include "base/rank_variables.hpp"
#include "layout/manifest.hpp"

namespace holdfast::checkpoint {

namespace {

// Of a run's name: the digits of the seconds, of the microseconds, and those that are drawn.
constexpr size_t second_digits = 8, microsecond_digits = 5, drawn_digits = 3;
constexpr uint64_t microseconds = 1'000'000, latest_microseconds = uint64_t(UINT32_MAX) * microseconds + microseconds - 1;

}  // namespace

bool is_run(const std::string& text) {
  const bool are_digits = text.find_first_not_of("0123456789abcdef") == std::string::npos;
  return are_digits && text.size() == second_digits + microsecond_digits + drawn_digits;
}

std::string new_run(std::chrono::system_clock::time_point now, const std::string& latest) {
  auto since = uint64_t(std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count());
  if (is_run(latest)) {
    const uint64_t seconds = std::stoull(latest.substr(0, second_digits), nullptr, 16);
    const uint64_t before = seconds * microseconds + std::stoull(latest.substr(second_digits, microsecond_digits), nullptr, 16);
    if (before < latest_microseconds) since = std::max(since, before + 1);
  }
  return fmt::format("{:08x}{:05x}{}", uint32_t(since / microseconds), uint32_t(since % microseconds), layout::random_id().substr(0, drawn_digits));
}

uint64_t new_attempt_id(std::chrono::system_clock::time_point now) {
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  const uint64_t drawn = std::strtoull(layout::random_id().substr(0, 8).c_str(), nullptr, 16);
  return uint64_t(since) << drawn_bits_of_attempt | drawn >> (32 - drawn_bits_of_attempt);
}

// A variable holds 128 KiB, and the nodes' addresses have to be in it.
constexpr size_t most_nodes_said = 1000;

std::string encode(const Run& run) {
  const Run::From from = run.from.value_or(Run::From{0, 0});
  std::vector<std::string> nodes;
  for (const std::string& node : run.nodes) nodes.push_back(with_escaped_commas(node));
  const std::string teams = run.teams > 1 ? fmt::format(":{}", run.teams) : "";
  std::string where = from.drained ? "drained" : fmt::format("versions:{}:{}:{}:{}:", from.turn, from.times, from.last_turn, from.last_times);
  if (from.last.size() <= most_nodes_said)
    for (const auto& [node, last] : from.last) where += fmt::format("{}={}.{},", node, last.written, last.number);
  return fmt::format("{} {} {} {} {} {}{} {}", run.id, text_of(run.attempt), text_of(from.attempt), from.step, where,
                     run.simulated ? "simulated" : "nodes", teams, fmt::join(nodes, ","));
}

namespace {

// As encode() has written them, behind what says that they are of versions.
void decode_counts(const std::string& where, Run::From& from) {
  int read = 0;
  const int counts = std::sscanf(where.c_str(), "versions:%u:%u:%u:%u:%n", &from.turn, &from.times, &from.last_turn, &from.last_times, &read);
  if (counts != 4) from.turn = from.times = from.last_turn = from.last_times = 0;
  if (read == 0) return;
  std::istringstream nodes(where.substr(size_t(read)));
  for (std::string one; std::getline(nodes, one, ',');)
    if (const size_t at = one.find('='), dot = one.find('.'); at < dot && dot != std::string::npos)
      from.last[one.substr(0, at)] = {std::strtoull(one.c_str() + at + 1, nullptr, 10), uint32_t(std::strtoul(one.c_str() + dot + 1, nullptr, 10))};
}

}  // namespace

Result<Run> decode_run(const std::string& text) {
  Run run;
  Run::From from{0, 0};
  std::string attempt, from_attempt, where, kind, nodes;
  std::istringstream words(text);
  const bool all_there = bool(words >> run.id >> attempt >> from_attempt >> from.step >> where >> kind);
  const auto own = layout::parse_attempt(attempt), before = layout::parse_attempt(from_attempt);
  if (!all_there || !own || !before || own->number == 0)
    return Status(Kind::invalid, fmt::format("{} is not what 'holdfast run' writes there: '{}'", run_variable, text));
  std::getline(words >> std::ws, nodes);
  run.attempt = *own, from.attempt = *before;
  from.drained = where == "drained";
  decode_counts(where, from);
  if (from.attempt.number) run.from = from;
  const size_t colon = kind.find(':');
  run.simulated = kind.substr(0, colon) == "simulated";
  if (colon != std::string::npos) run.teams = std::max(std::atoi(kind.c_str() + colon + 1), 1);
  run.nodes = expand_directories(nodes).value_or(std::vector<std::string>());
  return run;
}

std::string node_of_rank(const Run& run, uint32_t rank, const std::string& host, int team) {
  const size_t teams = size_t(run.teams), part = run.nodes.size() / teams;
  if (run.simulated && part > 0) return run.nodes[size_t(team) % teams * part + rank % part];
  if (run.simulated) return run.nodes.empty() ? "" : run.nodes[rank % run.nodes.size()];
  for (const std::string& address : run.nodes)
    if (parse_node_path(address).node == host) return address;
  return "";
}

std::string given_node_name() {
  std::istringstream words(environment_variable(node_variable));
  std::string host, name;
  return words >> host >> name && host == host_name() ? name : "";
}

std::string own_node(const Run& run, uint32_t rank) {
  const std::string host = host_name();
  for (const std::string& node : {given_node_name(), environment_variable("SLURMD_NODENAME"), host.substr(0, host.find('.')), host})
    if (const std::string found = node_of_rank(run, rank, node, own_team(run)); !found.empty()) return found;
  return "";
}

int own_team(const Run& run) { return run.teams > 1 ? std::max(std::atoi(environment_variable(team_variable).c_str()), 0) : 0; }

std::string encode_team(int team, const std::optional<Run::From>& resumes) {
  return resumes ? fmt::format("{} {} {}", team, resumes->step, text_of(resumes->attempt)) : fmt::format("{}", team);
}

std::optional<Run::From> resumed_by_own_team() {
  std::istringstream words(environment_variable(team_variable));
  int team = 0;
  Run::From from{0, 0};
  std::string attempt;
  if (!(words >> team >> from.step >> attempt)) return std::nullopt;
  const auto parsed = layout::parse_attempt(attempt);
  if (!parsed) return std::nullopt;
  from.attempt = *parsed;
  return from;
}

uint32_t own_rank() {
  std::string rank = rank_of_environment();
  if (rank.empty()) rank = environment_variable("HOLDFAST_RANK");
  return uint32_t(std::strtoul(rank.c_str(), nullptr, 10));
}

bool is_another_first_here() {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"})
    if (const std::string said = environment_variable(name); !said.empty()) return said != "0";
  return false;
}

namespace {

uint32_t ranks_said() {
  for (const char* name : size_variables) {
    const std::string said = environment_variable(name);
    uint32_t ranks = 0;
    std::istringstream(said) >> ranks;
    if (ranks > 0) return ranks;
  }
  return 0;
}

}  // namespace

uint32_t ranks_of_environment() { return std::max(ranks_said(), 1u); }
bool are_ranks_said() { return ranks_said() > 0 || rank_of_environment().empty(); }

}  // namespace holdfast::checkpoint
