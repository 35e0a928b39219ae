// The same file opened and closed again and again by the same process: around every write, or to ask about it.
#include <fmt/format.h>

#include <algorithm>

#include "advice/recognise/common.hpp"
#include "advice/recognisers.hpp"

namespace holdfast::advice {

void recognise_repeated_opens(const Digest& digest, const Model&, Report& report) {
  constexpr double often = 8;
  for (const Use& use : digest.uses) {
    // One open a process and file is what it takes.
    double needed = 0;
    for (const profile::FileUse* file : use.files) needed += double(std::max<size_t>(1, file->ranks.size()));
    const double opens = double(use.total[Counter::opens]);
    if (use.total[Counter::opens] < 2 || use.ranks.empty() || opens < often * needed) continue;
    const uint64_t accesses = use.reads.all.calls + use.writes.all.calls;
    Advice advice = about(use, "repeated-opens");
    advice.evidence =
        fmt::format("{} where {} would do, one for every {:.3g} reads and writes; the slowest process spends {} in them",
                    plural_text(uint64_t(opens), "open"), count_text(uint64_t(needed)), double(accesses) / opens, seconds_text(use.metadata_seconds));
    advice.change =
        "open the file once and keep it open; a flush shows others what was written, and a library's file handle can be kept "
        "in the program's state";
    advice.seconds_now = use.metadata_seconds;
    advice.seconds_after = use.metadata_seconds * needed / opens;
    advice.expectation =
        fmt::format("the time in opens and closes goes with their number: {} x {:.0f} / {:.0f}", seconds_text(use.metadata_seconds), needed, opens);
    report.advice.push_back(std::move(advice));
  }
}

}  // namespace holdfast::advice
