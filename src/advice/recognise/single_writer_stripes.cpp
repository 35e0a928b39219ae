// One process gains nothing from many devices: each of its accesses is cut into pieces that go to several of them, one process long. One
// stripe of 32 MB or more, and transfers as large, keep its bytes together.
#include <fmt/format.h>

#include <algorithm>

#include "advice/recognise/common.hpp"
#include "advice/recognisers.hpp"

namespace holdfast::advice {

void recognise_single_writer_stripes(const Digest& digest, const Model& model, Report& report) {
  constexpr uint64_t together = 32ull << 20;
  for (const Use& use : digest.uses) {
    const Side& side = use.main();
    const Place& place = use.place;
    if (use.shared() || !place.striped() || side.slowest.bytes == 0 || side.slowest.mean_bytes() < small_bytes) continue;
    const double access = side.slowest.mean_bytes();
    const bool small_transfers = access < double(together) && side.share(side.consecutive) > 0.6;
    if (place.stripe_count < 2 && !(small_transfers && place.stripe_bytes < together)) continue;
    const Cost cost = model.cost(use, side);
    const double now = double(side.slowest.calls) * pieces(access, place.stripe_bytes, side.share(side.misaligned));
    const double then = small_transfers ? double(side.slowest.bytes) / double(together) : double(side.slowest.calls) * pieces(access, together, 0);
    if (then >= now) continue;
    Advice advice = about(use, "single-writer-stripes");
    advice.evidence =
        fmt::format("{} {} {} in transfers of {}; it lies on {} in stripes of {}, so its bytes go out in {}",
                    use.files.size() > 1 ? "a process alone" : "one process", side.verb(), bytes_text(double(side.slowest.bytes)), bytes_text(access),
                    plural_text(place.stripe_count, "device"), bytes_text(double(place.stripe_bytes)), plural_text(uint64_t(now + 0.5), "piece"));
    advice.change = fmt::format("keep a file of one process on one device, in stripes of {}{}", bytes_text(double(together)),
                                small_transfers ? ", and let it move as much at once" : "");
    advice.seconds_now = side.slowest.seconds;
    advice.seconds_after = side.slowest.seconds - cost.latency * double(side.slowest.calls) * (1 - then / now);
    advice.expectation = fmt::format("{}; the calls' part goes with the pieces, {} to {}", reckoning(side.slowest, cost),
                                     count_text(uint64_t(now + 0.5)), count_text(uint64_t(then + 0.5)));
    add_layout(advice, use, 1, together);
    if (use.is_protected()) advice.settings.clear();  // its units want several devices
    if (small_transfers && !use.mpi()) add_buffers(advice, use, {4, together});
    report.advice.push_back(std::move(advice));
  }
}

}  // namespace holdfast::advice
