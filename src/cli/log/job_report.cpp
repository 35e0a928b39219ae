// holdfast report LOG: what a job did with its files.
#include "cli/log/job_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/say.hpp"
#include "cli/command.hpp"
#include "cli/log/job_log.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {

namespace {

using profile::Counter;
using profile::Counters;
using profile::FileUse;
using profile::Log;

constexpr double kMiB = 1 << 20;

std::string ending(const profile::Job& job) {
  if (job.exit_code >= 0) return fmt::format("exit status {}", job.exit_code) + (job.complete ? "" : ", not all processes ended in order");
  return "did not end in order";
}

// What IOBUF's tables show: one line for each kind of call.
class CallTable {
 public:
  CallTable() : table_({"", ">Calls", ">Seconds", ">MiB", ">MiB/s", ">Avg size"}) {}

  void add(const char* name, uint64_t calls, uint64_t ns) {
    if (calls) table_.add({name, std::to_string(calls), fmt::format("{:.6f}", seconds_of(ns)), "", "", ""});
  }
  void add(const char* name, uint64_t calls, uint64_t ns, uint64_t bytes) {
    if (!calls) return;
    const double mib = double(bytes) / kMiB, seconds = seconds_of(ns);
    table_.add({name, std::to_string(calls), fmt::format("{:.6f}", seconds), fmt::format("{:.6f}", mib),
                seconds > 0 ? fmt::format("{:.3f}", mib / seconds) : "-", std::to_string(bytes / calls)});
  }
  void fact(const char* name, uint64_t value, const std::string& more = "") {
    if (value) table_.add({name, std::to_string(value), more});
  }
  void print() const { table_.print("    "); }

