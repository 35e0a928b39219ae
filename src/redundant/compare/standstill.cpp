#include "redundant/compare/standstill.hpp"

#include <fmt/format.h>

#include "redundant/map.hpp"

namespace holdfast::redundant {

namespace {

constexpr uint64_t waits_there = uint64_t(1) << 34;

Claim claim_of(const Standing& place, uint64_t proof) {
  return {.call = waits_there + (place.is_question ? 1 : 0), .at = place.subject, .bytes = place.number, .proof = proof};
}

}  // namespace

void Standstill::is_past(int team, uint64_t subject) {
  const auto said = others_.find(team);
  if (said != others_.end() && !said->second.standing.is_question && said->second.standing.subject == subject) others_.erase(said);
}

int Standstill::waiting_for(const std::function<uint64_t(const Standing& there)>& number, uint64_t heard, uint32_t epoch) const {
  for (const auto& [team, said] : others_)
    if ((heard & team_bit(team)) && said.epoch == epoch && number(said.standing) < said.standing.number) return team;
  return -1;
}

std::optional<Standstill::Found> Standstill::judge(const Standing& own, const Facts& facts) const {
  Found found;
  for (const int team : TeamsOf{facts.living}) {
    const auto said = others_.find(team);
    const bool stands = said != others_.end() && said->second.epoch == facts.epoch;
    if (team == facts.team) {
      found.claims.emplace_back(team, claim_of(own, own.proof));
    } else if (const auto proof = facts.has_come(team)) {
      found.claims.emplace_back(team, claim_of(own, *proof));
    } else if (stands && said->second.standing.is_at(own)) {
      found.claims.emplace_back(team, claim_of(own, said->second.standing.proof));
    } else if (stands && facts.number(said->second.standing) < said->second.standing.number) {
      const Standing& there = said->second.standing;
      found.claims.emplace_back(team, claim_of(there, there.proof));
      if (found.what.empty()) found.what = fmt::format("{} (team {} waits at {})", there.what, facts.team, own.what);
    } else {
      return std::nullopt;
    }
  }
  return found.what.empty() ? std::nullopt : std::optional(std::move(found));
}

}  // namespace holdfast::redundant
