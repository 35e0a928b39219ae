#include "cli/redundant/spare_hosts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "catalog/user_files.hpp"
#include "cli/job/program.hpp"

namespace holdfast::cli {

namespace {

// "name:4", "name slots=4 ...": under another name.
std::string under(const std::string& piece, const std::map<std::string, std::string>& names) {
  const auto host = parse_host(piece);
  const auto other = host ? names.find(node_name(host->name)) : names.end();
  if (other == names.end()) return piece;
  const size_t at = piece.find(host->name);
  return piece.substr(0, at) + other->second + piece.substr(at + host->name.size());
}

std::string all_under(std::istream& pieces, char end, const std::map<std::string, std::string>& names) {
  std::string all;
  for (std::string piece; std::getline(pieces, piece, end);) all += (all.empty() ? "" : std::string(1, end)) + under(piece, names);
  return all;
}

}  // namespace

SpareHosts::SpareHosts(TeamPlaces places, const std::string& given, MakeDirectory directory)
    : places_(std::move(places)), spares_(hosts_in_list(given)), directory_(std::move(directory)) {
  for (const std::string& node : places_.left_over) spares_.push_back({node, places_.room.contains(node) ? places_.room.at(node) : 0});
}

std::string SpareHosts::spare_for(const std::string& node, const std::set<std::string>& silent) {
  std::set<std::string> busy = silent;
  for (size_t team = 0; team < places_.nodes.size(); ++team)
    if (std::find(lost_.begin(), lost_.begin() + ptrdiff_t(replaced_), int(team)) == lost_.begin() + ptrdiff_t(replaced_))
      busy.insert(places_.nodes[team].begin(), places_.nodes[team].end());
  const auto room = places_.room.find(node);
  const int wanted = room == places_.room.end() || room->second >= any_number_of_ranks ? 0 : room->second;
  const auto spare = std::find_if(spares_.begin(), spares_.end(), [&](const Host& host) {
    return !busy.contains(node_name(host.name)) && (host.slots == 0 || host.slots >= wanted);
  });
  if (spare == spares_.end()) return "";
  const std::string name = spare->name;
  spares_.erase(spare);
  return name;
}

Result<std::vector<std::string>> SpareHosts::next(std::string_view answers) {
  const int lost = replaced_ < lost_.size() ? lost_[replaced_] : 0;
  const size_t team = places_.commands.size();
  said_.clear();
  places_.commands.push_back(places_.commands[size_t(lost)]);  // also of one that cannot be started: later ones keep their numbers
  if (places_.nodes.empty()) return ++replaced_, places_.commands[team];
  std::vector<std::string> nodes = places_.nodes[size_t(lost)];
  const auto names = names_on(nodes, lost, answers);
  auto command = names ? renamed(places_.commands[team], *names) : names.status();
  places_.nodes.push_back(command ? nodes : std::vector<std::string>());
  ++replaced_;
  if (!command) return command;
  said_ = fmt::format("team {} takes the place of team {}, on {}", team, lost, fmt::join(nodes, ", "));
  return places_.commands[team] = *command;
}

// Whose name stands in the place of whose.
Result<SpareHosts::Names> SpareHosts::names_on(std::vector<std::string>& nodes, int lost, std::string_view answers) {
  std::set<std::string> heard, silent;
  std::istringstream words{std::string(answers)};
  std::string how, host;
  for (int team = 0; words >> how >> team >> host;) {
    if (how == "silent") silent.insert(node_name(host));
    else if (team == lost) heard.insert(node_name(host));
  }
  Names names;
  for (std::string& node : nodes) {
    if (heard.contains(node) && !silent.contains(node)) continue;
    const std::string spare = spare_for(node, silent);
    if (spare.empty() && silent.contains(node))
      return Status(Kind::not_found, fmt::format("{} does not answer, and no host is left for its ranks: name some with --spare-hosts", node));
    if (spare.empty()) continue;
    names[node] = spare;
    node = node_name(spare);
  }
  return names;
}

Result<std::vector<std::string>> SpareHosts::renamed(const std::vector<std::string>& command, const Names& names) const {
  Status written;
  std::vector<std::string> options = places_.lists;
  options.insert(options.end(), places_.files.begin(), places_.files.end());
  const auto change = [&](const std::string& option, const std::string& value) -> std::vector<std::string> {
    if (std::find(places_.files.begin(), places_.files.end(), option) == places_.files.end()) {
      std::istringstream list(value);
      return {option, all_under(list, ',', names)};
    }
    std::ifstream file(value);
    const std::string copy = fmt::format("{}/{}", directory_(), base_name(value));
    if (Status status = catalog::replace_file(copy, copy + ".new", all_under(file, '\n', names) + "\n", 0600, false); !status)
      written = std::move(status);
    return {option, copy};
  };
  std::vector<std::string> out = names.empty() ? command : OptionsOf(command).change(options, change);
  if (!written) return written;
  return out;
}

}  // namespace holdfast::cli
