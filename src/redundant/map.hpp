// Which replica this is: R teams run the whole job each, and a rank of one team is the twin of the same rank of the others.
#pragma once

namespace holdfast::redundant {

inline constexpr int most_teams = 4;

struct Place {
  int team = 0, teams = 1;
  int rank = 0, ranks = 1;
};

}  // namespace holdfast::redundant
