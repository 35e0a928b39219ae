// A job's log in the forms that other programs read: a table for spreadsheets, a trace for Perfetto's viewer, a page for a browser.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/log/job_page.hpp"
#include "cli/log/job_report.hpp"

namespace holdfast::cli {

namespace {

using profile::Counter;
using profile::Log;

// RFC 4180.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

double microseconds(uint64_t ns) { return double(ns) / 1000; }

std::string dump(const nlohmann::json& json) { return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }

// The viewer wants a process for each rank and a line for each file in it.
class Trace {
 public:
  explicit Trace(const Log& log) : log_(log) {}

  std::string text() {
    for (const profile::TimeLine::Row& row : log_.time_line.rows) {
      name("process_name", row.rank, 0, row.rank < 0 ? "no rank" : fmt::format("rank {}", row.rank));
      add_bandwidth(row);
    }
    for (size_t file = 0; file < log_.files.size(); ++file) add_file(file);
    for (const profile::Operation& o : log_.operations) add_operation(o);
    return fmt::format("{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\"traceEvents\":[\n{}\n]}}\n",
                       dump({{"command", command_line(log_)}, {"operations_lost", log_.operations_lost}}), fmt::join(events_, ",\n"));
  }

 private:
  void add(const nlohmann::json& event) { events_.push_back(dump(event)); }
  void name(const char* what, int64_t rank, size_t thread, const std::string& called) {
    add({{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", thread}, {"args", {{"name", called}}}});
  }

  void add_bandwidth(const profile::TimeLine::Row& row) {
    const double seconds = double(log_.time_line.step_ns) / 1e9;
    for (size_t i = 0; i < row.read.size(); ++i)
      add({{"ph", "C"},
           {"name", "MiB/s"},
           {"pid", row.rank},
           {"ts", microseconds(i * log_.time_line.step_ns)},
           {"args", {{"read", double(row.read[i]) / seconds / (1 << 20)}, {"written", double(row.written[i]) / seconds / (1 << 20)}}}});
  }

  void add_file(size_t file) {
    const profile::FileUse& f = log_.files[file];
    for (const profile::RankCounters& r : f.ranks) {
      const profile::Counters& c = r.counters;
      name("thread_name", r.rank, file + 1, f.path);
      const uint64_t begin = c[Counter::first_open];
      const uint64_t end = std::max({c[Counter::last_close], c[Counter::last_read], c[Counter::last_write]});
      if (end > begin)
        add({{"ph", "X"},
             {"name", "open"},
             {"cat", profile::interface_names[size_t(f.interface)]},
             {"pid", r.rank},
             {"tid", file + 1},
             {"ts", microseconds(begin)},
             {"dur", microseconds(end - begin)},
             {"args", {{"file", f.path}, {"bytes read", c[Counter::bytes_read]}, {"bytes written", c[Counter::bytes_written]}}}});
    }
  }

  void add_operation(const profile::Operation& o) {
    nlohmann::json arguments{{"bytes", o.bytes}};
    if (o.offset != UINT64_MAX) arguments["offset"] = o.offset;
    add({{"ph", "X"},
         {"name", profile::counter_infos[size_t(o.kind)].name},
         {"cat", "call"},
         {"pid", o.rank},
         {"tid", o.file + 1},
         {"ts", microseconds(o.begin_ns)},
         {"dur", microseconds(o.duration_ns)},
         {"args", arguments}});
  }

  const Log& log_;
  std::vector<std::string> events_;
};

}  // namespace

std::string csv_of(const Log& log) {
  std::string out = "path,interface,scheme,rank";
  for (const profile::CounterInfo& info : profile::counter_infos) out += fmt::format(",{}", info.name);
  out += "\r\n";
  for (const profile::FileUse& f : log.files)
    for (const profile::RankCounters& r : f.ranks) {
      out += fmt::format("{},{},{},{}", csv_field(f.path), profile::interface_names[size_t(f.interface)], f.scheme, r.rank);
      for (size_t i = 0; i < profile::counter_count; ++i) out += fmt::format(",{}", r.counters.at(i));
      out += "\r\n";
    }
  return out;
}

std::string trace_of(const Log& log) { return Trace(log).text(); }

std::string page_of(const Log& log) {
  profile::Log shown = log;
  shown.operations.clear();  // the page does not draw them
  std::string content;
  for (char c : profile::to_json_text(shown)) {
    if (c == '<') content += "\\u003c";  // a path with "</script>" in it ends nothing
    else content += c;
  }
  std::string page = job_page;
  const std::string_view mark = "HOLDFAST_LOG";
  return page.replace(page.find(mark), mark.size(), content);
}

}  // namespace holdfast::cli
