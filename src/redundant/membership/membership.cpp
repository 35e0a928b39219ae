#include "redundant/membership/membership.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace holdfast::redundant {

Orders Membership::joined(int team, int rank, int ranks) {
  Team& its = teams_[size_t(team)];
  its.ranks = ranks;
  its.joined.insert(rank);
  Orders orders;
  if (its.lost) return orders;
  const bool all = std::all_of(teams_.begin(), teams_.end(),
                               [&](const Team& t) { return t.follows >= 0 || t.lost || t.launcher_ended || t.joined.contains(rank); });
  if (all && its.follows < 0) orders.push_back({.what = Order::introduce, .rank = rank});
  introduce_where_ready(rank, orders);
  look_who_has_not_come_up(orders);
  return orders;
}

// A launcher that has ended without a rank that another team has: the program did not start there, or not all of it. Those that did have said how they
// ended: by MPI_Abort others may not have come.
void Membership::look_who_has_not_come_up(Orders& orders) {
  const auto lacks = [this](const Team& team) {
    return std::any_of(teams_.begin(), teams_.end(), [&](const Team& other) {
      return !other.lost && other.follows < 0 && !std::includes(team.joined.begin(), team.joined.end(), other.joined.begin(), other.joined.end());
    });
  };
  for (Team& team : teams_) {
    if (over_ || team.lost || !team.launcher_ended || team.aborts || team.left.size() != team.joined.size() || team.follows >= 0) continue;
    if (!lacks(team)) continue;
    const char* const how = team.joined.empty() ? "has not come up" : "has not come up whole";
    for (Order& order : lose(number_of(team), -1, fmt::format("team {} {}: its launcher ended with {}", number_of(team), how, team.code)))
      orders.push_back(std::move(order));
  }
}

// Those that were started again, where all before them are there.
void Membership::introduce_where_ready(int rank, Orders& orders) const {
  for (const Team& team : teams_) {
    if (team.follows < 0 || team.lost || !team.joined.contains(rank)) continue;
    const bool all = std::all_of(teams_.data(), &team, [&](const Team& t) { return t.lost || t.launcher_ended || t.joined.contains(rank); });
    if (all) orders.push_back({.what = Order::introduce, .team = number_of(team), .rank = rank});
  }
}

uint64_t Membership::living(int rank) const {
  uint64_t mask = 0;
  for (size_t team = 0; team < teams_.size(); ++team) {
    const Team& its = teams_[team];
    if (!its.is_member && !its.caught_up.contains(rank)) continue;
    const bool dead = its.lost || its.left.contains(rank) || (its.launcher_ended && !its.joined.contains(rank)) || (its.launcher_ended && its.aborts);
    if (!dead) mask |= uint64_t(1) << team;
  }
  return mask;
}

uint64_t Membership::acting() const {
  uint64_t mask = 0;
  for (const Team& team : teams_)
    if (team.is_member && !team.lost) mask |= team_bit(number_of(team));
  return mask;
}

int Membership::lost_teams() const {
  return int(std::count_if(teams_.begin(), teams_.end(), [](const Team& team) { return team.lost && !team.let_go; }));
}

int Membership::started_again() const {
  return int(std::count_if(teams_.begin(), teams_.end(), [](const Team& team) { return team.follows >= 0; }));
}

bool Membership::any_member() const {
  return std::any_of(teams_.begin(), teams_.end(), [](const Team& team) { return team.is_member && !team.lost; });
}

// By itself: each of its processes has said so, or was taken along.
bool Membership::ended(const Team& team) const {
  return !team.lost && team.launcher_ended && (team.aborts || team.left.size() == team.joined.size());
}

Orders Membership::leaves(int team, int rank, bool with_its_team, uint64_t calls, int code) {
  Team& its = teams_[size_t(team)];
  if (with_its_team && !its.is_member)
    return lose(team, -1, fmt::format("rank {} of team {} has ended with an error before the team had caught up", rank, team));
  its.left.emplace(rank, calls);
  its.aborts |= with_its_team;
  if (code != 0 && !its.error) its.error = Error{rank, code};
  Orders orders{{.what = Order::live, .rank = rank}};
  compare_calls(its, rank, orders);
  look_who_has_not_come_up(orders);
  look_whether_over(orders);
  return orders;
}

