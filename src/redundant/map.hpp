// Which replica this is: R teams run the whole job each, and a rank of one team is the twin of the same rank of the others.
#pragma once
#include <bit>
#include <cstdint>

namespace holdfast::redundant {

inline constexpr int most_replicas = 4;
// With those that are started again for lost ones: each has a number of its own, higher than those of all teams before it.
inline constexpr int most_teams = 64;

constexpr uint64_t team_bit(int team) { return uint64_t(1) << team; }
constexpr uint64_t first_teams(int count) { return team_bit(count) - 1; }

// Those that are in `mask`, from the first one on: for (const int team : TeamsOf{living}).
struct TeamsOf {
  uint64_t mask;
  struct Next {
    uint64_t left;
    int operator*() const { return std::countr_zero(left); }
    Next& operator++() { return left &= left - 1, *this; }
    bool operator==(const Next&) const = default;
  };
  Next begin() const { return {mask}; }
  Next end() const { return {0}; }
};

struct Place {
  int team = 0, teams = 1;
  int rank = 0, ranks = 1;
};

}  // namespace holdfast::redundant
