#include "redundant/membership/stillness.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace holdfast::redundant {

namespace {

constexpr size_t most_ranks = 4;  // that are named
constexpr int ms_of_s = 1000;

}  // namespace

std::string Stillness::line_of(int rank, const std::vector<std::pair<int, int>>& living) const {
  std::string line;
  for (const auto& who : living) {
    if (who.first != rank) continue;
    const Place& place = places_.at(who);
    line += fmt::format("{} team {} {} {}", line.empty() ? fmt::format("rank {}:", rank) : ";", who.second,
                        place.for_twins ? "waits for its twins at" : "is in", place.where);
  }
  return line;
}

std::vector<std::string> Stillness::judge(std::vector<std::pair<int, int>> living, int64_t deadline_ms) {
  std::sort(living.begin(), living.end());
  const auto stands = [&](const auto& who) {
    const auto found = places_.find(who);
    return found != places_.end() && found->second.stood_ms >= deadlines * deadline_ms;
  };
  std::set<int> apart;
  for (const auto& who : living)
    if (stands(who) && places_.at(who).for_twins) apart.insert(who.first);
  if (apart.empty() || !std::all_of(living.begin(), living.end(), stands)) return told_ = false, std::vector<std::string>();
  if (std::exchange(told_, true)) return {};
  std::vector<std::string> lines{
      fmt::format("no rank has gone on for {} s: replicas seem to wait for each other, each at another call; the job is not ended",
                  deadlines * deadline_ms / ms_of_s)};
  for (const int rank : apart)
    if (lines.size() <= most_ranks) lines.push_back(line_of(rank, living));
  if (apart.size() > most_ranks) lines.push_back(fmt::format("{} more ranks stand so", apart.size() - most_ranks));
  return lines;
}

}  // namespace holdfast::redundant