// A replica that ends too early leaves its twins alone with what they do then.
void Membership::compare_calls(const Team& its, int rank, Orders& orders) {
  for (const Team& other : teams_) {
    const auto twin = other.left.find(rank);
    const bool counts =
        twin != other.left.end() && !told_of_calls_ && !its.aborts && !other.aborts && !other.lost && its.follows < 0 && other.follows < 0;
    if (!counts || twin->second == its.left.at(rank)) continue;
    told_of_calls_ = true;
    const auto of = [&](const Team& team) { return fmt::format("team {} after {} calls on files", number_of(team), team.left.at(rank)); };
    orders.push_back({.what = Order::say,
                      .line = fmt::format("the replicas of rank {} have ended differently, {} and {}: what only one of them did was not compared",
                                          rank, of(other), of(its))});
  }
}

std::string Membership::who_is_left() const {
  std::string names;
  int left = 0;
  for (size_t team = 0; team < teams_.size(); ++team) {
    if (teams_[team].lost || !teams_[team].is_member) continue;
    names += (left++ ? " and team " : "team ") + std::to_string(team);
  }
  if (left == 0) return "no team is left";
  const auto comes = std::find_if(teams_.begin(), teams_.end(), [](const Team& team) { return !team.lost && !team.is_member; });
  if (comes != teams_.end())
    return fmt::format("{} {}, and the command is started again as team {}", names, left == 1 ? "goes on" : "go on", number_of(*comes));
  return names + (left == 1 ? " goes on alone, and nothing is compared any more" : " go on");
}

void Membership::let_go_of(int team, Orders& orders) {
  teams_[size_t(team)].lost = teams_[size_t(team)].let_go = true;
  orders.push_back({.what = Order::kill, .team = team});
}

void Membership::take_in_whoever_stands_by() {
  for (Team& team : teams_) team.is_member |= !team.lost;
}

void Membership::start_another(Orders& orders) {
  if (teams() >= most_teams) return;
  const auto first = std::find_if(teams_.begin(), teams_.end(), [](const Team& team) { return !team.lost && team.is_member; });
  if (first == teams_.end() || first->launcher_ended) return;
  Order order{.what = Order::start, .team = teams(), .code = begin_anew_};
  for (int one = number_of(*first); one >= 0; one = teams_[size_t(one)].follows) order.teams.push_back(one);
  teams_.push_back({.follows = order.teams[0], .is_member = false});
  orders.push_back(std::move(order));
}

Orders Membership::lose(int team, int rank, std::string line) {
  Team& its = teams_[size_t(team)];
  if (its.lost || over_) return {};
  its.lost = true;
  its.lost_rank = rank;
  Orders orders{{.what = Order::kill, .team = team}}, starts;
  // Who follows it and is no member may know what those that go on have never heard of.
  int again = 0;
  for (int other = 0; other < teams() && any_member(); ++other)
    if (!teams_[size_t(other)].lost && !teams_[size_t(other)].is_member && teams_[size_t(other)].follows == team) let_go_of(other, orders), ++again;
  if (!any_member()) take_in_whoever_stands_by();
  if (relaunches_ > 0 && any_member()) --relaunches_, ++again;
  for (; again > 0; --again) start_another(starts);
  orders.push_back({.what = Order::say, .line = fmt::format("{}; {}", line, who_is_left())});
  orders.push_back({.what = Order::live});
  // A rank whose twins all are there by now.
  for (const Team& other : teams_)
    if (!other.lost)
      for (const int there : other.joined) {
        const bool all =
            std::all_of(teams_.begin(), teams_.end(), [&](const Team& t) { return t.follows >= 0 || t.lost || t.joined.contains(there); });
        const bool before = its.joined.contains(there);
        if (all && !before && other.follows < 0 && its.follows < 0) orders.push_back({.what = Order::introduce, .rank = there});
        introduce_where_ready(there, orders);
      }
  orders.insert(orders.end(), starts.begin(), starts.end());
  look_whether_over(orders);
  return orders;
}