 private:
  Table table_;
};

void print_calls(const Counters& c) {
  CallTable table;
  table.add("Open", c[Counter::opens], c[Counter::open_ns]);
  table.add("Read", c.reads(), c[Counter::read_ns], c[Counter::bytes_read]);
  table.add("Write", c.writes(), c[Counter::write_ns], c[Counter::bytes_written]);
  table.add("Sync", c[Counter::syncs], c[Counter::sync_ns]);
  table.add("Metadata", c.metadata() - c[Counter::opens] - c[Counter::closes], c[Counter::metadata_ns]);
  table.add("Close", c[Counter::closes], c[Counter::close_ns]);
  table.add("Total", c.calls(), c.total_ns(), c[Counter::bytes_read] + c[Counter::bytes_written]);
  table.add("Sys Read", c[Counter::system_reads], c[Counter::system_read_ns], c[Counter::system_read_bytes]);
  table.add("Sys Write", c[Counter::system_writes], c[Counter::system_write_ns], c[Counter::system_write_bytes]);
  table.add("Sys Sync", c[Counter::system_syncs], c[Counter::system_sync_ns]);
  table.fact("Buffers used", c[Counter::buffers_used], fmt::format("({})", human_bytes(c[Counter::buffer_bytes])));
  table.fact("Prefetches", c[Counter::prefetches]);
  table.fact("Preflushes", c[Counter::preflushes]);
  table.fact("Read-modify-writes", c[Counter::read_modify_writes]);
  table.fact("Failed calls", c[Counter::failures]);
  table.print();
}

std::string percent(uint64_t part, uint64_t whole) { return whole ? fmt::format("{:.0f} %", 100.0 * double(part) / double(whole)) : "-"; }

std::string common_text(const std::vector<profile::CommonValue>& values, size_t most) {
  std::string out;
  for (size_t i = 0; i < std::min(most, values.size()); ++i)
    out += fmt::format("{}{} ({})", i ? ", " : "", values[i].value, plural(values[i].count, "time"));
  return out;
}

void print_sizes(const char* verb, const Counters& c, bool write, const std::vector<profile::CommonValue>& common) {
  const uint64_t calls = write ? c.writes() : c.reads();
  if (!calls) return;
  std::string line;
  for (size_t i = 0; i < profile::size_buckets; ++i)
    if (const uint64_t count = write ? c.write_size(i) : c.read_size(i))
      line += fmt::format("{}{} {}", line.empty() ? "" : ", ", profile::size_names[i], percent(count, calls));
  show("    {} sizes: {}; most often {} bytes\n", verb, line, common.empty() ? "?" : common_text(common, 3));
}

void print_pattern(const char* verb, const FileUse& f, bool write) {
  const Counters& c = f.total;
  const uint64_t calls = write ? c.writes() : c.reads();
  const uint64_t consecutive = c[write ? Counter::writes_consecutive : Counter::reads_consecutive];
  const uint64_t forward = c[write ? Counter::writes_forward : Counter::reads_forward];
  const uint64_t backward = c[write ? Counter::writes_backward : Counter::reads_backward];
  if (!calls) return;
  std::string line =
      fmt::format("{} consecutive, {} forward, {} backward", percent(consecutive, calls), percent(forward, calls), percent(backward, calls));
  const auto& strides = write ? f.write_strides : f.read_strides;
  if (forward + backward && !strides.empty()) line += "; strides " + common_text(strides, 2);
  const uint64_t misaligned = c[write ? Counter::writes_misaligned : Counter::reads_misaligned];
  if (f.alignment) line += fmt::format("; {} not at a multiple of {}", percent(misaligned, calls), human_bytes(f.alignment));
  show("    {} places: {}\n", verb, line);
}

// Only where there is something to tell apart.
void print_kinds(const FileUse& f) {
  const Counters& c = f.total;
  std::string line;
  auto add = [&](const char* name, Counter reads, Counter writes) {
    if (const uint64_t calls = c[reads] + c[writes]) line += fmt::format("{}{} {}", line.empty() ? "" : ", ", name, calls);
  };
  add("collective", Counter::reads_collective, Counter::writes_collective);
  add("independent", Counter::reads_independent, Counter::writes_independent);
  add("shared pointer", Counter::reads_shared, Counter::writes_shared);
  add("ordered", Counter::reads_ordered, Counter::writes_ordered);
  const bool by_pointer = c[Counter::reads_shared] + c[Counter::writes_shared] + c[Counter::reads_ordered] + c[Counter::writes_ordered] != 0;
  if (by_pointer && !f.pointer.empty()) line += fmt::format(" (served by {})", f.pointer);
  add("of these nonblocking", Counter::reads_nonblocking, Counter::writes_nonblocking);
  add("split", Counter::reads_split, Counter::writes_split);
  if (!line.empty() && f.interface == profile::Interface::mpiio) show("    accesses: {}\n", line);
}

// A plain stream's are made inside the C library.
void print_what_is_not_known(const FileUse& f) {
  const Counters& c = f.total;
  if (f.interface != profile::Interface::stdio || c.reads() + c.writes() == 0 || c[Counter::system_reads] + c[Counter::system_writes]) return;
  show("    the system's calls are not known: the C library makes those of a plain stream itself\n");
}

// Times of several ranks and of calls side by side are added up, so a layer's can exceed that above it.
void print_layers(const FileUse& f) {
  const uint64_t all = f.total.total_ns(), layer = f.total[Counter::layer_ns], system = f.total.system_ns();
  if (!layer) return;
  const auto [layer_name, below] = f.scheme.empty() ? std::pair("in Holdfast's buffers", "the system's calls, some of them beside the program,")
                                                    : std::pair("in the protected layer", "its calls on targets, side by side,");
  show("    layers: {:.3f} s in calls, of these {:.3f} s {}; {} took {:.3f} s\n", seconds_of(all), seconds_of(layer), layer_name, below,
       seconds_of(system));
}

void print_ranks(const FileUse& f) {
  if (f.ranks.size() < 2) return;
  const auto *slow = f.slowest(), *fast = f.fastest();
  show("    slowest rank {}: {:.6f} s, {}; fastest rank {}: {:.6f} s, {}\n", slow->rank, seconds_of(slow->counters.total_ns()),
       human_bytes(slow->counters[Counter::bytes_read] + slow->counters[Counter::bytes_written]), fast->rank, seconds_of(fast->counters.total_ns()),
       human_bytes(fast->counters[Counter::bytes_read] + fast->counters[Counter::bytes_written]));
}

void print_file(const FileUse& f) {
  show("\nFile \"{}\" ({}{}{}, {})\n", f.path, profile::interface_names[size_t(f.interface)], f.scheme.empty() ? "" : ", ", f.scheme,
       plural(f.ranks.size(), "rank"));
  print_calls(f.total);
  print_what_is_not_known(f);
  print_kinds(f);
  print_sizes("read", f.total, false, f.read_sizes);
  print_sizes("write", f.total, true, f.write_sizes);
  print_pattern("read", f, false);
  print_pattern("write", f, true);
  print_layers(f);
  print_ranks(f);
}

void print_overview(const Log& log) {
  Table table({"file", "interface", "scheme", ">ranks", ">calls", ">read", ">written", ">seconds"});
  for (const FileUse& f : log.files)
    table.add({f.path, std::string(profile::interface_names[size_t(f.interface)]), f.scheme.empty() ? "-" : f.scheme, std::to_string(f.ranks.size()),
               std::to_string(f.total.calls()), human_bytes(f.total[Counter::bytes_read]), human_bytes(f.total[Counter::bytes_written]),
               fmt::format("{:.3f}", seconds_of(f.total.total_ns()))});
  table.print("  ");
}

struct JobReportOptions {
  std::string log;
  size_t files = 5;
  bool json = false, csv = false;
  std::string html, trace;
};

int report(const JobReportOptions& options) {
  const auto log = read_job_log(options.log);
  if (!log) return fail(log.status());
  for (const auto& [path, text] : {std::pair{&options.html, &page_of}, std::pair{&options.trace, &trace_of}}) {
    if (path->empty()) continue;
    if (const Status written = write_text(*path, text(*log)); !written) return fail(written);
  }
  if (options.json) print_json(nlohmann::json::parse(profile::to_json_text(*log), nullptr, false));
  else if (options.csv) show("{}", csv_of(*log));
  else if (options.html.empty() && options.trace.empty()) print_job(*log, options.files);
  return exit_ok;
}

}  // namespace

