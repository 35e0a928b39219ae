// A shared file whose stripes do not fit what the processes write: an access that crosses stripes goes to several devices, and a stripe of
// several processes is contended for. Layout #1 (each process's part lies together, 32 or 64 MB) wants stripes of the part, layout #2 (pieces
// of 1 or 2 MB take turns) stripes of the piece.
#include <fmt/format.h>

#include <algorithm>

#include "advice/recognise/common.hpp"
#include "advice/recognisers.hpp"

namespace holdfast::advice {

namespace {

constexpr uint64_t grain = 64 << 10, largest = 64ull << 20;

struct Shape {
  int number = 0;     // of the layout; 0: neither
  uint64_t part = 0;  // that lies together, in bytes
};

Shape shape_of(const Side& side, double rounds) {
  if (side.share(side.consecutive) >= 0.8) return {1, uint64_t(double(side.slowest.bytes) / rounds)};
  const uint64_t size = side.usual_size();
  const int64_t stride = side.usual_stride();
  // One access a process: its part is that access.
  if (size && side.slowest.calls == 1) return {1, size};
  if (size && stride >= int64_t(size) * 2) return {2, size};
  return {};
}

// The largest stripe up to 64 MiB that cuts the part evenly, else one of 32 MiB.
uint64_t fitting_stripe(uint64_t part) {
  if (part <= largest) return std::max(grain, (part + grain - 1) / grain * grain);
  for (uint64_t stripe = largest; stripe >= 16ull << 20; stripe -= grain)
    if (part % stripe == 0) return stripe;
  return 32ull << 20;
}

}  // namespace

void recognise_shared_file_layout(const Digest& digest, const Model& model, Report& report) {
  for (const Use& use : digest.uses) {
    const Side& side = use.main();
    if (!use.shared() || !use.place.striped() || side.processes < 2) continue;
    const double rounds = side.rounds(use.files.size());
    if (rounds == 0) continue;
    const Shape shape = shape_of(side, rounds);
    if (shape.number == 0 || shape.part < grain) continue;
    const uint64_t wanted = fitting_stripe(shape.part), now = use.place.stripe_bytes;
    const double access = side.slowest.mean_bytes();
    const double pieces_now = pieces(access, now, side.share(side.misaligned)), pieces_then = pieces(access, wanted, 0);
    if (wanted == now || pieces_then >= pieces_now) continue;
    const Cost cost = model.cost(use, side);
    const double waiting = cost.latency * double(side.slowest.calls);
    Advice advice = about(use, "shared-file-layout");
    advice.evidence =
        fmt::format("layout #{}: {}, {} that lie together, stripes of {}: an access of {} goes to {:.3g} places", shape.number,
                    plural_text(side.processes, "process"), bytes_text(double(shape.part)), bytes_text(double(now)), bytes_text(access), pieces_now);
    advice.change =
        fmt::format("stripes of {}, so that {} of a process {} on one device", bytes_text(double(wanted)), shape.number == 1 ? "the part" : "a piece",
                    shape.number == 1 && shape.part > wanted ? "lies in large stretches" : "lies");
    advice.seconds_now = side.slowest.seconds;
    advice.seconds_after = side.slowest.seconds - waiting * (1 - pieces_then / pieces_now);
    advice.expectation = fmt::format("{}; the calls' part goes with the places of an access, {:.3g} to {:.3g}", reckoning(side.slowest, cost),
                                     pieces_now, pieces_then);
    add_layout(advice, use, use.place.stripe_count, wanted);
    report.advice.push_back(std::move(advice));
  }
}

}  // namespace holdfast::advice
