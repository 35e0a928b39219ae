// Who lives: what the hub makes of processes that come, end, or go without a word, of launchers that end, and of claims that differ. It alone
// declares a loss. A team with a lost process is lost as a whole.
//
// The command may be started again for it, as a team with a number of its own. It goes by the log of another one, and its ranks become members one by one
// as they come to the end of that. Until all have the team stands by: nobody waits for its end, and it is let go where the job is over.
//
// Pure: facts in, orders out.
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "redundant/compare/meetings.hpp"
#include "redundant/progress.hpp"

namespace holdfast::redundant {

// Of the job, where it is not the program's own.
enum Verdict : int { not_replicable = 2, replicas_differ = 120, all_lost = 121, ended_by_pipe = 128 + 13 };

struct Order {
  enum What : uint8_t {
    introduce,  // all replicas of `rank` are there; to `team` alone, where that was started again
    kill,       // all processes of `team`, and its launcher, before what follows
    live,       // tell those of `rank` (all: -1) who lives now
    say,        // a line for the user
    finish,     // the job is over with `code`
    start,      // the command, as `team`, which goes by the logs of `teams`; `code` 1: from its beginning
    is_alone,   // `team`, for which a signal of the user's is: it may get it now
  } what;
  int team = -1, rank = -1, code = 0;
  std::string line = {};
  std::vector<int> teams = {};  // the one that is followed, then those whose logs stand before
};
using Orders = std::vector<Order>;

class Membership {
 public:
  // `rehearses`: where claims differ the job goes on with what the first one does.
  explicit Membership(int teams, int relaunches = 0, bool rehearses = false) : teams_(size_t(teams)), relaunches_(relaunches), rehearses_(rehearses) {
    teams_.reserve(most_teams);
  }

  Orders joined(int team, int rank, int ranks);
  // Instead of that: it runs something else than its twins do.
  Orders is_unlike(int team, int rank, const std::string& how);
  // By itself. `with_its_team`: MPI_Abort, or exit with an error, after which the launcher ends the others. `calls`: that it has made together with its twins.
  // `code`: of its exit, where it was one.
  Orders leaves(int team, int rank, bool with_its_team, uint64_t calls = 0, int code = 0);
  Orders gone(int team, int rank, const std::string& who);
  // How far it had come when it died: may be heard of after that.
  void died_at(int team, int rank, HowFar far) { teams_[size_t(team)].died.emplace(rank, far); }
  // A line at the end, where one rank has died at the same place in all teams; else empty. Elsewhere it was chance.
  std::string fault_of_the_program() const;
  bool lacks_a_place() const;  // to say that
  Orders silent(int team, int rank, const std::string& who);
  // Both live, and the one does not reach `twin` of the other. Its team is lost: somebody has to be.
  Orders unreached(int team, int rank, const std::string& twin, int other, const std::string& why);
  // `signal`: by which it died; 0: it ended by itself. What its ranks then say of their end is not the program's doing: MPI ends them with an error.
  Orders launcher_ended(int team, int code, int signal = 0);
  // `what`: of which call, for the line. Claims that a lost team has a part in mean nothing.
  Orders differ(int rank, const std::string& what, const std::vector<std::pair<int, Claim>>& claims);
  // Where messages are compared a difference in one rank makes others in those that it sends to. The one that comes after the fewest messages is kept
  // until the hub has heard of all: then it is judged.
  void hold(int rank, const std::string& what, const std::vector<std::pair<int, Claim>>& claims, uint64_t after_messages);
  Orders judge();
  // A rank of a team that was started again has come to the end of its log, or cannot.
  Orders caught_up(int team, int rank);
  // `may_begin_anew`: the program may from its beginning, for it went on from a checkpoint.
  Orders refused(int team, int rank, const std::string& why, bool may_begin_anew = false);
  // All replicas of the rank are about to become another program: they join once more. What they do then is not written down.
  Orders becomes(int rank, const std::string& what);
  // What the others could do it could not, on a file of its own.
  Orders has_failed_alone(int team, int rank, const std::string& why);
  // A team that has resumed is beyond what was written down, and would not wait for others at calls of before: `may` it go on? Where the others are such that go
  // by its log, and no members, these are let go. Nobody is started again then.
  Orders goes_beyond(int team, int rank, const std::string& why, bool& may);
  // What a team that is started again would have to know is not kept any more.
  Orders log_ends(const std::string& why);
  // Something that a replica has started, and is none, starts ranks: each team would have its own, which write for themselves.
  Orders starts_ranks(int team, const std::string& line);
  // Such a one writes a file that the teams share, as each team's does; or nobody can see what it does. Each is told of once.
  Orders told_of_child(int team, const std::string& line, bool goes_unseen = false);
  Orders nobody_reads();  // what the program prints
  Orders hub_is_left();   // nobody waits for the job any more
  // The user has sent a signal for the program. Replicas would get it at different places. So one team gets it, which goes on alone, and its end is the job's.
  // `code`: of the job, where no team is there, or its ranks do not end by themselves.
  Orders signalled(int code, const std::string& line);
  // The job's, where all that can be heard of it has been. `code`: of the team that counts.
  int code_in_the_end(int code) const;
  // Of claims that differ: one for which nothing speaks, neither bytes of before nor another one that says the same; null where there is none.
  static const std::pair<int, Claim>* unproven_among(const std::vector<std::pair<int, Claim>>& claims);

