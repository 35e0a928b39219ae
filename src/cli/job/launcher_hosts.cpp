#include "cli/job/launcher_hosts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <fstream>
#include <sstream>

#include "base/config.hpp"
#include "cli/job/hosts.hpp"

namespace holdfast::cli {

std::vector<std::string> HostWords::all() const {
  std::vector<std::string> both = list;
  both.insert(both.end(), file.begin(), file.end());
  return both;
}

const HostWords* host_words_of(const Mpi& mpi) {
  static const HostWords open_mpi{{"-host", "--host", "-H"},
                                  {"-hostfile", "--hostfile", "-machinefile", "--machinefile", "-default-hostfile", "--default-hostfile"},
                                  {"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"},
                                  {"OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"},
                                  "--host",
                                  "--hostfile",
                                  "--oversubscribe"};
  static const HostWords hydra{{"-hosts", "--hosts", "-host", "--host"},
                               {"-f", "-hostfile", "--hostfile", "-machinefile", "--machinefile"},
                               {"HYDRA_HOST_FILE"},
                               {"HYDRA_LAUNCHER_EXEC"},
                               "-hosts",
                               "-f",
                               ""};
  if (!mpi.launcher) return nullptr;
  return mpi.name.starts_with("openmpi") ? &open_mpi : &hydra;
}

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

void add_host(Hosts& hosts, const Host& host) {
  const auto same = std::find_if(hosts.begin(), hosts.end(), [&](const Host& one) { return one.name == host.name; });
  if (same == hosts.end()) hosts.push_back(host);
  else same->slots = same->places() + host.places();
}

Hosts hosts_in_list(const std::string& list) {
  Hosts hosts;
  std::istringstream elements(list);
  for (std::string element; std::getline(elements, element, ',');)
    if (const auto host = parse_host(element)) add_host(hosts, *host);
  return hosts;
}

Hosts hosts_in_file(const std::string& file) {
  Hosts hosts;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (const auto host = parse_host(line)) add_host(hosts, *host);
  return hosts;
}

Hosts hosts_of_allocation() {
  Hosts hosts;
  if (const auto names = hosts_of_job(""))
    for (const std::string& name : *names) hosts.push_back({name, 0});
  return hosts;
}

namespace {

int ranks_of(const std::vector<std::string>& command) {
  int ranks = 0;
  OptionsOf(command).each(options_of_ranks,
                          [&](const std::string&, const std::string& value) { std::from_chars(value.data(), value.data() + value.size(), ranks); });
  return ranks;
}

}  // namespace

std::string host_file_by_default(const HostWords& words) {
  for (const std::string& variable : words.file_variable)
    if (std::string file = environment_variable(variable.c_str()); !file.empty()) return file;
  return "";
}

Hosts hosts_by_default(const std::vector<std::string>& command, const HostWords& words) {
  if (const std::string file = host_file_by_default(words); !file.empty()) return hosts_in_file(file);
  Hosts hosts = hosts_of_allocation();
  const int ranks = ranks_of(command), nodes = int(hosts.size());
  for (Host& host : hosts) host.slots = ranks && nodes ? (ranks + nodes - 1) / nodes : 0;
  return hosts;
}

std::string list_of(const Hosts& hosts) {
  std::vector<std::string> elements;
  for (const Host& host : hosts) elements.push_back(host.slots ? fmt::format("{}:{}", host.name, host.slots) : host.name);
  return fmt::format("{}", fmt::join(elements, ","));
}

std::string short_name_of(const std::string& host) {
  std::string label = host.substr(0, host.find('.'));
  return label.find_first_not_of("0123456789") == std::string::npos ? host : label;
}

const std::vector<std::string> options_of_ranks{"-n", "-np", "--n", "--np", "-c"};

void OptionsOf::each(const std::vector<std::string>& options, const Visit& visit) const {
  (void)change(options, [&](const std::string& option, const std::string& value) {
    visit(option, value);
    return std::vector<std::string>();
  });
}

std::vector<std::string> OptionsOf::change(const std::vector<std::string>& options, const Change& change) const {
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

std::pair<std::string, std::optional<std::string>> OptionsOf::split(const std::string& word) const {
  if (word.size() > 2 && word[0] == '-' && joined_.find(word[1]) != std::string_view::npos) return {word.substr(0, 2), word.substr(2)};
  const size_t equals = word.starts_with('-') ? word.find('=') : std::string::npos;
  if (equals == std::string::npos) return {word, {}};
  return {word.substr(0, equals), word.substr(equals + 1)};
}

}  // namespace holdfast::cli