Orders Membership::caught_up(int team, int rank) {
  Team& its = teams_[size_t(team)];
  if (its.lost || over_ || its.is_member || !its.caught_up.insert(rank).second) return {};
  Orders orders{{.what = Order::live, .rank = rank}};
  const size_t ranks = teams_[size_t(its.follows)].joined.size();
  its.is_member = its.caught_up.size() >= ranks;
  if (its.is_member) orders.push_back({.what = Order::say, .line = fmt::format("team {} has caught up; {}", team, who_is_left())});
  return orders;
}

Orders Membership::refused(int team, int rank, const std::string& why, bool may_begin_anew) {
  const Team& its = teams_[size_t(team)];
  if (may_begin_anew && !its.lost && !over_) {
    if (!std::exchange(begin_anew_, true)) ++relaunches_;  // this one does not count
    return lose(team, -1, fmt::format("rank {} of team {} cannot go on from a checkpoint: {}", rank, team, why));
  }
  if (its.follows < 0) return lose(team, -1, fmt::format("rank {} of team {} cannot go on: {}", rank, team, why));
  relaunches_ = 0;  // another one would not get on better
  return lose(team, -1, fmt::format("rank {} of team {} cannot catch up: {}", rank, team, why));
}

Orders Membership::becomes(int rank, const std::string& what) {
  Orders orders = log_ends(fmt::format("rank {} becomes another program, {}", rank, what));
  for (Team& team : teams_) {
    if (!team.lost && !team.is_member) let_go_of(number_of(team), orders);
    team.joined.erase(rank);
  }
  return orders;
}

Orders Membership::has_failed_alone(int team, int rank, const std::string& why) {
  return lose(team, -1, fmt::format("rank {} of team {} could not do what its twins could: {}", rank, team, why));
}

Orders Membership::goes_beyond(int team, int rank, const std::string& why, bool& may) {
  const auto is_in_the_way = [&](const Team& other) { return !other.lost && number_of(other) != team && (other.is_member || other.follows != team); };
  may = !over_ && !is_lost(team) && std::none_of(teams_.begin(), teams_.end(), is_in_the_way);
  if (!may) return lose(team, -1, fmt::format("rank {} of team {} cannot catch up: {}", rank, team, why));
  Orders orders = log_ends(fmt::format("team {} has gone on from a checkpoint beyond what was written down", team));
  bool any = false;
  for (int other = 0; other < teams(); ++other)
    if (other != team && !is_lost(other)) let_go_of(other, orders), any = true;
  if (any) orders.push_back({.what = Order::live});
  return orders;
}

Orders Membership::log_ends(const std::string& why) {
  if (relaunches_ == 0 || over_) return {};
  relaunches_ = 0;
  return {{.what = Order::say, .line = fmt::format("{}; a lost team is not started again any more", why)}};
}

Orders Membership::gone(int team, int rank, const std::string& who) {
  Team& its = teams_[size_t(team)];
  if (its.left.contains(rank)) {
    Orders orders;
    look_whether_over(orders);
    return orders;
  }
  if (its.aborts) return leaves(team, rank, true);
  return lose(team, rank, fmt::format("rank {} of team {} ({}) has died", rank, team, who));
}

bool Membership::lacks_a_place() const {
  const auto first = std::find_if(teams_.begin(), teams_.end(), [](const Team& team) { return !team.let_go; });
  const auto counts = [](const Team& team) { return !team.let_go; };
  const auto alike = [&](const Team& team) { return !counts(team) || (team.lost && team.lost_rank >= 0 && team.lost_rank == first->lost_rank); };
  return std::all_of(teams_.begin(), teams_.end(), alike) &&
         std::any_of(teams_.begin(), teams_.end(), [&](const Team& team) { return counts(team) && !team.died.contains(team.lost_rank); });
}