  uint64_t living(int rank) const;  // the teams in which this rank lives, as bits
  bool is_lost(int team) const { return teams_[size_t(team)].lost; }
  uint64_t acting() const;  // teams that are not lost, and do not stand by
  bool is_over() const { return over_; }
  int lost_teams() const;
  bool rehearses() const { return rehearses_; }
  uint64_t differences() const { return differences_; }  // of a rehearsal
  int started_again() const;
  bool is_last(int team) const {
    return std::all_of(teams_.begin(), teams_.end(), [&](const Team& other) { return other.lost || number_of(other) == team; });
  }
  bool stands_by(int team) const { return !teams_[size_t(team)].is_member; }
  bool was_let_go(int team) const { return teams_[size_t(team)].let_go; }
  int follows(int team) const { return teams_[size_t(team)].follows; }
  int teams() const { return int(teams_.size()); }

 private:
  struct Error {
    int rank, code;
  };
  struct Team {
    std::set<int> joined = {};
    std::map<int, uint64_t> left = {};  // and how many calls they have made
    std::optional<Error> error = {};    // the first one
    int ranks = 0;
    bool lost = false, aborts = false, launcher_ended = false;
    int code = 0;
    int lost_rank = -1;
    std::map<int, HowFar> died = {};  // by rank
    int follows = -1;                 // it was started again, and goes by the log of that one
    bool is_member = true;            // at least of some ranks: all others wait for its end
    bool let_go = false;              // nobody needed it any more
    std::set<int> caught_up = {};
  };
  int number_of(const Team& team) const { return int(&team - teams_.data()); }
  bool any_member() const;
  bool has_met(const Team& team, int rank) const;
  void introduce_where_ready(int rank, Orders& orders) const;
  void let_go_of(int team, Orders& orders);
  void take_in_whoever_stands_by();
  void start_another(Orders& orders);
  bool ended(const Team& team) const;
  Orders lose(int team, int rank, std::string line);
  void look_who_has_not_come_up(Orders& orders);
  Orders stop(std::string line, Verdict verdict = replicas_differ);
  Orders differs_unproven(int team, int rank, const std::string& what, uint64_t proof);
  Orders rehearse(int rank, const std::string& what, const std::vector<std::pair<int, Claim>>& claims);
  void compare_calls(const Team& its, int rank, Orders& orders);
  void look_whether_over(Orders& orders);
  int code_of(const Team& team, Orders& orders) const;
  std::string who_is_left() const;

  struct Held {
    int rank;
    std::string what;
    std::vector<std::pair<int, Claim>> claims;
    uint64_t after_messages;
  };

  std::vector<Team> teams_;
  std::optional<Held> held_;
  int relaunches_;
  bool begin_anew_ = false;  // teams that are started again
  const bool rehearses_;
  uint64_t differences_ = 0;
  std::set<int> told_of_messages_;  // ranks
  int gets_signal_ = -1;            // the team
  int code_of_signal_ = 0;
  bool over_ = false, told_of_calls_ = false, told_of_children_ = false, told_of_unseen_ = false;
};

}  // namespace holdfast::redundant
