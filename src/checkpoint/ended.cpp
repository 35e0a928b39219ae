#include "checkpoint/ended.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <tuple>

#include <fmt/format.h>

#include "base/config.hpp"
#include "base/process_facts.hpp"
#include "catalog/environment.hpp"
#include "catalog/pool.hpp"
#include "catalog/user_files.hpp"
#include "coding/xxh3.hpp"
#include "target/lane.hpp"

namespace holdfast::checkpoint {

namespace {

constexpr std::string_view ended_ending = ".ended";

// A script may start several jobs, one after another; and a program may spawn ranks of its own.
std::string note_name() {
  std::string launch;
  for (const char* const variable : {"PMIX_NAMESPACE", "SLURM_STEP_ID", "PMI_SPAWNED"}) launch += environment_variable(variable) + '\n';
  return fmt::format("{}of{}.{:016x}", own_rank(), ranks_of_environment(), coding::xxh3(launch.data(), launch.size(), 0));
}

// Under Slurm a launcher's daemons are ranks as well, of a step of their own. How they end is its own matter.
bool is_of_launcher() {
  constexpr std::string_view programs[] = {"orted",
                                           "prted",
                                           "prte",
                                           "orterun",
                                           "prterun",
                                           "mpirun",
                                           "mpiexec",
                                           "mpirun.openmpi",
                                           "mpiexec.openmpi",
                                           "mpirun.mpich",
                                           "mpiexec.mpich",
                                           "mpiexec.hydra",
                                           "hydra_pmi_proxy",
                                           "hydra_bstrap_proxy",
                                           "srun"};
  const auto program = catalog::read_link("/proc/self/exe");
  return program && std::count(std::begin(programs), std::end(programs), catalog::name_of(*program)) > 0;
}

using Names = std::vector<std::string>;

struct Notes {
  std::vector<Names> found;  // of each node that answers; empty where it has none
  Names silent;
};

Notes notes_on(const Run& run, uint64_t deadline_ms) {
  const auto pool = catalog::look_at_pool(run.nodes, deadline_ms);
  if (!pool) return {{}, run.nodes};
  const std::string at = fmt::format("{}/{}", directory_of_attempt(run.id, run.attempt), ranks_directory);
  std::vector<std::tuple<std::string, std::shared_ptr<Names>, std::shared_ptr<target::Ticket>>> asked;
  Notes notes;
  for (const catalog::Member& member : pool->members) {
    const auto names = std::make_shared<Names>();
    if (!member.usable()) notes.silent.push_back(member.path);
    else
      asked.emplace_back(member.path, names, member.lane->submit([target = member.target, at, names] {
        auto listed = target->list(at);
        if (listed) *names = std::move(*listed);
        return listed.status().kind() == Kind::not_found ? Status() : listed.status();
      }));
  }
  for (const auto& [node, names, ticket] : asked)
    if (ticket->wait()) notes.found.push_back(std::move(*names));
    else notes.silent.push_back(node);
  return notes;
}

}  // namespace

void RankNote::begins() {
  if (rank_of_environment().empty() || !are_ranks_said() || is_of_launcher() || !files_.make()) return;
  path_ = fmt::format("{}/{}/{}", files_.directory(), ranks_directory, note_name());
  if (take()) process_ = ::getpid();
  else path_.clear();
}

// A link that leads nowhere is made by one call, with all that it says.
bool RankNote::take() {
  const std::string own = this_process();
  const std::string ended = path_ + std::string(ended_ending);
  if (catalog::read_link(ended)) return false;  // what the rank has left behind it
  if (catalog::environment().symlinkat(own.c_str(), AT_FDCWD, path_.c_str()) == 0) return true;
  const auto first = catalog::read_link(path_);
  if (!first || *first == own) return first.ok();
  if (is_running(*first)) return false;
  (void)catalog::unlink_file(path_);  // it was killed, and its launcher has started the rank again
  return catalog::environment().symlinkat(own.c_str(), AT_FDCWD, path_.c_str()) == 0;
}

void RankNote::ends() {
  if (path_.empty() || process_ != ::getpid()) return;
  (void)catalog::move(path_, path_ + std::string(ended_ending));
}

void RankNote::goes_on() {
  if (path_.empty() || process_ != ::getpid()) return;
  (void)catalog::move(path_ + std::string(ended_ending), path_);
}

namespace {

uint32_t rank_in(const std::string& note) { return uint32_t(std::strtoul(note.c_str(), nullptr, 10)); }

}  // namespace

void RanksThere::add(const std::string& note) {
  unsigned rank = 0, ranks = 0;
  int end = 0;
  if (std::sscanf(note.c_str(), "%uof%u.%n", &rank, &ranks, &end) != 2 || end == 0 || rank >= ranks) return;
  std::string launch = note.substr(size_t(end));
  if (launch.ends_with(ended_ending)) launch.resize(launch.size() - ended_ending.size());
  programs_[{launch, ranks}].insert(rank);
}

bool RanksThere::are_all() const {
  return !programs_.empty() && std::all_of(programs_.begin(), programs_.end(), [](const auto& one) { return one.second.size() == one.first.second; });
}

bool RanksThere::has(uint32_t rank, uint32_t ranks) const {
  bool is_any = false;
  for (const auto& [program, there] : programs_) {
    if (program.second != ranks) continue;
    if (!there.contains(rank)) return false;
    is_any = true;
  }
  return is_any;
}

std::set<uint32_t> ranks_begun(const LocalFiles& files) {
  std::set<uint32_t> ranks;
  if (const auto names = catalog::list_directory(fmt::format("{}/{}", files.directory(), ranks_directory)))
    for (const std::string& name : *names)
      if (!name.ends_with(ended_ending)) ranks.insert(rank_in(name));
  return ranks;
}

RanksThen ranks_then(const Run& run, uint64_t deadline_ms) {
  std::set<std::string> begun, ended;
  Notes notes = notes_on(run, deadline_ms);
  for (const Names& names : notes.found)
    for (const std::string& name : names)
      if (name.ends_with(ended_ending)) ended.insert(name.substr(0, name.size() - ended_ending.size()));
      else begun.insert(name);
  std::set<uint32_t> left;
  for (const std::string& name : begun)
    if (!ended.contains(name)) left.insert(rank_in(name));
  return {{left.begin(), left.end()}, !ended.empty(), std::move(notes.silent)};
}

}  // namespace holdfast::checkpoint
