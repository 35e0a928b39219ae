#include <fmt/format.h>

#include <cmath>

#include "advice/recognise/common.hpp"
#include "advice/recognisers.hpp"
#include "advice/text.hpp"

namespace holdfast::advice {

namespace {

std::string moved(const Use& use) {
  std::string out;
  for (const Side* side : {&use.writes, &use.reads}) {
    if (side->all.calls == 0) continue;
    if (!out.empty()) out += ", ";
    out += fmt::format("{} {} in {} of {} on the mean", side->write ? "writes" : "reads", bytes_text(double(side->all.bytes)),
                       plural_text(side->all.calls, "call"), bytes_text(std::round(side->all.mean_bytes())));
  }
  return out;
}

// The two layouts of a shared file: #1, a process's bytes lie together; #2, the processes' pieces take turns.
std::string layout_of(const Use& use) {
  const Side& side = use.main();
  if (!use.shared() || side.processes < 2) return "";
  const size_t files = use.files.size();
  const double rounds = side.rounds(files);
  if (side.same_bytes(files)) return fmt::format("; the processes {} the same bytes", side.write ? "write" : "read");
  if (rounds == 0) return fmt::format("; its bytes are {} {:.2g} times", side.write ? "written" : "read", side.times(files));
  const std::string again = rounds > 1 ? fmt::format(", {} {:.2g} times", side.write ? "written" : "read", rounds) : "";
  const double part = double(side.slowest.bytes) / rounds;
  constexpr double a_part = 4096;  // less is no layout
  if (side.share(side.consecutive) >= 0.8 && part >= a_part)
    return fmt::format("; each process's part lies together (layout #1, {} a process{})", bytes_text(part), again);
  const uint64_t size = side.usual_size();
  const int64_t stride = side.usual_stride();
  if (size && stride >= int64_t(size) * 2)
    return fmt::format("; pieces of {} of the processes take turns (layout #2, {} from one of a process to its next{})", bytes_text(double(size)),
                       bytes_text(double(stride)), again);
  return "";
}

Pattern pattern_of(const Use& use, const Digest& digest) {
  const size_t files = use.files.size();
  if (is_standard(use.first().path))
    return {"standard-output", use.glob, fmt::format("{} of {}: {}", count_text(use.processes), plural_text(digest.ranks, "process"), moved(use))};
  if (digest.ranks == 1) return {"one-process", use.glob, moved(use)};
  if (use.processes == 1 && files == 1) return {"one-writer", use.glob, fmt::format("one process of {} {}", digest.ranks, moved(use))};
  if (!use.shared())
    return {"file-per-process", use.glob,
            fmt::format("{} of {}, none shared: {}", plural_text(files, "file"), plural_text(use.processes, "process"), moved(use))};
  if (files == 1)
    return {"single-shared-file", use.glob, fmt::format("{} share it: {}{}", plural_text(use.processes, "process"), moved(use), layout_of(use))};
  return {"several-shared-files", use.glob,
          fmt::format("{}, each of up to {}: {}{}", plural_text(files, "file"), plural_text(use.most_processes_a_file, "process"), moved(use),
                      layout_of(use))};
}

}  // namespace

void find_patterns(const Digest& digest, Report& report) {
  if (digest.ranks > 1 && digest.busiest_share >= 0.9 && digest.busiest_rank >= 0)
    report.patterns.push_back(
        {"spokesperson", "",
         fmt::format("rank {} of {} moves {} of all bytes", digest.busiest_rank, count_text(digest.ranks), share_text(digest.busiest_share))});
  for (const Use& use : digest.uses)
    if (use.reads.all.calls || use.writes.all.calls) report.patterns.push_back(pattern_of(use, digest));
}

}  // namespace holdfast::advice
