#include "planning/interval.hpp"

#include <cmath>

namespace holdfast::planning {

double young_interval(const Job& job) { return std::sqrt(2 * job.checkpoint * job.mtbf); }

double daly_interval(const Job& job) {
  const double part = job.checkpoint / (2 * job.mtbf);
  if (part >= 1) return job.mtbf;
  return young_interval(job) * (1 + std::sqrt(part) / 3 + part / 9) - job.checkpoint;
}

double waste(const Job& job, double interval) {
  // T = M e^(R/M) (e^((tau + C)/M) - 1) Ts/tau; what overflows is a job that never ends.
  const double stretch = job.mtbf * std::exp(job.restart / job.mtbf) * std::expm1((interval + job.checkpoint) / job.mtbf) / interval;
  return 1 - 1 / stretch;
}

}  // namespace holdfast::planning