std::string Membership::fault_of_the_program() const {
  const Team* first = nullptr;
  int dead = 0;
  for (const Team& team : teams_) {
    if (team.let_go) continue;
    const auto died = team.died.find(team.lost_rank);
    if (!team.lost || died == team.died.end()) return "";
    if (!first) first = &team;
    if (team.lost_rank != first->lost_rank || !(died->second == first->died.at(first->lost_rank))) return "";
    ++dead;
  }
  if (dead < 2) return "";
  const HowFar far = first->died.at(first->lost_rank);
  return fmt::format(
      "rank {} has died at the same place in every team (after {} calls on files and {} questions about clocks and files), which looks "
      "like a fault of the program itself",
      first->lost_rank, far.calls, far.asked);
}

Orders Membership::silent(int team, int rank, const std::string& who) {
  const Team& its = teams_[size_t(team)];
  if (its.left.contains(rank) || its.aborts) return {};
  return lose(team, rank, fmt::format("rank {} of team {} ({}) has not been heard of within the deadline and was ended", rank, team, who));
}

Orders Membership::unreached(int team, int rank, const std::string& twin, int other, const std::string& why) {
  return lose(team, -1, fmt::format("rank {} of team {} does not reach its twin of team {} ({}): {}", rank, team, other, twin, why));
}

Orders Membership::launcher_ended(int team, int code, int signal) {
  Team& its = teams_[size_t(team)];
  its.launcher_ended = true;
  its.code = code;
  if (team == gets_signal_) return {{.what = Order::finish, .code = code}};
  const bool has_left = !its.aborts && !its.joined.empty() && its.left.size() == its.joined.size();
  if (signal != 0 && !its.lost && !over_ && !has_left)
    return lose(team, -1, fmt::format("the launcher of team {} has died by signal {}", team, signal));
  if (!its.is_member && !its.lost && code != 0) return lose(team, -1, fmt::format("team {} has ended with {} before it had caught up", team, code));
  Orders orders{{.what = Order::live}};
  // Those of whom nobody has heard for want of this team's.
  for (const Team& other : teams_)
    for (const int rank : other.joined) {
      const bool lacks = !its.joined.contains(rank) && !other.lost && &other != &its && other.follows < 0;
      introduce_where_ready(rank, orders);
      const bool all = std::all_of(teams_.begin(), teams_.end(),
                                   [&](const Team& t) { return t.follows >= 0 || t.lost || t.launcher_ended || t.joined.contains(rank); });
      if (lacks && all) orders.push_back({.what = Order::introduce, .rank = rank});
    }
  look_who_has_not_come_up(orders);
  look_whether_over(orders);
  return orders;
}

Orders Membership::differ(int rank, const std::string& what, const std::vector<std::pair<int, Claim>>& claims) {
  const auto void_now = [&](const auto& said) { return teams_[size_t(said.first)].lost; };
  if (over_ || std::any_of(claims.begin(), claims.end(), void_now)) return {};
  if (rehearses_) return rehearse(rank, what, claims);
  for (const auto& [team, claim] : claims)
    if (!teams_[size_t(team)].is_member) return refused(team, rank, what + " is not what the others do");
  if (const auto* const one = unproven_among(claims)) return differs_unproven(one->first, rank, what, one->second.proof);
  for (const auto& [team, claim] : claims) {
    const auto same = std::count_if(claims.begin(), claims.end(), [&](const auto& other) { return other.second == claim; });
    if (size_t(same) * 2 <= claims.size()) continue;
    Orders orders;
    for (const auto& [other, differs] : claims)
      if (!(differs == claim))
        for (Order& order : lose(other, -1, fmt::format("rank {} of team {} differs from the others: {}", rank, other, what)))
          orders.push_back(order);
    return orders;
  }
  return stop(fmt::format("the replicas of rank {} differ: {}; the job stops before anything of it is written", rank, what));
}

