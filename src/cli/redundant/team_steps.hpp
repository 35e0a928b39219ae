// Teams of a redundant job as job steps of Slurm's.
#pragma once
#include <string>
#include <vector>

#include "cli/redundant/team_hosts.hpp"

namespace holdfast::cli {

// As place_teams, for srun in an allocation: each team's step gets nodes of its own, as many as -N says, or its share of all. Kind::unsupported
// outside of an allocation, where each step would have to wait for one of its own.
Result<TeamPlaces> place_steps(const std::vector<std::string>& command, int teams);

}  // namespace holdfast::cli
