// "Task 64000, made it through loop": lines of text from every process go through one stream, one after the other.
#include <fmt/format.h>

#include "advice/recognise/common.hpp"
#include "advice/recognisers.hpp"

namespace holdfast::advice {

void recognise_debugging_output(const Digest& digest, const Model&, Report& report) {
  constexpr double gathered_line = 2e-6;  // seconds of a process for a line that goes into a pipe
  for (const Use& use : digest.uses) {
    const Side& writes = use.writes;
    if (!is_output(use, digest) || writes.processes < 2) continue;
    Advice advice = about(use, "debugging-output");
    advice.evidence = fmt::format("{} processes write {} pieces of text of {} on the mean", count_text(writes.processes), count_text(writes.all.calls),
                                  bytes_text(std::max(1.0, writes.all.mean_bytes())));
    advice.change = "switch messages of single processes off in production, or let rank 0 alone speak; what has to stay is gathered into one file of the job with "
                    "--gather-output FILE, lines whole, with rank and time";
    advice.seconds_now = writes.slowest.seconds;
    advice.seconds_after = std::min(writes.slowest.seconds, double(writes.slowest.calls) * gathered_line);
    advice.expectation = fmt::format("a gathered line costs its process {}", seconds_text(gathered_line));
    const std::string name = use.first().path.substr(use.first().path.rfind('/') + 1);
    const bool standard = name.starts_with('<') || use.first().path.starts_with("/dev/");
    if (standard) advice.settings.push_back({"gather_output", {"job.out"}, false});
    report.advice.push_back(std::move(advice));
  }
}

}  // namespace holdfast::advice
