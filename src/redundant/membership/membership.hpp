// Who lives: what the hub makes of processes that come, end, or go without a word, of launchers that end, and of claims that differ. It alone
// declares a loss. A team with a lost process is lost as a whole.
//
// Pure: facts in, orders out.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "redundant/compare/meetings.hpp"

namespace holdfast::redundant {

// Of the job, where it is not the program's own.
enum Verdict : int { replicas_differ = 120, all_lost = 121 };

struct Order {
  enum What : uint8_t {
    introduce,  // all replicas of `rank` are there
    kill,       // all processes of `team`, and its launcher, before what follows
    live,       // tell those of `rank` (all: -1) who lives now
    say,        // a line for the user
    finish,     // the job is over with `code`
  } what;
  int team = -1, rank = -1, code = 0;
  std::string line = {};
};
using Orders = std::vector<Order>;

class Membership {
 public:
  explicit Membership(int teams) : teams_(size_t(teams)) {}

  Orders joined(int team, int rank, int ranks);
  // By itself. `with_its_team`: MPI_Abort, after which the launcher ends the others.
  Orders leaves(int team, int rank, bool with_its_team);
  Orders gone(int team, int rank, const std::string& who);
  Orders silent(int team, int rank, const std::string& who);
  Orders launcher_ended(int team, int code);
  // `what`: of which call, for the line. Claims that a lost team has a part in mean nothing.
  Orders differ(int rank, const std::string& what, const std::vector<std::pair<int, Claim>>& claims);
  Orders hub_is_left();  // nobody waits for the job any more

  uint64_t living(int rank) const;  // the teams in which this rank lives, as bits
  bool is_lost(int team) const { return teams_[size_t(team)].lost; }
  bool is_over() const { return over_; }
  int lost_teams() const;
  int teams() const { return int(teams_.size()); }

 private:
  struct Team {
    std::set<int> joined, left;
    int ranks = 0;
    bool lost = false, aborts = false, launcher_ended = false;
    int code = 0;
    int lost_rank = -1;
  };
  bool ended(const Team& team) const;
  Orders lose(int team, int rank, std::string line);
  void look_whether_over(Orders& orders);
  std::string who_is_left() const;

  std::vector<Team> teams_;
  bool over_ = false;
};

}  // namespace holdfast::redundant
