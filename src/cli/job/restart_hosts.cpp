#include "cli/job/restart_hosts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <wordexp.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "base/config.hpp"
#include "cli/job/hosts.hpp"
#include "cli/job/program.hpp"

namespace holdfast::cli {

namespace {

struct Host {
  std::string name;
  int slots = 0;  // 0: not said

  int places() const { return std::max(slots, 1); }
};
using Hosts = std::vector<Host>;

// What a launcher calls its hosts.
struct Words {
  std::vector<std::string> list, file;     // options that are followed by a list, by a file
  std::vector<std::string> file_variable;  // environment variables that name a file
  std::string put;                         // the option that is written
};

const Words* words_of(const Mpi& mpi) {
  static const Words open_mpi{{"-host", "--host", "-H"},
                              {"-hostfile", "--hostfile", "-machinefile", "--machinefile", "-default-hostfile", "--default-hostfile"},
                              {"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"},
                              "--host"};
  static const Words hydra{{"-hosts", "--hosts", "-host", "--host"},
                           {"-f", "-hostfile", "--hostfile", "-machinefile", "--machinefile"},
                           {"HYDRA_HOST_FILE"},
                           "-hosts"};
  if (!mpi.launcher) return nullptr;
  return mpi.name.starts_with("openmpi") ? &open_mpi : &hydra;
}

// "name", "name:4", "name slots=4 ...": what a list's element, or a line of a file, says.
std::optional<Host> parse_host(const std::string& text) {
  std::istringstream words(text.substr(0, text.find('#')));
  Host host;
  if (!(words >> host.name)) return {};
  const auto number = [&](const std::string& digits) { std::from_chars(digits.data(), digits.data() + digits.size(), host.slots); };
  if (const size_t colon = host.name.find(':'); colon != std::string::npos) {
    number(host.name.substr(colon + 1));
    host.name.resize(colon);
  }
  for (std::string word; words >> word;)
    if (word.starts_with("slots=")) number(word.substr(6));
  return host;
}

// A name that comes again is a further place, as launchers read it.
void add(Hosts& hosts, const Host& host) {
  const auto same = std::find_if(hosts.begin(), hosts.end(), [&](const Host& one) { return one.name == host.name; });
  if (same == hosts.end()) hosts.push_back(host);
  else same->slots = same->places() + host.places();
}

Hosts hosts_in_list(const std::string& list) {
  Hosts hosts;
  std::istringstream elements(list);
  for (std::string element; std::getline(elements, element, ',');)
    if (const auto host = parse_host(element)) add(hosts, *host);
  return hosts;
}

Hosts hosts_in_file(const std::string& file) {
  Hosts hosts;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (const auto host = parse_host(line)) add(hosts, *host);
  return hosts;
}

Hosts hosts_of_allocation() {
  Hosts hosts;
  if (const auto names = hosts_of_job(""))
    for (const std::string& name : *names) hosts.push_back({name, 0});
  return hosts;
}

std::string short_name(const std::string& host) { return host.substr(0, host.find('.')); }

// Who takes a lost node's place: the same one in all lists of a command.
class Stand_ins {
 public:
  Stand_ins(const NodesNow& now, const Hosts& used) : lost_(now.lost.begin(), now.lost.end()) {
    std::set<std::string> busy;
    for (const Host& host : used) busy.insert(short_name(host.name));
    for (const std::string& node : now.live)
      if (!busy.contains(short_name(node))) spares_.push_back(node);
  }
  Hosts replace(const Hosts& hosts) {
    Hosts left;
    int homeless = 0;
    for (const Host& host : hosts) {
      if (!is_lost(host.name)) add(left, host);
      else if (const auto other = stand_in(host.name)) add(left, {*other, host.slots});
      else homeless += host.places();
    }
    for (int i = 0; i < homeless && !left.empty(); ++i) {
      Host& host = left[size_t(i) % left.size()];
      host.slots = host.places() + 1;
    }
    return left;
  }

 private:
  bool is_lost(const std::string& host) const { return lost_.contains(host) || lost_.contains(short_name(host)); }
  std::optional<std::string> stand_in(const std::string& host) {
    if (const auto known = chosen_.find(short_name(host)); known != chosen_.end()) return known->second;
    if (spares_.empty()) return {};
    const std::string spare = spares_.front();
    spares_.erase(spares_.begin());
    return chosen_[short_name(host)] = spare;
  }

