// Accesses that begin off the file system's units touch one unit more each, and with other processes beside them its lock.
#include <fmt/format.h>

#include "advice/recognise/common.hpp"
#include "advice/recognisers.hpp"

namespace holdfast::advice {

void recognise_unaligned_accesses(const Digest& digest, const Model& model, Report& report) {
  for (const Use& use : digest.uses) {
    const uint64_t unit = use.place.striped() ? use.place.stripe_bytes : use.first().alignment;
    const Side& side = use.main();
    const Load& slow = side.slowest;
    const double off = side.share(side.misaligned);
    // Small pieces that go on one behind the other want buffers, not alignment; the kernel's own memory does not care.
    if (unit < 2 || off < 0.5 || slow.mean_bytes() < double(unit) / 2 || use.place.local()) continue;
    const Cost cost = model.cost(use, side);
    const double now = pieces(slow.mean_bytes(), unit, off), then = pieces(slow.mean_bytes(), unit, 0);
    Advice advice = about(use, "unaligned-accesses");
    advice.evidence = fmt::format("{} of {} {} begin off the units of {}: {:.3g} units each instead of {:.3g}", share_text(off),
                                  count_text(side.all.calls), side.verb(), bytes_text(double(unit)), now, then);
    advice.change = fmt::format(
        "let each access begin at a multiple of {}: pad a header, align what libraries write (H5Pset_alignment, nc_header_align_size), or choose a "
        "unit that divides the program's own size",
        bytes_text(double(unit)));
    advice.seconds_now = slow.seconds;
    advice.seconds_after = slow.seconds - cost.latency * double(slow.calls) * (1 - then / now);
    advice.expectation = fmt::format("{}; the calls' part goes with the units, {:.3g} to {:.3g}", reckoning(slow, cost), now, then);
    report.advice.push_back(std::move(advice));
  }
}

}  // namespace holdfast::advice
