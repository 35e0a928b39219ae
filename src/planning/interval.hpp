// When to write the next checkpoint. All times in seconds; failures are assumed to come at random with a constant rate
// (exponentially distributed, mean `mtbf`), as both sources do.
#pragma once

namespace holdfast::planning {

struct Job {
  double mtbf = 0;        // mean time between failures that end the job, > 0
  double checkpoint = 0;  // what writing one takes, > 0
  double restart = 0;     // from the failure until the job computes again, >= 0
};

// The time to compute between the end of one checkpoint and the beginning of the next.
// J. W. Young, "A first order approximation to the optimum checkpoint interval", Communications of the ACM 17(9), 1974:
// sqrt(2 C M). Good where a checkpoint takes a small part of the mean time between failures.
double young_interval(const Job& job);
// J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation Computer
// Systems 22(3), 2006, equation 37; the mean time between failures where a checkpoint takes more than twice that.
double daly_interval(const Job& job);

// The share of the time, 0 to 1, in which the job does not get on when it checkpoints after every `interval` of work. It is 1 minus useful over
// expected wall clock time, by Daly's complete cost function (equation 20 there) for a long job.
double waste(const Job& job, double interval);

}  // namespace holdfast::planning
