#include "cli/job/measure.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "advice/digest.hpp"
#include "advice/text.hpp"
#include "base/say.hpp"
#include "base/shell_word.hpp"
#include "catalog/user_files.hpp"
#include "cli/command.hpp"
#include "cli/job/job_environment.hpp"
#include "cli/log/job.hpp"
#include "cli/log/job_log.hpp"

namespace holdfast::cli {

namespace {

using advice::seconds_text;

// What makes a program faster or slower and nothing else: the first run goes without.
Settings without_advice(Settings settings) {
  const Settings fresh;
  settings.buffers = fresh.buffers;
  settings.buffer_size = fresh.buffer_size;
  settings.buffer_flush = fresh.buffer_flush;
  settings.buffer_flush_ms = fresh.buffer_flush_ms;
  settings.cb_nodes = fresh.cb_nodes;
  settings.gather_output = fresh.gather_output;
  settings.striping_unit = fresh.striping_unit;
  settings.striping_factor = fresh.striping_factor;
  return settings;
}

struct Run {
  std::string log;
  int code = 0;
  double seconds = 0, io_seconds = 0;
};

// The settings go by the environment, so the command line of the run is its log, its library and the command.
int start(const Settings& settings, const Measure& what, const std::string& log) {
  put_into_environment(settings);
  const auto self = catalog::read_link("/proc/self/exe");
  if (!self) return -1;
  std::vector<std::string> command{*self, "run", "--log", log};
  if (!what.library.empty()) command.insert(command.end(), {"--library", what.library});
  command.emplace_back("--");
  command.insert(command.end(), what.command.begin(), what.command.end());
  return run_to_end(command);
}

Status read_times(Run& run) {
  auto log = read_job_log(run.log);
  if (!log) return Status(log.status().kind(), "the run left no profile to measure by: " + log.status().sentence());
  const advice::Digest digest = advice::digest(*log, {});
  run.seconds = digest.job_seconds, run.io_seconds = digest.io_seconds;
  return Status();
}

std::string differences(const Settings& first, const Settings& second) {
  std::vector<std::string> words;
  const auto without = first.environment();
  for (const auto& [name, value] : second.environment()) {
    const auto there = without.find(name);
    if (there == without.end() || there->second != value) words.push_back(fmt::format("{}={}", name, value));
  }
  return fmt::format("{}", fmt::join(words, " "));
}

// The globs are the same in both runs, and say for which files the settings are.
std::string of_which_files(const Settings& settings) {
  return settings.path_globs.empty() ? "" : fmt::format("  (files: {})", fmt::join(settings.path_globs, ", "));
}

double times_faster(double before, double after) { return after > 0 ? before / after : 0; }

std::string times_text(const Run& run) {
  const std::string in_calls = run.io_seconds > 0 ? fmt::format(", {} of it in calls on files", seconds_text(run.io_seconds)) : "";
  return fmt::format("{}{}  (holdfast report {})", seconds_text(run.seconds), in_calls, shell_word(run.log));
}

void print(const Run& before, const Run& after, const std::string& settings) {
  const double saved = before.seconds - after.seconds;
  std::string gain = fmt::format("{}{}, {:.3g} times as fast", seconds_text(std::abs(saved)), saved < 0 ? " lost" : " saved",
                                 times_faster(before.seconds, after.seconds));
  if (before.io_seconds > 0 && after.io_seconds > 0)
    gain += fmt::format("; calls on files {:.3g} times as fast", times_faster(before.io_seconds, after.io_seconds));
  say("holdfast: measured, one run after the other:\n  without   {}\n  with      {}\n  settings  {}\n  gain      {}\n", times_text(before),
      times_text(after), settings, gain);
}

nlohmann::json json_of(const Run& run) {
  return {{"log", run.log}, {"exit_code", run.code}, {"seconds", run.seconds}, {"io_seconds", run.io_seconds}};
}

}  // namespace

int measure(const Settings& settings, const Measure& what) {
  constexpr int refused = exit_lost;
  const Settings bare = without_advice(settings);
  const std::string settings_text = differences(bare, settings);
  if (settings_text.empty())
    return fail(Status(Kind::invalid,
                       "there is nothing to measure: no buffers, aggregators, striping or gathered output are set; 'holdfast advise LOG --apply' "
                       "sets what a job can use"),
                refused);
  const std::string place = settings.log_directory.empty() ? "" : settings.log_directory + "/";
  const std::string name = path_from_here(what.log.empty() ? fmt::format("{}measure-{}", place, ::getpid()) : what.log);
  Run before{name + ".before", 0, 0, 0}, after{name + ".after", 0, 0, 0};
  for (Run* run : {&before, &after}) {
    const bool first = run == &before;
    run->code = start(first ? bare : settings, what, run->log);
    if (run->code < 0) return fail(Status::from_errno(errno, "holdfast itself cannot be started again"), refused);
    if (run->code != 0) {
      say("holdfast: the run {} the settings ended with {}: {}\n", first ? "without" : "with", run->code,
          first ? "the one with them is not begun" : "nothing is compared");
      return run->code;
    }
    if (Status read = read_times(*run); !read) return fail(read);
  }
  if (what.json)
    show("{}\n", nlohmann::json({{"before", json_of(before)},
                                 {"after", json_of(after)},
                                 {"settings", settings_text},
                                 {"times_faster", times_faster(before.seconds, after.seconds)},
                                 {"io_times_faster", times_faster(before.io_seconds, after.io_seconds)}})
                     .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  else print(before, after, settings_text + of_which_files(settings));
  return exit_ok;
}

}  // namespace holdfast::cli
