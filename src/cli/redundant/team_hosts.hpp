// Where the teams of a redundant job run: the hosts of its command, dealt out.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "cli/job/launcher.hpp"

namespace holdfast::cli {

struct TeamPlaces {
  std::vector<std::vector<std::string>> commands;  // of each team
  bool apart = false;                              // no node has ranks of two teams
  bool far = false;                                // ranks on other nodes than this one
  std::string said;                                // where they run, and what is not survived there
};

// Each team gets a part of the hosts, in their order, that no other one has, where each part has room for all ranks of a team. Else the commands stay as
// they are. Hosts that stand in a file go to one for each team in `directory`, which is asked for then, with the words that stand beside them.
// Kind::invalid where a list or a file of the command names no host.
using MakeDirectory = std::function<std::string()>;
Result<TeamPlaces> place_teams(const std::vector<std::string>& command, const Mpi& mpi, int teams, const MakeDirectory& directory);
// Kind::invalid as there; Kind::unsupported where what else is asked for needs all teams on this node. Nothing is written.
Status check_places(const std::vector<std::string>& command, const Mpi& mpi, int teams, bool relaunches);

// Which team runs where, with what is left over, and what is not survived there.
std::string said_of_parts(const std::vector<std::vector<std::string>>& parts, const std::vector<std::string>& left_over);
// All teams on these nodes, for the lack of something.
std::string said_of_shared(const std::string& lack, const std::vector<std::string>& nodes);

}  // namespace holdfast::cli
