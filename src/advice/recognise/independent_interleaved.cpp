// Small pieces of many processes that take turns in a shared file, each written by a call of its own. Collective calls gather them into large
// accesses of a few processes. Of plain calls only those that keep one distance count. A program that looks up records here and there has nothing to
// write or read together.
#include <fmt/format.h>

#include <algorithm>

#include "advice/recognise/common.hpp"
#include "advice/recognisers.hpp"

namespace holdfast::advice {

namespace {

bool takes_turns(const Use& use, const Side& side) {
  if (side.share(side.forward + side.backward) < 0.5) return false;
  return use.mpi() || (side.usual_size() && side.usual_stride() >= 2 * int64_t(side.usual_size()));
}

// A log that counted the calls below MPI-IO as well has them beside the program's.
bool is_below_mpi(const Use& use, const Digest& digest) {
  return !use.mpi() && std::any_of(digest.uses.begin(), digest.uses.end(), [&](const Use& above) { return above.mpi() && above.glob == use.glob; });
}

}  // namespace

void recognise_independent_interleaved(const Digest& digest, const Model& model, Report& report) {
  constexpr double aggregated = 16 << 20;     // bytes that a collective call's aggregators move at once
  constexpr double exchange_bandwidth = 1e9;  // between the processes of a node's job, assumed
  for (const Use& use : digest.uses) {
    if (is_below_mpi(use, digest)) continue;
    for (const Side* side : {&use.writes, &use.reads}) {
      const Load& slow = side->slowest;
      if (!use.shared() || side->processes < 2 || slow.calls < 16 || slow.mean_bytes() >= small_bytes || !takes_turns(use, *side)) continue;
      if (side->share(side->collective) > 0.5) continue;
      const Cost cost = model.cost(use, *side);
      const double calls = std::max(1.0, double(slow.bytes) / aggregated);
      Advice advice = about(use, "independent-interleaved");
      advice.evidence =
          fmt::format("{} {} pieces of {} that take turns in the file, by {} {} calls; {} of all", plural_text(side->processes, "process"),
                      side->write ? "write" : "read", bytes_text(side->usual_size() ? double(side->usual_size()) : slow.mean_bytes()),
                      count_text(side->all.calls - side->collective), use.mpi() ? "independent MPI" : "plain",
                      share_text(1 - side->share(side->collective)));
      advice.change = fmt::format(
          "{0}set a view and use the collective call (MPI_File_{1}_all, MPI_File_{1}_at_all; in HDF5 "
          "H5FD_MPIO_COLLECTIVE, in PnetCDF the _all functions): the processes' pieces become large accesses",
          use.mpi() ? "" : "open it by MPI-IO, ", side->write ? "write" : "read");
      advice.seconds_now = slow.seconds;
      advice.seconds_after = cost.seconds(calls, double(slow.bytes)) + double(slow.bytes) / exchange_bandwidth;
      advice.expectation = fmt::format("{}; collectively {} of a process, and its bytes once more between the processes at {}", reckoning(slow, cost),
                                       plural_text(uint64_t(calls + 0.5), "call"), rate_text(exchange_bandwidth));
      report.advice.push_back(std::move(advice));
    }
  }
}

}  // namespace holdfast::advice
