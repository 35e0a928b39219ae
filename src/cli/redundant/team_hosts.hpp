// Where the teams of a redundant job run: the hosts of its command, dealt out.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "cli/job/launcher.hpp"

namespace holdfast::cli {

constexpr int any_number_of_ranks = 1 << 20;  // on a node whose launcher does not say how many

// A host by whichever of its names it is called.
std::string node_name(const std::string& host);

struct TeamPlaces {
  std::vector<std::vector<std::string>> commands;  // of each team
  bool apart = false;                              // no node has ranks of two teams
  bool far = false;                                // ranks on other nodes than this one
  bool unlike = false;                             // their nodes take different numbers of ranks
  bool takes_turns = false;                        // all are on this node, with more ranks than it has cores
  std::vector<std::vector<int>> processors;        // of each team, where they are all on this node and its cores suffice
  std::string said;                                // where they run, and what is not survived there
  // Where ranks are on other nodes:
  std::vector<std::vector<std::string>> nodes;  // of each team
  std::vector<std::string> left_over;           // that no team has
  std::map<std::string, int> room;              // of a node, for ranks; where it is said
  std::vector<std::string> lists, files;        // options of the commands that are followed by hosts, by a file of hosts
};

// Each team gets a part of the hosts, in their order, that no other one has, where each part has room for all ranks of a team. Else the commands stay as
// they are. Hosts that stand in a file go to one for each team in `directory`, which is asked for then, with the words that stand beside them.
// Kind::invalid where a list or a file of the command names no host.
using MakeDirectory = std::function<std::string()>;
Result<TeamPlaces> place_teams(const std::vector<std::string>& command, const Mpi& mpi, int teams, const MakeDirectory& directory);
// Kind::invalid as there, and where `spares`, hosts that are given for lost ones, cannot be of use. Nothing is written.
Status check_places(const std::vector<std::string>& command, const Mpi& mpi, int teams, const std::string& spares);

// Which team runs where, with what is left over, and what is not survived there.
std::string said_of_parts(const std::vector<std::vector<std::string>>& parts, const std::vector<std::string>& left_over);
// Behind that, where the nodes of teams take different numbers of ranks.
extern const char* const said_of_unlike_nodes;
// All teams on these nodes, for the lack of something.
std::string said_of_shared(const std::string& lack, const std::vector<std::string>& nodes);

}  // namespace holdfast::cli
