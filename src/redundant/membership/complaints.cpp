#include "redundant/membership/complaints.hpp"

#include <algorithm>
#include <iterator>

namespace holdfast::redundant {

void Complaints::take_back(int team, int rank, int other) {
  std::erase_if(all_, [&](const One& one) { return one.team == team && one.rank == rank && one.other == other; });
}

void Complaints::forget(int rank) {
  std::erase_if(all_, [&](const One& one) { return one.rank == rank; });
}

std::vector<Complaints::One> Complaints::ripe(int64_t now_ms, int64_t deadline_ms) {
  const auto waits = [&](const One& one) { return now_ms - one.at_ms < deadline_ms + grace_ms; };
  const auto first = std::stable_partition(all_.begin(), all_.end(), waits);
  std::vector<One> ripe(std::make_move_iterator(first), std::make_move_iterator(all_.end()));
  all_.erase(first, all_.end());
  return ripe;
}

}  // namespace holdfast::redundant
