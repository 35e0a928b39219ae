#include "advice/digest.hpp"

#include <algorithm>
#include <set>

#include "advice/text.hpp"

namespace holdfast::advice {

namespace {

using profile::CommonValue;
using profile::FileUse;

double seconds(uint64_t ns) { return double(ns) / 1e9; }

struct Names {  // the counters of one direction
  Counter first_kind, last_kind, bytes, time, consecutive, forward, backward, misaligned, collective, ordered, end;
};
constexpr Names names_of(bool write) {
  return write ? Names{Counter::writes_independent, Counter::writes_ordered, Counter::bytes_written,   Counter::write_ns,
                       Counter::writes_consecutive, Counter::writes_forward, Counter::writes_backward, Counter::writes_misaligned,
                       Counter::writes_collective,  Counter::writes_ordered, Counter::end_of_writes}
               : Names{Counter::reads_independent, Counter::reads_ordered, Counter::bytes_read,     Counter::read_ns,
                       Counter::reads_consecutive, Counter::reads_forward, Counter::reads_backward, Counter::reads_misaligned,
                       Counter::reads_collective,  Counter::reads_ordered, Counter::end_of_reads};
}

// A stream's flush is where its writes are made.
Load load_of(const Counters& c, bool write, bool stream) {
  const Names names = names_of(write);
  return {write ? c.writes() : c.reads(), c[names.bytes], seconds(c[names.time] + (write && stream ? c[Counter::sync_ns] : 0))};
}

uint64_t bytes_of(const Counters& c) { return c[Counter::bytes_read] + c[Counter::bytes_written]; }
double metadata_of(const Counters& c) { return seconds(c[Counter::open_ns] + c[Counter::close_ns] + c[Counter::metadata_ns]); }

void join_common(std::map<int64_t, uint64_t>& into, const std::vector<CommonValue>& values) {
  for (const CommonValue& v : values) into[v.value] += v.count;
}
std::vector<CommonValue> by_count(const std::map<int64_t, uint64_t>& counts) {
  std::vector<CommonValue> out;
  for (const auto& [value, count] : counts) out.push_back({value, count});
  std::stable_sort(out.begin(), out.end(), [](const CommonValue& a, const CommonValue& b) { return a.count > b.count; });
  return out;
}

Side side_of(const Use& use, bool write, size_t job_ranks) {
  const Names names = names_of(write);
  Side side;
  side.write = write;
  const bool stream = use.first().interface == profile::Interface::stdio;
  side.all = load_of(use.total, write, stream);
  side.collective = use.total[names.collective] + use.total[names.ordered];
  side.end = use.total[names.end];
  side.consecutive = use.total[names.consecutive];
  side.forward = use.total[names.forward];
  side.backward = use.total[names.backward];
  side.misaligned = use.total[names.misaligned];
  side.by_rank = !use.ranks.empty();
  for (const auto& [rank, counters] : use.ranks) {
    const Load load = load_of(counters, write, stream);
    if (load.calls) ++side.processes;
    if (side.end && counters[names.end] == side.end && load.bytes * 2 > side.end * use.files.size()) ++side.whole;
    if (load.seconds > side.slowest.seconds || (load.seconds == side.slowest.seconds && load.calls > side.slowest.calls)) side.slowest = load;
  }
  if (use.ranks.empty() && side.all.calls) {  // the log has only sums: all processes that opened it did the same
    side.processes = std::max<size_t>(1, std::min<size_t>(job_ranks, use.total[Counter::opens] / use.files.size()));
    side.slowest = {std::max<uint64_t>(1, side.all.calls / side.processes), side.all.bytes / side.processes,
                    side.all.seconds / double(side.processes)};
  }
  std::map<int64_t, uint64_t> sizes, strides;
  for (const FileUse* file : use.files) {
    join_common(sizes, write ? file->write_sizes : file->read_sizes);
    join_common(strides, write ? file->write_strides : file->read_strides);
  }
  side.sizes = by_count(sizes), side.strides = by_count(strides);
  return side;
}

size_t processes_of(const FileUse& file, size_t job_ranks) {
  if (file.ranks.empty()) return std::max<size_t>(1, std::min<size_t>(job_ranks, file.total[Counter::opens]));
  return size_t(std::count_if(file.ranks.begin(), file.ranks.end(), [](const auto& r) { return bytes_of(r.counters) > 0; }));
}

void complete(Use& use, size_t job_ranks) {
  for (const FileUse* file : use.files) {
    use.total.merge(file->total);
    for (const auto& r : file->ranks) use.ranks[r.rank].merge(r.counters);
    use.most_processes_a_file = std::max(use.most_processes_a_file, processes_of(*file, job_ranks));
  }
  use.reads = side_of(use, false, job_ranks);
  use.writes = side_of(use, true, job_ranks);
  for (const auto& [rank, counters] : use.ranks) {
    if (bytes_of(counters)) ++use.processes;
    use.metadata_seconds = std::max(use.metadata_seconds, metadata_of(counters));
  }
  if (use.ranks.empty()) {
    use.processes = std::max(use.reads.processes, use.writes.processes);
    use.metadata_seconds = metadata_of(use.total) / double(std::max<size_t>(1, use.processes));
  }
}

// Files whose paths differ in numbers only, used through the same interface under the same scheme.
std::string key_of(const FileUse& file) {
  return std::string(profile::interface_names[size_t(file.interface)]) + (file.ranks.empty() ? "-" : "+") + file.scheme + '\0' +
         glob_over_numbers(file.path);
}

// Only of the numbers that differ: what lies beside in other runs' directories is not meant.
std::string glob_over(const std::vector<const FileUse*>& files) {
  if (files.size() == 1) return files[0]->path;
  std::vector<std::string_view> paths;
  for (const FileUse* file : files) paths.push_back(file->path);
  return glob_over_paths(paths);
}

void find_uses(Digest& digest, const Site& site) {
  std::map<std::string, size_t> known;
  for (const FileUse& file : digest.log->files) {
    const auto [found, fresh] = known.emplace(key_of(file), digest.uses.size());
    if (fresh) digest.uses.emplace_back();
    digest.uses[found->second].files.push_back(&file);
  }
  for (Use& use : digest.uses) {
    use.glob = glob_over(use.files);
    use.place = site.place_of(use.first().path);
    complete(use, digest.ranks);
  }
  std::stable_sort(digest.uses.begin(), digest.uses.end(), [](const Use& a, const Use& b) { return bytes_of(a.total) > bytes_of(b.total); });
}

void find_ranks(Digest& digest) {
  std::map<int64_t, uint64_t> bytes, time;
  uint64_t all = 0;
  double without_ranks = 0;
  for (const Use& use : digest.uses) {
    for (const auto& [rank, counters] : use.ranks) {
      bytes[rank] += bytes_of(counters);
      time[rank] += counters.total_ns();
    }
    all += bytes_of(use.total);
    if (use.ranks.empty()) without_ranks += use.data_seconds() + use.metadata_seconds;
  }
  for (const auto& [rank, moved] : bytes)
    if (all && double(moved) / double(all) > digest.busiest_share) digest.busiest_rank = rank, digest.busiest_share = double(moved) / double(all);
  for (const auto& [rank, ns] : time) digest.io_seconds = std::max(digest.io_seconds, seconds(ns));
  digest.io_seconds += without_ranks;
}

}  // namespace

uint64_t Side::usual_size() const { return !sizes.empty() && sizes[0].value > 0 && sizes[0].count * 2 >= all.calls ? uint64_t(sizes[0].value) : 0; }
int64_t Side::usual_stride() const { return !strides.empty() && strides[0].count * 2 >= all.calls ? strides[0].value : 0; }

std::string Use::directory() const {
  const std::string& path = first().path;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

Digest digest(const profile::Log& log, const Site& site) {
  Digest out;
  out.log = &log;
  out.ranks = std::max<size_t>(1, log.job.ranks);
  std::set<std::string> nodes(log.job.nodes.begin(), log.job.nodes.end());
  out.nodes = std::max<size_t>(1, nodes.size());
  find_uses(out, site);
  find_ranks(out);
  uint64_t duration = log.job.duration_ns;
  for (const profile::Process& p : log.processes) duration = std::max(duration, p.start_ns + p.duration_ns);
  out.job_seconds = std::max(seconds(duration), out.io_seconds);
  return out;
}

}  // namespace holdfast::advice
