// In a collective call some processes, the aggregators, write for all. Fewer than the file's stripes leave devices idle; many more than those
// cut what a call writes into small accesses that queue up at the same devices.
#include <fmt/format.h>

#include <algorithm>

#include "advice/recognise/common.hpp"
#include "advice/recognisers.hpp"

namespace holdfast::advice {

namespace {

struct Aggregators {
  size_t number = 0;
  const char* known_by = "";
};

// A log that counted the calls below MPI-IO as well shows who made them. Else: of a protected file all ranks, of others one a node, which is
// what MPIs do by themselves.
Aggregators aggregators_of(const Digest& digest, const Use& use) {
  for (const Use& below : digest.uses)
    if (!below.mpi() && below.glob == use.glob && below.processes > 0) return {below.most_processes_a_file, "as the calls below MPI-IO show"};
  if (use.is_protected()) return {use.processes, "all processes, as nothing else was asked for"};
  return {std::min(digest.nodes, use.processes), "one a node, as MPIs do by themselves"};
}

}  // namespace

void recognise_aggregators(const Digest& digest, const Model& model, Report& report) {
  for (const Use& use : digest.uses) {
    const Side& side = use.main();
    const size_t stripes = use.place.stripe_count;
    if (!use.mpi() || !use.shared() || !use.place.striped() || side.share(side.collective) < 0.5) continue;
    const Aggregators now = aggregators_of(digest, use);
    const size_t wanted = std::min(stripes, use.processes);
    if (now.number == wanted || now.number == 0) continue;
    const double a_call = double(side.all.bytes) * double(use.processes) / double(std::max<uint64_t>(1, side.all.calls));
    const double piece = a_call / double(now.number);
    const bool few = now.number < wanted;
    // Pieces of whole stripes are none too small, whoever writes them.
    if (!few && piece >= double(use.place.stripe_bytes)) continue;
    const Cost cost = model.cost(use, side);
    Advice advice = about(use, "aggregators");
    advice.evidence = fmt::format("{} write and read collectively, {} through {} of them ({}); the file lies on {} in stripes of {}",
                                  plural_text(use.processes, "process"), few ? "only" : "each call", count_text(now.number), now.known_by,
                                  plural_text(stripes, "device"), bytes_text(double(use.place.stripe_bytes)));
    advice.change = fmt::format("{}, one a device: the hint cb_nodes, or --cb-nodes {}", plural_text(wanted, "aggregator"), wanted);
    advice.seconds_now = side.slowest.seconds;
    if (few) {
      advice.seconds_after = side.slowest.seconds * double(now.number) / double(wanted);
      advice.expectation =
          fmt::format("transfers go with 1 / min(devices, aggregators): {} x {} / {}", seconds_text(side.slowest.seconds), now.number, wanted);
    } else {
      const double waiting = cost.latency * double(side.slowest.calls);
      advice.seconds_after = side.slowest.seconds - waiting * (1 - double(wanted) / double(now.number));
      advice.expectation = fmt::format("{}; the calls' part goes with the pieces that a call is cut into, {} of {} to {}",
                                       reckoning(side.slowest, cost), now.number, bytes_text(piece), wanted);
    }
    advice.settings.push_back({"cb_nodes", {std::to_string(wanted)}, false});
    report.advice.push_back(std::move(advice));
  }
}

}  // namespace holdfast::advice
