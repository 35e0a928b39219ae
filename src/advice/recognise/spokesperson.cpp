// One process does all I/O of a parallel job, the others wait: it is limited by what one process can move.
#include <fmt/format.h>

#include <algorithm>

#include "advice/recognise/common.hpp"
#include "advice/recognisers.hpp"

namespace holdfast::advice {

void recognise_spokesperson(const Digest& digest, const Model&, Report& report) {
  constexpr double nearly_all = 0.9;
  if (digest.ranks < 2 || digest.busiest_share < nearly_all || digest.busiest_rank < 0) return;
  double seconds = 0;
  uint64_t bytes = 0;
  size_t streams = digest.nodes;  // a stream a node is safe to expect; more where the devices are known
  Advice advice;
  advice.name = "spokesperson";
  for (const Use& use : digest.uses) {
    const auto found = use.ranks.find(digest.busiest_rank);
    if (found == use.ranks.end() || is_output(use, digest)) continue;
    const Counters& c = found->second;
    if (c[Counter::bytes_read] + c[Counter::bytes_written] == 0) continue;
    advice.files.push_back(use.glob);
    advice.file_count += use.files.size();
    seconds += double(c[Counter::read_ns] + c[Counter::write_ns]) / 1e9;
    bytes += c[Counter::bytes_read] + c[Counter::bytes_written];
    streams = std::max<size_t>(streams, use.place.reachable_devices());
  }
  streams = std::min(streams, digest.ranks);
  if (streams < 2) return;  // nothing that others could do besides
  advice.evidence =
      fmt::format("rank {} moves {} of the job's bytes ({}) in {}; the other {} for it", digest.busiest_rank, share_text(digest.busiest_share),
                  bytes_text(double(bytes)), seconds_text(seconds), digest.ranks == 2 ? "one waits" : count_text(digest.ranks - 1) + " wait");
  advice.change =
      "let every process write its own part of one shared file, collectively (MPI-IO, or HDF5, NetCDF, PnetCDF on it); that "
      "saves the gathering and gives the storage several streams";
  advice.seconds_now = seconds;
  advice.seconds_after = seconds / double(streams);
  advice.expectation = fmt::format("{} streams instead of one ({}): {} / {}", streams,
                                   streams > digest.nodes ? "as many as there are devices" : "one a node", seconds_text(seconds), streams);
  report.advice.push_back(std::move(advice));
}

}  // namespace holdfast::advice
