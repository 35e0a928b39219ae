#include "cli/redundant/team_hosts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <sstream>

#include "base/config.hpp"
#include "base/cores.hpp"
#include "catalog/user_files.hpp"
#include "cli/job/hosts.hpp"
#include "cli/job/launcher_hosts.hpp"
#include "cli/job/program.hpp"
#include "cli/redundant/team_steps.hpp"

namespace holdfast::cli {

std::string node_name(const std::string& host) {
  const bool here = is_this_host(host) || host == "localhost" || host.starts_with("127.") || host == "::1";
  return here ? short_host_name() : short_name_of(host);
}

namespace {

// A list of the command, or a file that it names: pieces of text, each with its host.
struct Said {
  std::string option;
  bool is_file = false;
  std::vector<std::pair<std::string, Host>> pieces;
};

Said pieces_of(const std::string& option, const std::string& value, bool is_file) {
  Said said{option, is_file, {}};
  const auto take = [&](std::istream& from, char end) {
    for (std::string piece; std::getline(from, piece, end);)
      if (const auto host = parse_host(piece)) said.pieces.emplace_back(piece, *host);
  };
  if (is_file) {
    std::ifstream file(value);
    take(file, '\n');
  } else {
    std::istringstream list(value);
    take(list, ',');
  }
  return said;
}

// Of all programs of the command; 0: of one of them it is not said.
int all_ranks(const std::vector<std::string>& command) {
  int all = 0, programs = 1, told = 0;
  for (const std::string& word : command) programs += word == ":";
  OptionsOf(command).each(options_of_ranks, [&](const std::string&, const std::string& value) {
    int ranks = 0;
    std::from_chars(value.data(), value.data() + value.size(), ranks);
    all += ranks, told += ranks > 0;
  });
  return told == programs ? all : 0;
}

// How many ranks a node is to take at most, by the options that say it; 0 where none does.
int ranks_per_node(const std::vector<std::string>& command) {
  int most = 0;
  const auto number = [&](std::string_view text) { std::from_chars(text.data(), text.data() + text.size(), most); };
  OptionsOf(command).each({"-ppn", "--ppn", "-perhost", "--perhost", "-npernode", "--npernode", "-N", "-map-by", "--map-by"},
                          [&](const std::string& option, const std::string& value) {
                            if (!option.ends_with("map-by")) number(value);
                            else if (value.starts_with("ppr:") && value.find(":node") != std::string::npos) number(value.substr(4));
                          });
  return most;
}

bool may_oversubscribe(const std::vector<std::string>& command) {
  OwnWords words;
  return std::any_of(command.begin() + 1, command.end(), [&](const std::string& word) {
    const bool own = words.are_own();
    words.pass(word);
    return own && (word == "--oversubscribe" || word == "-oversubscribe" || word.ends_with(":oversubscribe") || word.ends_with(":OVERSUBSCRIBE"));
  });
}

class Dealer {
 public:
  Dealer(const std::vector<std::string>& command, const HostWords& words, bool is_open_mpi, int teams)
      : command_(command), words_(words), teams_(size_t(teams)), per_node_(ranks_per_node(command)), ranks_(all_ranks(command)) {
    OptionsOf(command).each(words.all(), [&](const std::string& option, const std::string& value) {
      said_.push_back(pieces_of(option, value, words.is_file(option)));
      if (said_.back().pieces.empty()) names_none_ = option + " " + value;
    });
    in_command_ = !said_.empty();
    if (!in_command_) look_outside();
    for (const Said& one : said_) {
      std::map<std::string, int> here;
      for (const auto& [text, host] : one.pieces) {
        const std::string name = node_name(host.name);
        if (std::find(nodes_.begin(), nodes_.end(), name) == nodes_.end()) nodes_.push_back(name);
        here[name] += host.slots > 0 ? host.slots : one.is_file && is_open_mpi ? any_number_of_ranks : 1;
      }
      for (const auto& [name, room] : here) room_[name] = std::max(room_[name], per_node_ > 0 ? std::min(room, per_node_) : room);
    }
    if (per_node_ > 0 && !is_open_mpi)
      for (auto& [name, room] : room_) room = per_node_;
    if (may_oversubscribe(command))
      for (auto& [name, room] : room_) room = any_number_of_ranks;
  }

  const std::string& names_none() const { return names_none_; }
  const std::vector<std::string>& nodes() const { return nodes_; }
  bool far() const {
    return std::any_of(nodes_.begin(), nodes_.end(), [](const std::string& node) { return !is_this_host(node); });
  }
  size_t part() const { return nodes_.size() / teams_; }

