// How long a job runs until it is interrupted that is there several times, as teams of `ranks` processes each. Failures are exponential and strike
// each process by itself (Casanova, Robert, Vivien, Zaidouni: "Combining process replication and checkpointing", INRIA RR-7951, 2012).
#pragma once

namespace holdfast::planning {

struct Replicated {
  int teams = 2;
  double team_mtbf = 1;  // of one team: of one process over the number of ranks
  double back = 0;       // until a lost team takes part again, on average; 0: it does not come back
};

// Until the last team that takes part is lost. A Markov chain over the number of teams that do. Each of them is lost with rate 1/team_mtbf, each other
// one comes back with rate 1/back. For two teams that is (3 + team_mtbf/back)/2 team_mtbf; where none comes back the sum of team_mtbf/k over k teams.
double mean_time_to_interruption(const Replicated& job);
// That a job of this length is interrupted. Exact where no team comes back, else as if interruptions were exponential: they nearly are where teams
// come back soon.
double interrupted_within(const Replicated& job, double length);

}  // namespace holdfast::planning
