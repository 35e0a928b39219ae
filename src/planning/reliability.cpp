#include "planning/reliability.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace holdfast::planning {

namespace {

// That `hits` of `failures` failures among `nodes` nodes are in a group of `size` of them. It is C(s,i) C(n-s,f-i) / C(n,f), as a product of as many
// factors as the group has nodes.
double hypergeometric(int nodes, int failures, int size, int hits) {
  if (hits > failures || size - hits > nodes - failures) return 0;
  double value = 1;
  int left = nodes;
  for (int i = 0; i < hits; ++i) value *= double(size - i) / (i + 1) * (failures - i) / left--;
  for (int i = 0; i < size - hits; ++i) value *= double(nodes - failures - i) / left--;
  return value;
}

double loss_of_group(int nodes, int failures, const Spread& spread) {
  double sum = 0;
  for (int hits = std::min(spread.nodes, failures); hits > spread.bears; --hits) sum += hypergeometric(nodes, failures, spread.nodes, hits);
  return sum;
}

}  // namespace

double chunk_loss(int nodes, int failures, const Spread& spread) { return loss_of_group(nodes, failures, spread); }

// Group by group: sound[f] is the probability that no group before has lost data and f failures are left for the others.
double job_loss(std::span<const int> groups, int failures, int bears) {
  int nodes = std::accumulate(groups.begin(), groups.end(), 0);
  if (failures > nodes) failures = nodes;
  std::vector<double> sound(size_t(failures) + 1, 0.0);
  sound.back() = 1;
  double lost = 0;
  for (const int size : groups) {
    std::vector<double> next(sound.size(), 0.0);
    for (int left = 0; left <= failures; ++left) {
      if (sound[size_t(left)] == 0) continue;
      lost += sound[size_t(left)] * loss_of_group(nodes, left, {size, bears});
      for (int hits = 0; hits <= std::min({size, left, bears}); ++hits)
        next[size_t(left - hits)] += sound[size_t(left)] * hypergeometric(nodes, left, size, hits);
    }
    sound = std::move(next);
    nodes -= size;
  }
  return lost;
}

double job_loss_in(std::span<const int> groups, double mean_failures, int bears) {
  const int nodes = std::accumulate(groups.begin(), groups.end(), 0);
  constexpr double no_more = 1e-3;  // of what is summed so far, once the law falls
  double sum = 0;
  for (int failures = bears + 1; failures <= nodes; ++failures) {
    const double weight = std::exp(failures * std::log(mean_failures) - mean_failures - std::lgamma(failures + 1.0));
    const double term = weight * job_loss(groups, failures, bears);
    sum += term;
    if (failures > 2 * mean_failures + 10 && term < no_more * 1e-9 * sum) break;
  }
  return sum;
}

double Trial::z() const {
  const double deviation = std::sqrt(double(trials) * expected * (1 - expected));
  const double difference = double(losses) - double(trials) * expected;
  if (deviation > 0) return difference / deviation;
  return std::abs(difference) < 0.5 ? 0 : INFINITY;
}

Trial try_out(std::span<const int> groups, int failures, int bears, const Loses& loses, long trials, unsigned long seed) {
  std::mt19937_64 random(seed);
  std::vector<int> nodes(size_t(std::accumulate(groups.begin(), groups.end(), 0)));
  std::iota(nodes.begin(), nodes.end(), 0);
  Trial trial{trials, 0, job_loss(groups, failures, bears)};
  std::vector<bool> lost(nodes.size());
  for (long i = 0; i < trials; ++i) {
    for (size_t k = 0; k < size_t(failures); ++k) std::swap(nodes[k], nodes[std::uniform_int_distribution<size_t>(k, nodes.size() - 1)(random)]);
    for (size_t k = 0; k < size_t(failures); ++k) lost[size_t(nodes[k])] = true;
    size_t first = 0;
    bool any = false;
    for (size_t group = 0; group < groups.size() && !any; first += size_t(groups[group++])) {
      const std::vector<bool> here(lost.begin() + long(first), lost.begin() + long(first) + groups[group]);
      any = std::count(here.begin(), here.end(), true) > 0 && loses(groups[group], here);
    }
    trial.losses += any;
    for (size_t k = 0; k < size_t(failures); ++k) lost[size_t(nodes[k])] = false;
  }
  return trial;
}

}  // namespace holdfast::planning
