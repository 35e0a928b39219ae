// Where a team that is lost is started again.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/job/launcher_hosts.hpp"
#include "cli/redundant/team_hosts.hpp"

namespace holdfast::cli {

// On its own hosts. A host that did not answer when the team was lost is not used any more. A spare one takes its place, under whatever stood beside
// its name in the command. Of where all teams are on this node it is the command as it was.
class SpareHosts {
 public:
  // `given`: a list of the user's. Hosts of the command that no team has are spare, too.
  SpareHosts(TeamPlaces places, const std::string& given, MakeDirectory directory);
  const TeamPlaces& places() const { return places_; }
  void lost(int team) { lost_.push_back(team); }
  // The next team takes the place of the one that was lost first and has none yet. `answers`: a line for each process of a lost team. It is "ended
  // TEAM HOST" where its end was heard of, "silent TEAM HOST" where its node did not say so. Kind::not_found where no host is left.
  Result<std::vector<std::string>> next(std::string_view answers);
  // Where that team is, and for which; empty on this node.
  std::string said() const { return said_; }

 private:
  using Names = std::map<std::string, std::string>;
  Result<Names> names_on(std::vector<std::string>& nodes, int lost, std::string_view answers);
  std::string spare_for(const std::string& node, const std::set<std::string>& silent);
  Result<std::vector<std::string>> renamed(const std::vector<std::string>& command, const Names& names) const;

  TeamPlaces places_;
  Hosts spares_;
  const MakeDirectory directory_;
  std::vector<int> lost_;  // in their order
  size_t replaced_ = 0;    // of these
  std::string said_;
};

}  // namespace holdfast::cli
