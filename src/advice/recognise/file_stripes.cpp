// A shared file is as fast as the devices that it is spread over: time ~ 1 / min(stripe count, processes). (The field's example: 377 GB on
// 6000 processes, from 4 stripes to as many as a file may have: 1800 s to 625 s.)
#include <fmt/format.h>

#include <algorithm>

#include "advice/recognise/common.hpp"
#include "advice/recognisers.hpp"

namespace holdfast::advice {

void recognise_file_stripes(const Digest& digest, const Model&, Report& report) {
  constexpr double large_enough = 64 << 10;  // smaller accesses wait for their calls, not for the devices
  for (const Use& use : digest.uses) {
    const Place& place = use.place;
    if (!use.shared() || place.stripe_count == 0) continue;
    const Side& side = use.main();
    if (side.all.mean_bytes() < large_enough && side.share(side.collective) < 0.5) continue;
    if (place.reachable_devices() == 0) {
      report.asks.push_back(fmt::format("{} lies on {} of the {} file system; how many there are is not known: --devices N", use.glob,
                                        plural_text(place.stripe_count, "device"), place.file_system));
      continue;
    }
    const uint32_t now = uint32_t(std::min<size_t>(place.stripe_count, use.processes));
    const uint32_t wanted = uint32_t(std::min<size_t>(place.reachable_devices(), use.processes));
    if (wanted <= now) continue;
    Advice advice = about(use, "file-stripes");
    advice.evidence =
        fmt::format("{} share {}, which is spread over {} of {}; they move {} in {}", plural_text(use.processes, "process"),
                    use.files.size() > 1 ? "each file" : "the file", place.stripe_count, plural_text(place.reachable_devices(), "device"),
                    bytes_text(double(use.total[Counter::bytes_read] + use.total[Counter::bytes_written])), seconds_text(use.data_seconds()));
    const bool all = wanted == place.reachable_devices();
    advice.change =
        fmt::format("spread it over {}{} devices; a layout is for new files, so set it for the directory before the program creates the file",
                    all ? "all " : "", wanted);
    advice.seconds_now = use.data_seconds();
    advice.seconds_after = use.data_seconds() * double(now) / double(wanted);
    advice.expectation = fmt::format("the time of the transfers goes with 1 / min(stripe count, processes): {} x {} / {}",
                                     seconds_text(advice.seconds_now), now, wanted);
    add_layout(advice, use, all ? 0 : wanted, place.stripe_bytes ? place.stripe_bytes : 1 << 20);
    if (all && use.is_protected()) advice.settings.push_back({"striping_factor", {std::to_string(wanted)}, false});
    report.advice.push_back(std::move(advice));
  }
}

}  // namespace holdfast::advice
