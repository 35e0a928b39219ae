#include "cli/job/restart_hosts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <wordexp.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "base/config.hpp"
#include "cli/job/hosts.hpp"
#include "cli/job/launcher_hosts.hpp"
#include "cli/job/program.hpp"

namespace holdfast::cli {

namespace {

// Who takes a lost node's place: the same one in all lists of a command.
class Stand_ins {
 public:
  Stand_ins(const NodesNow& now, const Hosts& used) : lost_(now.lost.begin(), now.lost.end()) {
    std::set<std::string> busy;
    for (const Host& host : used) busy.insert(short_name_of(host.name));
    for (const std::string& node : now.live)
      if (!busy.contains(short_name_of(node))) spares_.push_back(node);
  }
  bool any_lost(const Hosts& hosts) const {
    return std::any_of(hosts.begin(), hosts.end(), [this](const Host& host) { return is_lost(host.name); });
  }
  Hosts replace(const Hosts& hosts) {
    Hosts left;
    int homeless = 0;
    for (const Host& host : hosts) {
      if (!is_lost(host.name)) add_host(left, host);
      else if (const auto other = stand_in(host.name)) add_host(left, {*other, host.slots});
      else homeless += host.places();
    }
    for (int i = 0; i < homeless && !left.empty(); ++i) {
      Host& host = left[size_t(i) % left.size()];
      host.slots = host.places() + 1;
    }
    return left;
  }

 private:
  bool is_lost(const std::string& host) const { return lost_.contains(host) || lost_.contains(short_name_of(host)); }
  std::optional<std::string> stand_in(const std::string& host) {
    if (const auto known = chosen_.find(short_name_of(host)); known != chosen_.end()) return known->second;
    if (spares_.empty()) return {};
    const std::string spare = spares_.front();
    spares_.erase(spares_.begin());
    return chosen_[short_name_of(host)] = spare;
  }

  const std::set<std::string> lost_;
  std::vector<std::string> spares_;
  std::map<std::string, std::string> chosen_;
};

Status none_left() {
  return Status(Kind::lost, "no node of the command is left to start it on; bring nodes back, or name others with --restart-with");
}

Result<std::vector<std::string>> with_mpi_hosts(const std::vector<std::string>& command, const HostWords& words, const NodesNow& now) {
  const auto hosts_at = [&](const std::string& option, const std::string& value) {
    return words.is_file(option) ? hosts_in_file(value) : hosts_in_list(value);
  };
  const std::vector<std::string> options = words.all();
  Hosts used;
  bool said = false;
  (void)OptionsOf(command).change(options, [&](const std::string& option, const std::string& value) {
    for (const Host& host : hosts_at(option, value)) add_host(used, host);
    said = true;
    return std::vector<std::string>();
  });
  if (!said) used = hosts_by_default(command, words);
  if (used.empty()) return command;
  Stand_ins stand_ins(now, used);
  if (!stand_ins.any_lost(used)) return command;
  const Hosts left = stand_ins.replace(used);
  if (left.empty()) return none_left();
  // The batch system's places there were for fewer ranks.
  const bool is_crowded = left.size() < used.size() && !words.crowd.empty() && !hosts_of_allocation().empty();
  const auto put = [&](const Hosts& hosts) {
    std::vector<std::string> options_put{words.put, list_of(hosts)};
    if (is_crowded) options_put.push_back(words.crowd);
    return options_put;
  };
  if (said)
    return OptionsOf(command).change(options, [&](const std::string& option, const std::string& value) {
      Hosts hosts = stand_ins.replace(hosts_at(option, value));
      return put(hosts.empty() ? stand_ins.replace(used) : hosts);
    });
  std::vector<std::string> out = command;
  const auto put_in = put(stand_ins.replace(used));
  out.insert(out.begin() + 1, put_in.begin(), put_in.end());
  return out;
}

// Of the allocation, as many nodes as were asked for, or as are left.
Result<std::vector<std::string>> with_slurm_nodes(const std::vector<std::string>& command, const NodesNow& now) {
  Hosts wanted;
  size_t count = 0;
  const std::vector<std::string> options{"-w", "--nodelist", "-N", "--nodes", "-F", "--nodefile"};
  const auto bare = OptionsOf(command, "wNF").change(options, [&](const std::string& option, const std::string& value) {
    if (option == "-N" || option == "--nodes") std::from_chars(value.data(), value.data() + value.size(), count);
    else if (option == "-F" || option == "--nodefile") wanted = hosts_in_file(value);
    else if (const auto names = expand_hosts(value))
      for (const std::string& name : *names) wanted.push_back({name, 0});
    return std::vector<std::string>();
  });
  const Hosts allocated = hosts_of_allocation();
  std::set<std::string> in_allocation;
  for (const Host& host : allocated) in_allocation.insert(short_name_of(host.name));
  NodesNow here = now;
  std::erase_if(here.live, [&](const std::string& node) { return !in_allocation.empty() && !in_allocation.contains(short_name_of(node)); });
  if (wanted.empty() && count == 0) count = allocated.size();
  for (size_t i = 0; wanted.size() < count && i < here.live.size(); ++i) wanted.push_back({here.live[i], 0});
  count = std::max(count, wanted.size());
  Hosts nodes = Stand_ins(here, wanted).replace(wanted);
  if (nodes.empty()) return none_left();
  for (Host& node : nodes) node.slots = 0;
  std::vector<std::string> out = bare;
  std::vector<std::string> put{fmt::format("--nodes={}", nodes.size()), "--nodelist=" + list_of(nodes)};
  if (nodes.size() < count) put.emplace_back("--overcommit");
  out.insert(out.begin() + 1, put.begin(), put.end());
  return out;
}

}  // namespace

Result<std::vector<std::string>> on_live_nodes(const std::vector<std::string>& command, const Mpi& mpi, const NodesNow& now) {
  if (const HostWords* words = host_words_of(mpi)) return with_mpi_hosts(command, *words, now);
  if (base_name(command[0]) == "srun") return with_slurm_nodes(command, now);
  return Status(Kind::unsupported,
                fmt::format("where {} starts its ranks is not known, so it is started unchanged, also on lost nodes; give the command: "
                            "--restart-with 'mpirun --host {{nodes}} ...'",
                            command[0]));
}

Result<std::vector<std::string>> restart_words(const std::string& option, const std::string& text, const std::string& step,
                                               const std::vector<std::string>& nodes) {
  std::string line = text;
  const auto put_in = [&](const std::string& field, const std::string& value) {
    for (size_t at = 0; (at = line.find(field, at)) != std::string::npos; at += value.size()) line.replace(at, field.size(), value);
  };
  put_in("{step}", step);
  put_in("{nodes}", fmt::format("{}", fmt::join(nodes, ",")));
  wordexp_t found{};
  const int failed = ::wordexp(line.c_str(), &found, WRDE_NOCMD);
  std::vector<std::string> words;
  if (!failed) words.assign(found.we_wordv, found.we_wordv + found.we_wordc);
  if (!failed || failed == WRDE_NOSPACE) ::wordfree(&found);
  if (!words.empty()) return words;
  return Status(Kind::invalid, fmt::format("{} '{}' is no command: write words as for a shell, with {{step}} and {{nodes}} as the only "
                                           "fields",
                                           option, text));
}

}  // namespace holdfast::cli
