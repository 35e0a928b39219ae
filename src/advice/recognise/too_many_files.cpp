// Files cost at the metadata server, one after the other, however little is in them.
#include <fmt/format.h>

#include <algorithm>

#include "advice/recognise/common.hpp"
#include "advice/recognisers.hpp"

namespace holdfast::advice {

namespace {

// What opening and closing a file costs where nobody else does at the same time: the best that any process has seen.
double one_file_seconds(const Use& use) {
  double best = use.metadata_seconds;
  for (const auto& [rank, c] : use.ranks)
    if (c[Counter::opens])
      best = std::min(best, double(c[Counter::open_ns] + c[Counter::close_ns] + c[Counter::metadata_ns]) / 1e9 / double(c[Counter::opens]));
  return best;
}

}  // namespace

void recognise_too_many_files(const Digest& digest, const Model&, Report& report) {
  constexpr size_t many = 64;
  for (const Use& use : digest.uses) {
    if (use.files.size() < many) continue;
    const uint64_t bytes = use.total[Counter::bytes_read] + use.total[Counter::bytes_written];
    Advice advice = about(use, "too-many-files");
    advice.evidence = fmt::format("{} of {} on the mean, {}; the slowest process spends {} in opening, closing and asking about them",
                                  plural_text(use.files.size(), "file"), bytes_text(std::max(1.0, double(bytes) / double(use.files.size()))),
                                  plural_text(use.total[Counter::opens], "open"), seconds_text(use.metadata_seconds));
    advice.change = use.shared() ? "write what belongs together into one file (HDF5 and NetCDF keep many sets of data in one)"
                                 : "write one shared file, or one per node, instead of one per process";
    advice.seconds_now = use.metadata_seconds;
    advice.seconds_after = one_file_seconds(use);
    advice.expectation = fmt::format("one open file costs {} where the server is not busy", seconds_text(advice.seconds_after));
    if (use.place.lustre() && use.place.stripe_count > 1 && !use.shared())
      add_layout(advice, use, 1, std::max<uint64_t>(use.place.stripe_bytes, 1 << 20));
    report.advice.push_back(std::move(advice));
  }
}

}  // namespace holdfast::advice
