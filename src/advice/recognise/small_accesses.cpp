// Many small reads or writes of a file by one process after the other's end: each pays a call's latency. Buffers gather them (the field's
// example: 1 GB in writes of 512 bytes, 1080 s; 4.5 s through buffers of 64 MB).
#include <fmt/format.h>

#include "advice/recognise/common.hpp"
#include "advice/recognisers.hpp"

namespace holdfast::advice {

namespace {

constexpr uint64_t several = 64;  // calls of one process
constexpr double mostly = 0.6;    // of them go on behind the one before
constexpr uint64_t per_open = 8;  // else there is little to gather before the file is closed

void look_at(const Use& use, const Side& side, const Digest& digest, const Model& model, Report& report) {
  const Load& slow = side.slowest;
  if (slow.calls < several || slow.mean_bytes() >= small_bytes || slow.bytes == 0) return;
  if (side.all.calls < per_open * use.total[Counter::opens]) return;
  const double onward = side.share(side.consecutive);
  if (onward < mostly) return;
  const Cost cost = model.cost(use, side);
  const Buffers buffers = buffers_for(digest, side, cost);
  const double large = double(slow.bytes) / double(buffers.bytes);
  Advice advice = about(use, "small-accesses");
  advice.evidence = fmt::format("{} calls {} {} in pieces of {}, {} of them right behind the one before; a call costs {}, of which the bytes need {}",
                                count_text(side.all.calls), side.write ? "write" : "read", bytes_text(double(side.all.bytes)),
                                bytes_text(side.usual_size() ? double(side.usual_size()) : slow.mean_bytes()), share_text(onward),
                                seconds_text(slow.seconds / double(slow.calls)), seconds_text(slow.mean_bytes() / cost.bandwidth));
  const std::string fewer =
      fmt::format("{} instead of {}", plural_text(uint64_t(large + 1), side.write ? "large write" : "large read"), count_text(slow.calls));
  if (!use.shared())
    advice.change = fmt::format("gather them in {} buffers of {} in each process: {}", buffers.number, bytes_text(double(buffers.bytes)), fewer);
  else
    advice.change = fmt::format(
        "let each process {} in pieces of {}: {}; or use the collective calls of MPI-IO (Holdfast's own buffers are for files "
        "of one process)",
        side.write ? "gather its own part in memory and write it" : "read its own part", bytes_text(double(buffers.bytes)), fewer);
  expect_of_buffers(advice, use, side, cost, buffers);
  report.advice.push_back(std::move(advice));
}

}  // namespace

void recognise_small_accesses(const Digest& digest, const Model& model, Report& report) {
  for (const Use& use : digest.uses) {
    if (use.mpi() || is_byte_swapped(use) || is_output(use, digest)) continue;
    look_at(use, use.writes, digest, model, report);
    look_at(use, use.reads, digest, model, report);
  }
}

}  // namespace holdfast::advice