  // Why the hosts do not suffice, where they do not.
  std::string lack() const {
    if (nodes_.size() < teams_)
      return fmt::format("{} teams on nodes of their own need as many nodes, and the command has {}", teams_, nodes_.size());
    if (ranks_ == 0) return "how many ranks a team has is not said (-n)";
    for (size_t team = 0; team < teams_; ++team) {
      int room = 0;
      for (const std::string& node : part_of(team)) room = std::min(room + room_.at(node), any_number_of_ranks);
      if (room < ranks_)
        return fmt::format("each of {} teams needs room for {} ranks, and {} {} room for {} (say how many a node takes: {}:{})", teams_, ranks_,
                           fmt::join(part_of(team), ", "), part() == 1 ? "has" : "have", room, part_of(team)[0],
                           (size_t(ranks_) + part() - 1) / part());
      for (const Said& one : said_)
        if (part_of(one, team).empty()) return fmt::format("{} names no host for team {}", one.option, team);
    }
    return "";
  }

  // Nodes of other sizes: sums that go by nodes come out with other last bits.
  bool are_alike() const {
    const auto sizes = [&](size_t team) {
      std::vector<int> all;
      for (const std::string& node : part_of(team)) all.push_back(room_.at(node));
      return all;
    };
    for (size_t team = 1; team < teams_; ++team)
      if (sizes(team) != sizes(0)) return false;
    return true;
  }

  std::vector<std::string> part_of(size_t team) const {
    const auto first = nodes_.begin() + ptrdiff_t(team * part());
    return {first, first + ptrdiff_t(part())};
  }
  const std::map<std::string, int>& room() const { return room_; }
  std::vector<std::string> left_over() const { return {nodes_.begin() + ptrdiff_t(teams_ * part()), nodes_.end()}; }

  Result<std::vector<std::string>> command_of(size_t team, const MakeDirectory& make_directory) const {
    const bool any_file = std::any_of(said_.begin(), said_.end(), [](const Said& one) { return one.is_file; });
    const std::string directory = any_file ? make_directory() : "";
    if (any_file && directory.empty()) return Status(Kind::io, "no directory can be made for the teams' lists of hosts");
    size_t next = 0;
    Status written;
    const auto put = [&]() -> std::vector<std::string> {
      const Said& one = said_[next];
      const std::vector<std::string> pieces = part_of(one, team);
      if (!one.is_file) return {one.option, fmt::format("{}", fmt::join(pieces, ","))};
      const std::string file = fmt::format("{}/hosts-{}-{}", directory, team, next);
      if (Status status = catalog::replace_file(file, file + ".new", fmt::format("{}\n", fmt::join(pieces, "\n")), 0600, false); !status)
        written = std::move(status);
      return {one.option, file};
    };
    std::vector<std::string> out = command_;
    if (in_command_)
      out = OptionsOf(command_).change(words_.all(), [&](const std::string&, const std::string&) {
        auto words = put();
        ++next;
        return words;
      });
    else {
      const auto words = put();
      out.insert(out.begin() + 1, words.begin(), words.end());
    }
    if (!written) return written;
    return out;
  }

 private:
  void look_outside() {
    if (const std::string file = host_file_by_default(words_); !file.empty()) return said_.push_back(pieces_of(words_.put_file, file, true));
    const Hosts hosts = hosts_of_allocation();
    if (hosts.empty()) return;
    Said said{words_.put, false, {}};
    const int nodes = std::max(int(hosts.size() / teams_), 1), each = std::max((ranks_ + nodes - 1) / nodes, 1);
    for (const Host& host : hosts) said.pieces.emplace_back(fmt::format("{}:{}", host.name, each), Host{host.name, each});
    said_.push_back(std::move(said));
  }
  std::vector<std::string> part_of(const Said& one, size_t team) const {
    const std::vector<std::string> names = part_of(team);
    std::vector<std::string> pieces;
    for (const auto& [text, host] : one.pieces)
      if (std::find(names.begin(), names.end(), node_name(host.name)) != names.end()) pieces.push_back(text);
    return pieces;
  }

