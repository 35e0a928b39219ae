// How probable it is that nodes which are lost at once take data with them. The model of the seed's section 4 (reliability of a chunk, from L. Bautista
// Gomez et al., "FTI", SC 2011), with the exact hypergeometric law, and for a whole job whose nodes are in groups.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace holdfast::planning {

// What a row's units lie on: so many nodes, of which it bears the loss of `bears`.
struct Spread {
  int nodes = 1;
  int bears = 0;
};

// That a chunk is lost whose row lies on some of `nodes` nodes, when `failures` of them fail at once. It is the sum over i > bears of C(w,i)
// C(n-w,f-i) / C(n,f). 0 <= failures <= nodes, spread.nodes <= nodes.
double chunk_loss(int nodes, int failures, const Spread& spread);
// That any chunk is lost of a job whose nodes are in these groups, each of which loses data with more than `bears` nodes. From positive terms only:
// what is far below the precision of 1 is right to its last digits.
double job_loss(std::span<const int> groups, int failures, int bears);
// The same for a number of failures that is Poisson's with this mean (nodes x window / MTBF of one node).
double job_loss_in(std::span<const int> groups, double mean_failures, int bears);

// A trial that is further from the model than this says that one of them is wrong.
constexpr double most_z = 4;

// By trial on a real placement: `loses` says whether a group of so many nodes loses a row when these of its nodes (true) are lost.
struct Trial {
  long trials = 0, losses = 0;
  double expected = 0;  // the model's probability
  double z() const;     // standard deviations between both; 0 where the model leaves no doubt and is right
};
using Loses = std::function<bool(int group_nodes, const std::vector<bool>& lost)>;
Trial try_out(std::span<const int> groups, int failures, int bears, const Loses& loses, long trials, unsigned long seed);

}  // namespace holdfast::planning
