// "Task 64000, made it through loop": lines of text from every process go through one stream, one after the other.
#include <fmt/format.h>

#include "advice/recognise/common.hpp"
#include "advice/recognisers.hpp"

namespace holdfast::advice {

void recognise_debugging_output(const Digest& digest, const Model&, Report& report) {
  constexpr double gathered_line = 2e-6;  // seconds of a process for a line that goes into a pipe
  constexpr uint64_t talkative = 64;      // lines of a process: fewer are slow only where a pipe's reader was busy once
  for (const Use& use : digest.uses) {
    const Side& writes = use.writes;
    if (!is_output(use, digest) || writes.processes < 2 || writes.slowest.calls < talkative) continue;
    const bool standard = is_standard(use.first().path);
    Advice advice = about(use, "debugging-output");
    advice.evidence = fmt::format("{} write {} of text of {} on the mean", plural_text(writes.processes, "process"),
                                  plural_text(writes.all.calls, "piece"), bytes_text(std::max(1.0, writes.all.mean_bytes())));
    advice.change = "switch messages of single processes off in production, or let rank 0 alone speak; what has to stay is ";
    if (standard || use.shared()) advice.change += "gathered into one file of the job with --gather-output FILE, lines whole, with rank and time";
    else
      advice.change +=
          "gathered in buffers, which a killed process takes with it, or printed to standard output and gathered with --gather-output FILE";
    advice.seconds_now = writes.slowest.seconds;
    advice.seconds_after = std::min(writes.slowest.seconds, double(writes.slowest.calls) * gathered_line);
    advice.expectation = fmt::format("a line that is gathered costs its process {}", seconds_text(gathered_line));
    if (standard) advice.settings.push_back({"gather_output", {"job.out"}, false});
    else if (!use.shared()) add_buffers(advice, use, {});
    report.advice.push_back(std::move(advice));
  }
}

}  // namespace holdfast::advice