const std::pair<int, Claim>* Membership::unproven_among(const std::vector<std::pair<int, Claim>>& claims) {
  const auto is_proven = [](const auto& one) { return one.second.proof == Claim::proven; };
  if (std::none_of(claims.begin(), claims.end(), is_proven)) return nullptr;
  const auto stands_alone = [&](const auto& one) {
    return !is_proven(one) &&
           std::none_of(claims.begin(), claims.end(), [&](const auto& other) { return is_proven(other) && other.second == one.second; });
  };
  const auto found = std::find_if(claims.begin(), claims.end(), stands_alone);
  return found == claims.end() ? nullptr : &*found;
}

// It is a member, for it has come to where the others were, by the name of a file. It has joined at a wrong place, or resumed with other bytes.
Orders Membership::differs_unproven(int team, int rank, const std::string& what, uint64_t proof) {
  if (proof == Claim::unproven_may_begin_anew) return refused(team, rank, what + " is not what the others do", true);
  relaunches_ = 0;  // another one would not get on better
  return lose(team, -1, fmt::format("rank {} of team {} does not go on as the others do: {}", rank, team, what));
}

Orders Membership::stop(std::string line, Verdict verdict) {
  over_ = true;
  Orders orders{{.what = Order::say, .line = std::move(line)}};
  for (int team = 0; team < teams(); ++team) orders.push_back({.what = Order::kill, .team = team});
  orders.push_back({.what = Order::finish, .code = verdict});
  return orders;
}

Orders Membership::starts_ranks(int team, const std::string& line) {
  if (over_ || is_lost(team)) return {};
  return stop(line, not_replicable);
}

Orders Membership::told_of_child(int team, const std::string& line, bool goes_unseen) {
  if (over_ || is_lost(team) || std::exchange(goes_unseen ? told_of_unseen_ : told_of_children_, true)) return {};
  return {{.what = Order::say, .line = line}};
}

Orders Membership::is_unlike(int team, int rank, const std::string& how) {
  if (over_ || is_lost(team)) return {};
  return stop(fmt::format("rank {} of team {} {}; the job stops before anything is written", rank, team, how));
}

// The first one's outcome is everybody's. It cannot be one of another call's.
Orders Membership::rehearse(int rank, const std::string& what, const std::vector<std::pair<int, Claim>>& claims) {
  constexpr uint64_t most_told = 20;
  const auto& [first, its] = claims[0];
  const bool only_messages = std::all_of(claims.begin(), claims.end(), [&](const auto& one) { return one.second.same_but_for_messages(its); });
  if (only_messages && !told_of_messages_.insert(rank).second) return {};  // one makes others
  Orders orders;
  if (++differences_ <= most_told)
    orders.push_back({.what = Order::say,
                      .line = fmt::format("the replicas of rank {} differ: {}; the rehearsal goes on with what team {} does{}", rank, what, first,
                                          differences_ == most_told ? "; further ones are counted, not reported" : "")});
  for (const auto& [team, claim] : claims)
    if (!claim.same_shape(its))
      for (Order& order : lose(team, -1, fmt::format("rank {} of team {} makes another call than team {}", rank, team, first)))
        orders.push_back(std::move(order));
  return orders;
}

void Membership::hold(int rank, const std::string& what, const std::vector<std::pair<int, Claim>>& claims, uint64_t after_messages) {
  const auto void_now = [&](const auto& said) { return teams_[size_t(said.first)].lost; };
  if (std::any_of(claims.begin(), claims.end(), void_now)) return;
  if (!held_ || after_messages < held_->after_messages) held_ = Held{rank, what, claims, after_messages};
}

Orders Membership::judge() {
  const std::optional<Held> one = std::exchange(held_, std::nullopt);
  return one ? differ(one->rank, one->what, one->claims) : Orders();
}

Orders Membership::nobody_reads() {
  if (over_) return {};
  Orders orders = hub_is_left();
  orders.push_back({.what = Order::finish, .code = ended_by_pipe});
  return orders;
}

