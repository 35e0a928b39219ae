#include "redundant/membership/shown.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace holdfast::redundant {

nlohmann::json shown(const Membership& members, const std::vector<std::unique_ptr<Process>>& processes, int team) {
  nlohmann::json ranks = nlohmann::json::array();
  uint64_t behind_ms = 0;  // the rank that is the farthest behind
  for (const auto& process : processes) {
    if (process->team != team) continue;
    ranks.push_back({{"rank", process->rank}, {"process", process->pid}, {"host", process->host}, {"up", process->connected}});
    behind_ms = std::max(behind_ms, process->behind_ms);
  }
  nlohmann::json one{{"team", team}, {"lost", members.is_lost(team)}, {"ranks", std::move(ranks)}};
  if (members.follows(team) < 0) return one;
  one["follows"] = members.follows(team);
  one["caught_up"] = !members.stands_by(team);
  one["let_go"] = members.was_let_go(team);
  one["behind_ms"] = behind_ms;
  return one;
}

}  // namespace holdfast::redundant