  const std::set<std::string> lost_;
  std::vector<std::string> spares_;
  std::map<std::string, std::string> chosen_;
};

std::string list_of(const Hosts& hosts) {
  std::vector<std::string> elements;
  for (const Host& host : hosts) elements.push_back(host.slots ? fmt::format("{}:{}", host.name, host.slots) : host.name);
  return fmt::format("{}", fmt::join(elements, ","));
}

Status none_left() {
  return Status(Kind::lost, "no node of the command is left to start it on; bring nodes back, or name others with --restart-with");
}

// The options of a command up to its program, and behind each ':' again.
class OptionsOf {
 public:
  // `joined`: letters of those that may be followed by their value without a space, as in "-N4".
  explicit OptionsOf(const std::vector<std::string>& command, std::string_view joined = "") : command_(command), joined_(joined) {}
  // What `change` returns takes the place of each option of these, with its value.
  using Change = std::function<std::vector<std::string>(const std::string& option, const std::string& value)>;
  std::vector<std::string> change(const std::vector<std::string>& options, const Change& change) const {
    std::vector<std::string> out{command_.front()};
    OwnWords words;
    for (size_t i = 1; i < command_.size(); ++i) {
      const std::string& word = command_[i];
      const auto [name, value] = split(word);
      if (words.are_own() && std::find(options.begin(), options.end(), name) != options.end() && (value || i + 1 < command_.size())) {
        for (std::string& made : change(name, value ? *value : command_[++i])) out.push_back(std::move(made));
        continue;
      }
      words.pass(word);
      out.push_back(word);
    }
    return out;
  }

 private:
  std::pair<std::string, std::optional<std::string>> split(const std::string& word) const {
    if (word.size() > 2 && word[0] == '-' && joined_.find(word[1]) != std::string_view::npos) return {word.substr(0, 2), word.substr(2)};
    const size_t equals = word.starts_with('-') ? word.find('=') : std::string::npos;
    if (equals == std::string::npos) return {word, {}};
    return {word.substr(0, equals), word.substr(equals + 1)};
  }

  const std::vector<std::string>& command_;
  const std::string_view joined_;
};

int ranks_of(const std::vector<std::string>& command) {
  int ranks = 0;
  (void)OptionsOf(command).change({"-n", "-np", "--n", "--np", "-c"}, [&](const std::string&, const std::string& value) {
    std::from_chars(value.data(), value.data() + value.size(), ranks);
    return std::vector<std::string>();
  });
  return ranks;
}

// What stands nowhere in the command: the variables' file, or the allocation, each node with as many places as all ranks need.
Hosts hosts_by_default(const std::vector<std::string>& command, const Words& words) {
  for (const std::string& variable : words.file_variable)
    if (const std::string file = environment_variable(variable.c_str()); !file.empty()) return hosts_in_file(file);
  Hosts hosts = hosts_of_allocation();
  const int ranks = ranks_of(command), nodes = int(hosts.size());
  for (Host& host : hosts) host.slots = ranks && nodes ? (ranks + nodes - 1) / nodes : 0;
  return hosts;
}

Result<std::vector<std::string>> with_mpi_hosts(const std::vector<std::string>& command, const Words& words, const NodesNow& now) {
  const auto is_file = [&](const std::string& option) { return std::find(words.file.begin(), words.file.end(), option) != words.file.end(); };
  const auto hosts_at = [&](const std::string& option, const std::string& value) {
    return is_file(option) ? hosts_in_file(value) : hosts_in_list(value);
  };
  std::vector<std::string> options = words.list;
  options.insert(options.end(), words.file.begin(), words.file.end());
  Hosts used;
  bool said = false;
  (void)OptionsOf(command).change(options, [&](const std::string& option, const std::string& value) {
    for (const Host& host : hosts_at(option, value)) add(used, host);
    said = true;
    return std::vector<std::string>();
  });
  if (!said) used = hosts_by_default(command, words);
  if (used.empty()) return command;
  Stand_ins stand_ins(now, used);
  if (stand_ins.replace(used).empty()) return none_left();
  const auto put = [&](const Hosts& hosts) { return std::vector<std::string>{words.put, list_of(hosts)}; };
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
  for (const Host& host : allocated) in_allocation.insert(short_name(host.name));
  NodesNow here = now;
  std::erase_if(here.live, [&](const std::string& node) { return !in_allocation.empty() && !in_allocation.contains(short_name(node)); });
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
  if (const Words* words = words_of(mpi)) return with_mpi_hosts(command, *words, now);
  if (base_name(command[0]) == "srun") return with_slurm_nodes(command, now);
  return Status(Kind::unsupported, fmt::format("where {} starts its ranks is not known, so it is started as it is, also on lost nodes; say how with "
                                               "--restart-with 'mpirun --host {{nodes}} ...'",
                                               command[0]));
}

Result<std::vector<std::string>> restart_words(const std::string& text, const std::string& step, const std::vector<std::string>& nodes) {
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
  return Status(Kind::invalid, fmt::format("--restart-with '{}' is no command: write words as for a shell, with {{step}} and {{nodes}} as the only "
                                           "fields",
                                           text));
}

}  // namespace holdfast::cli