Orders Membership::signalled(int code, const std::string& line) {
  if (over_) return {};
  over_ = true;
  const auto goes_on = [](const Team& team) { return !team.lost && team.is_member && !team.launcher_ended; };
  const auto first = std::find_if(teams_.begin(), teams_.end(), goes_on);
  if (first != teams_.end()) gets_signal_ = number_of(*first), code_of_signal_ = code;
  Orders orders;
  for (int team = 0; team < teams(); ++team)
    if (team != gets_signal_ && !is_lost(team)) let_go_of(team, orders);
  orders.push_back({.what = Order::live});
  if (gets_signal_ >= 0 && !line.empty()) orders.push_back({.what = Order::say, .line = fmt::format("{}; {}", line, who_is_left())});
  if (gets_signal_ >= 0) orders.push_back({.what = Order::is_alone, .team = gets_signal_});
  else orders.push_back({.what = Order::finish, .code = code});
  return orders;
}

// MPICH's launcher ends with 0 where the signal has ended its ranks.
int Membership::code_in_the_end(int code) const {
  if (code != 0 || gets_signal_ < 0) return code;
  const Team& its = teams_[size_t(gets_signal_)];
  return its.left.size() == its.joined.size() ? code : code_of_signal_;
}

Orders Membership::hub_is_left() {
  over_ = true;
  Orders orders;
  for (int team = 0; team < teams(); ++team) orders.push_back({.what = Order::kill, .team = team});
  return orders;
}

// MPICH's launcher may end with the signal by which it has ended the other ranks, instead of the code for which it did.
int Membership::code_of(const Team& team, Orders& orders) const {
  constexpr int killed = 9;
  if (!team.error || team.error->code == team.code || (team.code != killed && team.code != 128 + killed)) return team.code;
  orders.push_back(
      {.what = Order::say,
       .line = fmt::format("the launcher of team {} has ended with {}, as the ranks that it killed; rank {} had ended with {}, which counts",
                           number_of(team), team.code, team.error->rank, team.error->code)});
  return team.error->code;
}

void Membership::look_whether_over(Orders& orders) {
  if (over_) return;
  const Team *first = nullptr, *well = nullptr, *ended_by_a_rank = nullptr;
  for (const Team& team : teams_) {
    if (team.lost || !team.is_member) continue;
    if (!ended(team)) return;
    if (!first) first = &team;
    if (!well && team.code == 0 && !team.aborts) well = &team;
    if (!ended_by_a_rank && team.aborts && team.joined.size() > 1) ended_by_a_rank = &team;
  }
  over_ = true;
  // What a program does by itself its replicas do alike. The MPI library of one team may have ended it, for a peer that it did not reach. A program of
  // one process says itself how it has ended, here and below.
  if (well && ended_by_a_rank) {
    orders.push_back({.what = Order::say,
                      .line = fmt::format("a rank of team {} has ended it with {}; team {} ended with 0, which counts", number_of(*ended_by_a_rank),
                                          ended_by_a_rank->code, number_of(*well))});
    first = well;
  }
  // A node that is lost once its ranks have ended is a failure of its launcher's alone.
  if (first && well && first->code != 0 && !first->aborts && first->joined.size() > 1) {
    orders.push_back({.what = Order::say,
                      .line = fmt::format("all ranks of team {} have ended, and its launcher with {}; that of team {} ended with 0, which counts",
                                          number_of(*first), first->code, number_of(*well))});
    first = well;
  }
  for (int team = 0; team < teams(); ++team)
    if (!teams_[size_t(team)].lost && !teams_[size_t(team)].is_member) let_go_of(team, orders);
  if (rehearses_)
    orders.push_back({.what = Order::say,
                      .line = differences_ == 0 ? "the rehearsal is over: the replicas have not differed"
                                                : fmt::format("the rehearsal is over: the replicas have differed at {} call{}", differences_,
                                                              differences_ == 1 ? "" : "s")});
  orders.push_back({.what = Order::finish, .code = first ? code_of(*first, orders) : int(all_lost)});
}

}  // namespace holdfast::redundant