double seconds_of(uint64_t ns) { return double(ns) / 1e9; }

std::string command_line(const Log& log) {
  return log.job.command.empty() ? (log.job.program.empty() ? "a job that ran without 'holdfast run'" : log.job.program)
                                 : fmt::format("{}", fmt::join(log.job.command, " "));
}

bool is_empty(const Log& log) { return log.files.empty() && log.processes.empty(); }

std::string job_line(const Log& log) {
  const profile::Job& job = log.job;
  std::string who = plural(job.ranks, "rank");
  if (is_empty(log)) who = "no process used a file that is counted";
  else if (!job.nodes.empty()) who += " on " + plural(job.nodes.size(), "node");
  if (!job.mpi.empty()) who += " with " + job.mpi;
  return fmt::format("{}, {}, {:.3f} s, {}", who, local_time(job.start_ns, "%Y-%m-%d %H:%M:%S"), seconds_of(job.duration_ns), ending(job));
}

double share_of_ranks_time(const Log& log, uint64_t ns) {
  return log.job.duration_ns ? 100.0 * double(ns) / double(log.job.duration_ns) / std::max(1u, log.job.ranks) : 0;
}

// Where somebody asked for it: what the ranks say to each other, beside what they do with files.
void print_mpi_calls(const Log& log) {
  profile::MpiUses sums;
  uint64_t calls = 0, ns = 0, asked = 0;
  for (const profile::Process& process : log.processes) {
    if (!process.mpi_calls) continue;
    ++asked;
    for (size_t i = 0; i < sums.size(); ++i) {
      const profile::MpiUse& one = (*process.mpi_calls)[i];
      sums[i].calls += one.calls, sums[i].ns += one.ns;
      calls += one.calls, ns += one.ns;
    }
  }
  if (!asked) return;
  std::string parts;
  for (size_t i = 0; i < sums.size(); ++i)
    if (sums[i].calls)
      parts += fmt::format("{}{} {:.1f} % in {}", parts.empty() ? ": " : ", ", profile::mpi_calls_names[i], share_of_ranks_time(log, sums[i].ns),
                           plural(sums[i].calls, "call"));
  show("  {:.1f} % of the ranks' time in {} of MPI that are not about files{}\n", share_of_ranks_time(log, ns), plural(calls, "call"), parts);
}

void print_job(const Log& log, size_t files) {
  Counters all;
  for (const FileUse& f : log.files) all.merge(f.total);
  show("{}\n  {}\n", command_line(log), job_line(log));
  if (!is_empty(log))
    show("  {}, {} read and {} written; {:.1f} % of the ranks' time in file calls\n", plural(log.files.size(), "file"),
         human_bytes(all[Counter::bytes_read]), human_bytes(all[Counter::bytes_written]), share_of_ranks_time(log, all.total_ns()));
  print_mpi_calls(log);
  if (log.job.damaged_pieces) show("  {} could not be read: what its process did is missing\n", plural(log.job.damaged_pieces, "piece"));
  if (log.files.empty()) return;
  show("\n");
  print_overview(log);
  for (size_t i = 0; i < std::min(files, log.files.size()); ++i) print_file(log.files[i]);
  if (files < log.files.size()) show("\n{} more; --files {} shows all\n", plural(log.files.size() - files, "file"), log.files.size());
}

void add_report(CLI::App& app, int& code) {
  auto options = std::make_shared<JobReportOptions>();
  CLI::App* sub = app.add_subcommand("report", "Show what a profiled job did with its files");
  sub->add_option("LOG", options->log, "A job's log, or the directory NAME.pieces of one that was killed with its 'holdfast run'")->required();
  sub->add_option("--files", options->files, "How many files to show in full (5), those with most bytes first")->type_name("N");
  sub->add_flag("--json", options->json, "All that the log holds, for a machine; docs/format-log.md has the fields");
  sub->add_flag("--csv", options->csv, "A line for each file and rank, a column for each counter")->excludes("--json");
  sub->add_option("--html", options->html, "Write a page with plots, all in this one file")->type_name("FILE");
  sub->add_option("--trace", options->trace, "Write a trace for Perfetto's viewer (ui.perfetto.dev); single calls are in it after 'run --trace'")
      ->type_name("FILE");
  sub->footer(
      "Example:\n  holdfast report app.hflog\n"
      "  holdfast report app.hflog --html app.html\n"
      "Logs come from 'holdfast run --log FILE' or 'holdfast run --profile'.");
  sub->callback([options, &code] { code = report(*options); });
}

}  // namespace holdfast::cli
