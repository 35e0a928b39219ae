#include "planning/replicas.hpp"

#include <cmath>

namespace holdfast::planning {

// down: the mean time from k teams to k-1.
double mean_time_to_interruption(const Replicated& job) {
  const double lost = 1 / job.team_mtbf, back = job.back > 0 ? 1 / job.back : 0;
  double down = 0, sum = 0;
  for (int k = job.teams; k >= 1; --k) {
    down = (1 + (job.teams - k) * back * down) / (k * lost);
    sum += down;
  }
  return sum;
}

double interrupted_within(const Replicated& job, double length) {
  if (job.back <= 0) return std::pow(-std::expm1(-length / job.team_mtbf), job.teams);
  return -std::expm1(-length / mean_time_to_interruption(job));
}

}  // namespace holdfast::planning