  const std::vector<std::string>& command_;
  const HostWords& words_;
  const size_t teams_;
  const int per_node_, ranks_;
  std::vector<Said> said_;
  bool in_command_ = false;
  std::string names_none_;
  std::vector<std::string> nodes_;  // in their order
  std::map<std::string, int> room_;
};

std::string names(const std::vector<std::string>& nodes) { return fmt::format("{}", fmt::join(nodes, ", ")); }

Status names_no_host(const std::string& words) {
  return Status(Kind::invalid, fmt::format("'{}' names no host: write n1,n2, or name a file with a host a line", words));
}

}  // namespace

std::string said_of_parts(const std::vector<std::vector<std::string>>& parts, const std::vector<std::string>& left_over) {
  std::string said;
  for (size_t team = 0; team < parts.size(); ++team) said += fmt::format("{}team {} on {}", team == 0 ? "" : ", ", team, names(parts[team]));
  said += fmt::format("; the loss of this node, {}, where they are started, is not survived", short_host_name());
  if (!environment_variable("SLURM_JOB_ID").empty()) said += ", nor that of any node where Slurm's job was begun without --no-kill";
  if (!left_over.empty()) said += fmt::format("; not used: {}", names(left_over));
  return said;
}

const char* const said_of_unlike_nodes =
    "; their nodes take different numbers of ranks: Open MPI and MPICH are told not to add up by nodes; with another MPI the last bits of a sum may "
    "differ";

std::string said_of_shared(const std::string& lack, const std::vector<std::string>& nodes) {
  return fmt::format("{}: they run side by side on {}, and the loss of a node is not survived", lack, names(nodes));
}

Status check_places(const std::vector<std::string>& command, const Mpi& mpi, int teams, const std::string& spares) {
  if (!spares.empty() && hosts_in_list(spares).empty())
    return Status(Kind::invalid, fmt::format("--spare-hosts is '{}', which names no host: write n1,n2", spares));
  const auto of_no_use = [&](bool far) {
    if (spares.empty() || far) return Status();
    return Status(Kind::invalid, "--spare-hosts is about teams on several nodes, and all are on this one: name hosts in the command, too");
  };
  if (base_name(command[0]) == "srun") {
    const auto places = place_steps(command, teams);
    return places ? of_no_use(places->far) : places.status();
  }
  const HostWords* const words = host_words_of(mpi);
  if (!words) return of_no_use(false);
  const Dealer dealer(command, *words, mpi.name.starts_with("openmpi"), teams);
  if (!dealer.names_none().empty()) return names_no_host(dealer.names_none());
  return of_no_use(dealer.far());
}

namespace {

// Ranks beyond the cores that this process may use take turns, and wait for each other. Where there are cores for all, none has ranks of two teams.
void share_this_node(int teams, int ranks, TeamPlaces& places) {
  const std::vector<Processor> all = processors_here();
  const int count = int(all.size());
  places.takes_turns = count > 0 && teams * ranks > count;
  places.processors = deal_cores(all, teams, ranks).value_or(std::vector<std::vector<int>>());
  places.said = fmt::format("{} teams share this node; its loss is not survived", teams);
  if (places.takes_turns)
    places.said += fmt::format("; all their ranks are {}, and there {} {} core{}: they take turns", teams * ranks, count == 1 ? "is" : "are", count,
                               count == 1 ? "" : "s");
}

}  // namespace

Result<TeamPlaces> place_teams(const std::vector<std::string>& command, const Mpi& mpi, int teams, const MakeDirectory& directory) {
  if (base_name(command[0]) == "srun") return place_steps(command, teams);
  TeamPlaces places;
  places.commands.assign(size_t(teams), command);
  const HostWords* const words = host_words_of(mpi);
  share_this_node(teams, words ? all_ranks(command) : 1, places);
  if (!words) return places;
  const Dealer dealer(command, *words, mpi.name.starts_with("openmpi"), teams);
  if (!dealer.names_none().empty()) return names_no_host(dealer.names_none());
  places.far = dealer.far();
  if (!places.far) return places;
  places.takes_turns = false, places.processors.clear();
  places.lists = words->list, places.files = words->file, places.room = dealer.room();
  places.nodes.assign(size_t(teams), dealer.nodes());
  if (const std::string lack = dealer.lack(); !lack.empty()) {
    places.said = said_of_shared(lack, dealer.nodes());
    return places;
  }
  places.apart = true;
  std::vector<std::vector<std::string>> parts;
  for (size_t team = 0; team < size_t(teams); ++team) {
    auto its = dealer.command_of(team, directory);
    if (!its) return its.status();
    places.commands[team] = std::move(*its);
    parts.push_back(dealer.part_of(team));
  }
  places.nodes = parts, places.left_over = dealer.left_over();
  places.said = said_of_parts(parts, dealer.left_over());
  places.unlike = !dealer.are_alike();
  if (places.unlike) places.said += said_of_unlike_nodes;
  return places;
}

}  // namespace holdfast::cli
