// Small pieces of many processes that take turns in a shared file, each written by a call of its own: collective calls gather them into large
// accesses of a few processes.
#include <fmt/format.h>

#include <algorithm>

#include "advice/recognise/common.hpp"
#include "advice/recognisers.hpp"

namespace holdfast::advice {

void recognise_independent_interleaved(const Digest& digest, const Model& model, Report& report) {
  constexpr double aggregated = 16 << 20;        // bytes that a collective call's aggregators move at once
  constexpr double exchange_bandwidth = 1e9;     // between the processes of a node's job, assumed
  for (const Use& use : digest.uses) {
    for (const Side* side : {&use.writes, &use.reads}) {
      const Load& slow = side->slowest;
      const bool taking_turns = side->share(side->forward + side->backward) >= 0.5;
      if (!use.mpi() || !use.shared() || side->processes < 2 || slow.calls < 16 || slow.mean_bytes() >= small_bytes || !taking_turns) continue;
      if (side->share(side->collective) > 0.5) continue;
      const Cost cost = model.cost(use, *side);
      const double calls = std::max(1.0, double(slow.bytes) / aggregated);
      Advice advice = about(use, "independent-interleaved");
      advice.evidence = fmt::format("{} processes {} pieces of {} that take turns in the file, by {} independent MPI calls; {} of all", count_text(side->processes),
                                    side->write ? "write" : "read", bytes_text(side->usual_size() ? double(side->usual_size()) : slow.mean_bytes()),
                                    count_text(side->all.calls - side->collective), share_text(1 - side->share(side->collective)));
      advice.change = fmt::format("set a view and use the collective call (MPI_File_{0}_all, MPI_File_{0}_at_all; in HDF5 H5FD_MPIO_COLLECTIVE, in PnetCDF the _all "
                                  "functions): the processes' pieces become large accesses",
                                  side->write ? "write" : "read");
      advice.seconds_now = slow.seconds;
      advice.seconds_after = cost.seconds(calls, double(slow.bytes)) + double(slow.bytes) / exchange_bandwidth;
      advice.expectation = fmt::format("{}; collectively {} of a process, and its bytes once more between the processes at {}", reckoning(slow, cost),
                                       plural_text(uint64_t(calls + 0.5), "call"), rate_text(exchange_bandwidth));
      report.advice.push_back(std::move(advice));
    }
  }
}

}  // namespace holdfast::advice
