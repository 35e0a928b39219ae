#include "redundant/membership/membership.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holdfast::redundant {

Orders Membership::joined(int team, int rank, int ranks) {
  Team& its = teams_[size_t(team)];
  its.ranks = ranks;
  its.joined.insert(rank);
  Orders orders;
  if (its.lost) return orders;
  const bool all = std::all_of(teams_.begin(), teams_.end(), [&](const Team& t) { return t.lost || t.launcher_ended || t.joined.contains(rank); });
  if (all) orders.push_back({.what = Order::introduce, .rank = rank});
  return orders;
}

uint64_t Membership::living(int rank) const {
  uint64_t mask = 0;
  for (size_t team = 0; team < teams_.size(); ++team) {
    const Team& its = teams_[team];
    const bool dead = its.lost || its.left.contains(rank) || (its.launcher_ended && !its.joined.contains(rank)) || (its.launcher_ended && its.aborts);
    if (!dead) mask |= uint64_t(1) << team;
  }
  return mask;
}

int Membership::lost_teams() const {
  return int(std::count_if(teams_.begin(), teams_.end(), [](const Team& team) { return team.lost; }));
}

// By itself: each of its processes has said so, or was taken along.
bool Membership::ended(const Team& team) const {
  return !team.lost && team.launcher_ended && (team.aborts || team.left.size() == team.joined.size());
}

Orders Membership::leaves(int team, int rank, bool with_its_team) {
  Team& its = teams_[size_t(team)];
  its.left.insert(rank);
  its.aborts |= with_its_team;
  Orders orders{{.what = Order::live, .rank = rank}};
  look_whether_over(orders);
  return orders;
}

std::string Membership::who_is_left() const {
  std::string names;
  int left = 0;
  for (size_t team = 0; team < teams_.size(); ++team) {
    if (teams_[team].lost) continue;
    names += (left++ ? " and team " : "team ") + std::to_string(team);
  }
  if (left == 0) return "no team is left";
  return names + (left == 1 ? " goes on alone, and nothing is compared any more" : " go on");
}

Orders Membership::lose(int team, int rank, std::string line) {
  Team& its = teams_[size_t(team)];
  if (its.lost || over_) return {};
  its.lost = true;
  its.lost_rank = rank;
  Orders orders{{.what = Order::kill, .team = team}};
  orders.push_back({.what = Order::say, .line = fmt::format("{}; {}", line, who_is_left())});
  const bool same = rank >= 0 && std::all_of(teams_.begin(), teams_.end(), [&](const Team& t) { return t.lost && t.lost_rank == rank; });
  if (same && teams_.size() > 1)
    orders.push_back(
        {.what = Order::say, .line = fmt::format("rank {} has died in every team, which looks like a fault of the program itself", rank)});
  orders.push_back({.what = Order::live});
  // A rank whose twins all are there by now.
  for (const Team& other : teams_)
    if (!other.lost)
      for (const int there : other.joined) {
        const bool all = std::all_of(teams_.begin(), teams_.end(), [&](const Team& t) { return t.lost || t.joined.contains(there); });
        const bool before = its.joined.contains(there);
        if (all && !before) orders.push_back({.what = Order::introduce, .rank = there});
      }
  look_whether_over(orders);
  return orders;
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

Orders Membership::silent(int team, int rank, const std::string& who) {
  const Team& its = teams_[size_t(team)];
  if (its.left.contains(rank) || its.aborts) return {};
  return lose(team, rank, fmt::format("rank {} of team {} ({}) has not been heard of within the deadline and was ended", rank, team, who));
}

Orders Membership::launcher_ended(int team, int code) {
  Team& its = teams_[size_t(team)];
  its.launcher_ended = true;
  its.code = code;
  Orders orders{{.what = Order::live}};
  // Those of whom nobody has heard for want of this team's.
  for (const Team& other : teams_)
    for (const int rank : other.joined) {
      const bool lacks = !its.joined.contains(rank) && !other.lost && &other != &its;
      const bool all =
          std::all_of(teams_.begin(), teams_.end(), [&](const Team& t) { return t.lost || t.launcher_ended || t.joined.contains(rank); });
      if (lacks && all) orders.push_back({.what = Order::introduce, .rank = rank});
    }
  look_whether_over(orders);
  return orders;
}

Orders Membership::differ(int rank, const std::string& what, const std::vector<std::pair<int, Claim>>& claims) {
  const auto void_now = [&](const auto& said) { return !(living(rank) >> said.first & 1); };
  if (over_ || std::any_of(claims.begin(), claims.end(), void_now)) return {};
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
  over_ = true;
  Orders orders{
      {.what = Order::say, .line = fmt::format("the replicas of rank {} differ: {}; the job stops before anything of it is written", rank, what)}};
  for (int team = 0; team < teams(); ++team) orders.push_back({.what = Order::kill, .team = team});
  orders.push_back({.what = Order::finish, .code = replicas_differ});
  return orders;
}

Orders Membership::hub_is_left() {
  over_ = true;
  Orders orders;
  for (int team = 0; team < teams(); ++team) orders.push_back({.what = Order::kill, .team = team});
  return orders;
}

void Membership::look_whether_over(Orders& orders) {
  if (over_) return;
  const Team* first = nullptr;
  for (const Team& team : teams_) {
    if (team.lost) continue;
    if (!ended(team)) return;
    if (!first) first = &team;
  }
  over_ = true;
  orders.push_back({.what = Order::finish, .code = first ? first->code : int(all_lost)});
}

}  // namespace holdfast::redundant
