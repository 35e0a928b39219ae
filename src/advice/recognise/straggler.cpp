// Many processes move as much each, and one takes several times as long as the others: a slow device or node, for which all wait.
#include <fmt/format.h>

#include <algorithm>

#include "advice/recognise/common.hpp"
#include "advice/recognisers.hpp"
#include "base/shell_word.hpp"

namespace holdfast::advice {

namespace {

constexpr size_t least_processes = 8;
constexpr double much_slower = 4;

struct One {
  int64_t rank;
  double seconds;
  uint64_t bytes;
};

template <class Less>
One median(std::vector<One> of, Less less) {
  std::nth_element(of.begin(), of.begin() + std::ptrdiff_t(of.size() / 2), of.end(), less);
  return of[of.size() / 2];
}

// The file that this rank spent most on.
std::string file_of(const Use& use, int64_t rank) {
  const profile::FileUse* most = &use.first();
  uint64_t most_ns = 0;
  for (const profile::FileUse* file : use.files)
    for (const auto& r : file->ranks)
      if (r.rank == rank && r.counters.total_ns() > most_ns) most = file, most_ns = r.counters.total_ns();
  return most->path;
}

}  // namespace

void recognise_straggler(const Digest& digest, const Model&, Report& report) {
  for (const Use& use : digest.uses) {
    const Side& side = use.main();
    if (side.processes < least_processes || side.share(side.collective) > 0) continue;  // in a collective call all wait for the last
    std::vector<One> all;
    for (const auto& [rank, c] : use.ranks)
      if (const uint64_t bytes = c[side.write ? Counter::bytes_written : Counter::bytes_read])
        all.push_back({rank, double(c[side.write ? Counter::write_ns : Counter::read_ns]) / 1e9, bytes});
    if (all.size() < least_processes) continue;
    const double usual_seconds = median(all, [](const One& a, const One& b) { return a.seconds < b.seconds; }).seconds;
    const uint64_t usual_bytes = median(all, [](const One& a, const One& b) { return a.bytes < b.bytes; }).bytes;
    const One& slowest = *std::max_element(all.begin(), all.end(), [](const One& a, const One& b) { return a.seconds < b.seconds; });
    const auto late = std::count_if(all.begin(), all.end(), [&](const One& one) { return one.seconds > much_slower * usual_seconds; });
    const bool alike = slowest.bytes <= 2 * usual_bytes && usual_bytes <= 2 * slowest.bytes;
    if (!alike || usual_seconds <= 0 || late == 0 || size_t(late) * 4 > all.size()) continue;
    const std::string file = file_of(use, slowest.rank);
    Advice advice = about(use, "straggler");
    advice.evidence = fmt::format(
        "{} of {} {} more than {} times as long as the others for as many bytes; the slowest, rank {}, needs {} for {} of {}, "
        "and half of them need less than {}",
        late, plural_text(all.size(), "process"), late == 1 ? "needs" : "need", much_slower, slowest.rank, seconds_text(slowest.seconds),
        bytes_text(double(slowest.bytes)), file, seconds_text(usual_seconds));
    advice.change = "find out which device or node these processes have in common, leave it out, and tell those who run the machine";
    advice.seconds_now = slowest.seconds;
    advice.seconds_after = usual_seconds;
    advice.expectation = "the job waits for its slowest process: its time becomes that of the others";
    if (use.place.lustre()) advice.commands.push_back("lfs getstripe " + shell_word(file));
    report.advice.push_back(std::move(advice));
  }
}

}  // namespace holdfast::advice
