// Which replica this is: R teams run the whole job each, and a rank of one team is the twin of the same rank of the others.
#pragma once
#include <cstdint>

namespace holdfast::redundant {

inline constexpr int most_replicas = 4;
// With those that are started again for lost ones: each has a number of its own, higher than those of all teams before it.
inline constexpr int most_teams = 8;

constexpr uint64_t team_bit(int team) { return uint64_t(1) << team; }
constexpr uint64_t first_teams(int count) { return team_bit(count) - 1; }

struct Place {
  int team = 0, teams = 1;
  int rank = 0, ranks = 1;
};

}  // namespace holdfast::redundant
