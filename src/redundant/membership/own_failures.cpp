#include "redundant/membership/own_failures.hpp"

#include <algorithm>
#include <iterator>

#include "redundant/map.hpp"

namespace holdfast::redundant {

namespace {

// Two failures are one where their errors differ: all are told the first one's.
bool are_one(const OwnFailures::Report& one, const OwnFailures::Report& other) {
  return one.place == other.place && (one.answer == other.answer || (one.answer < 0 && other.answer < 0));
}

}  // namespace

std::vector<int> OwnFailures::ranks() const {
  std::vector<int> all;
  for (const Report& one : waiting_)
    if (std::find(all.begin(), all.end(), one.rank) == all.end()) all.push_back(one.rank);
  return all;
}

OwnFailures::Judged OwnFailures::judge(int rank, uint64_t living, int64_t now_ms) {
  std::erase_if(waiting_, [&](const Report& one) { return one.rank == rank && !(living & team_bit(one.team)); });
  std::vector<Report> mine;
  std::copy_if(waiting_.begin(), waiting_.end(), std::back_inserter(mine), [&](const Report& one) { return one.rank == rank; });
  if (mine.empty()) return {};
  std::sort(mine.begin(), mine.end(), [](const Report& one, const Report& other) { return one.team < other.team; });
  uint64_t come = 0;
  for (const Report& one : mine) come |= team_bit(one.team);
  Judged judged;
  for (const Report& one : mine) {
    const bool is_of_the_first = are_one(one, mine.front());
    if (come != living && now_ms - one.at_ms >= patience_ms) judged.lost.push_back(one);
    else if (come == living && !is_of_the_first) judged.lost.push_back(one);
  }
  if (come == living && judged.lost.empty()) {
    judged.told = mine;
    for (Report& one : judged.told) one.answer = mine.front().answer;
  }
  const auto is_over = [&](const Report& one) {
    return one.rank == rank &&
           (!judged.told.empty() || std::any_of(judged.lost.begin(), judged.lost.end(), [&](const Report& lost) { return lost.team == one.team; }));
  };
  std::erase_if(waiting_, is_over);
  return judged;
}

}  // namespace holdfast::redundant
