#include "planning/durability.hpp"

#include <cmath>

namespace holdfast::planning {

double mean_time_to_loss(const Targets& targets, int bears) {
  // From i lost targets it takes, on the mean, this long until there are i + 1. Either that happens next, or one is rebuilt first and the way back up
  // is to be gone again.
  double total = 0, step_below = 0;
  for (int lost = 0; lost <= bears; ++lost) {
    const double failing = (targets.count - lost) / targets.mtbf;
    const double mending = lost > 0 ? 1 / targets.rebuild : 0;
    const double step = 1 / failing + mending / failing * step_below;
    total += step;
    step_below = step;
  }
  return total;
}

double probability_of_loss(const Targets& targets, int bears, double seconds) { return -std::expm1(-seconds / mean_time_to_loss(targets, bears)); }

}  // namespace holdfast::planning
