#include "cli/job/job_nodes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/config.hpp"
#include "base/node_path.hpp"
#include "cli/job/agents.hpp"
#include "cli/job/hosts.hpp"
#include "cli/job/launcher_hosts.hpp"
#include "cli/job/program.hpp"
#include "cli/job/slurm_step.hpp"

namespace holdfast::cli {

namespace {

Hosts hosts_for_mpi(const std::vector<std::string>& command, const HostWords& words) {
  Hosts hosts;
  OptionsOf(command).each(words.all(), [&](const std::string& option, const std::string& value) {
    for (const Host& host : words.is_file(option) ? hosts_in_file(value) : hosts_in_list(value)) add_host(hosts, host);
  });
  if (!hosts.empty()) return hosts;
  const std::string file = host_file_by_default(words);
  return file.empty() ? Hosts() : hosts_in_file(file);
}

Hosts hosts_for_srun(const std::vector<std::string>& command) {
  Hosts hosts;
  OptionsOf(command, "wF").each({"-w", "--nodelist", "-F", "--nodefile"}, [&](const std::string& option, const std::string& value) {
    const bool is_file = option == "-F" || option == "--nodefile";
    const auto names = is_file ? read_hosts(value) : expand_hosts(value);
    if (names)
      for (const std::string& name : *names) add_host(hosts, {name, 0});
  });
  return hosts;
}

bool is_here(const std::string& host) {
  return is_this_host(host) || is_own_node(host) || host == "localhost" || host.starts_with("127.") || host == "::1";
}

// The first command of these that is there, with the node that it goes to. Open MPI's is a list with ':' between.
std::string way_of_launcher(const HostWords* words) {
  std::string ways;
  for (const std::string& variable : words ? words->way_variable : std::vector<std::string>())
    if (ways.empty()) ways = environment_variable(variable.c_str());
  for (size_t begin = 0; begin < ways.size();) {
    const size_t end = std::min(ways.find(':', begin), ways.size());
    const size_t first = std::min(ways.find_first_not_of(' ', begin), end), last = std::min(ways.find_last_not_of(' ', end - 1) + 1, end);
    const std::string way = ways.substr(first, std::max(first, last) - first);
    if (find_on_path(way.substr(0, way.find(' ')))) return way + " {node}";
    begin = end + 1;
  }
  return find_on_path("ssh") ? "ssh {node}" : "";
}

std::string way_of_resource_manager() {
  constexpr const char* ways[][2] = {{"PBS_NODEFILE", "pbs_tmrsh"}, {"LSB_DJOB_HOSTFILE", "blaunch"}};
  for (const auto& [variable, way] : ways)
    if (!environment_variable(variable).empty()) return find_on_path(way) ? fmt::format("{} {}", way, node_mark) : "";
  return "";
}

}  // namespace

std::vector<std::string> nodes_of_command(const std::vector<std::string>& command, const Mpi& mpi) {
  const HostWords* const words = host_words_of(mpi);
  const bool is_srun = base_name(command[0]) == "srun";
  std::vector<std::string> nodes;
  bool here = false;
  for (const Host& host : is_srun ? hosts_for_srun(command) : words ? hosts_for_mpi(command, *words) : Hosts()) {
    if (!names_a_node(host.name + ":/")) return {};  // "+n0": a place in an allocation
    if (is_here(host.name)) here = true;
    else nodes.push_back(host.name);
  }
  if (nodes.empty()) return {};
  nodes = without_domains(std::move(nodes));
  if (here) nodes.push_back(own_node_name());
  return nodes;
}

void fill_in(PoolOptions& options, const std::vector<std::string>& command, const Mpi& mpi) {
  if (!options.hosts.empty() || is_slurm_job()) return;
  const auto allocated = hosts_of_job("");
  if (!allocated) return;  // which is told when they are asked for
  std::string way = way_of_resource_manager();
  if (allocated->empty()) {
    options.hosts = fmt::format("{}", fmt::join(nodes_of_command(command, mpi), ","));
    if (!options.hosts.empty() && base_name(command[0]) != "srun") way = way_of_launcher(host_words_of(mpi));
  }
  if (options.with.empty()) options.with = std::move(way);
  options.is_filled_in = true;
}

}  // namespace holdfast::cli
