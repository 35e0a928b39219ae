// How long a scheme keeps its data: the mean time until more targets are lost than it bears, as a Markov chain whose state is the number of
// lost targets (the classical model of RAID: G. A. Gibson, "Redundant Disk Arrays", MIT Press 1992, chapter 5). Targets fail
// independently with a constant rate; those that are lost are rebuilt one after another.
#pragma once

namespace holdfast::planning {

struct Targets {
  int count = 0;       // that hold the file's rows, at least the scheme's width
  double mtbf = 0;     // of one target, in seconds, > 0
  double rebuild = 0;  // from a loss until it has been repaired, in seconds, > 0; how long it takes somebody to notice counts
};

// Mean time to data loss in seconds. `bears`: how many lost targets the scheme survives (0: none). Rows are spread over all
// targets, so any `bears + 1` of them hold a row in common.
double mean_time_to_loss(const Targets& targets, int bears);
// Of losing data within `seconds`, 0 to 1.
double probability_of_loss(const Targets& targets, int bears, double seconds);

}  // namespace holdfast::planning
