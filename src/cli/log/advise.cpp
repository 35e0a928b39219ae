// holdfast advise: what a job could do better, from its log; and the settings for it.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "advice/advice.hpp"
#include "advice/text.hpp"
#include "base/say.hpp"
#include "base/shell_word.hpp"
#include "catalog/user_files.hpp"
#include "cli/command.hpp"
#include "cli/log/darshan.hpp"
#include "cli/log/job_log.hpp"
#include "cli/log/job_report.hpp"
#include "cli/log/settings_file.hpp"
#include "cli/log/site.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {

namespace {

namespace ad = holdfast::advice;

struct AdviseOptions {
  std::string log, apply_to;
  CLI::Option* apply = nullptr;
  double threshold = 2;  // percent of the job's time
  bool json = false;
  SiteOptions site;
};

// Lines of at most `width` bytes, all behind `indent`; the first line behind `label`.
void print_wrapped(const std::string& label, const std::string& text) {
  constexpr size_t width = 100;
  const std::string indent(label.size(), ' ');
  std::string line = label;
  bool fresh = true;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!fresh && line.size() + 1 + word.size() > width) {
      show("{}\n", line);
      line = indent, fresh = true;
    }
    line += (fresh ? "" : " ") + word;
    fresh = false;
    at = end + 1;
  }
  show("{}\n", line);
}

std::string option_of(const ad::Setting& setting) {
  std::string name = setting.key, out;
  std::replace(name.begin(), name.end(), '_', '-');
  for (const std::string& value : setting.values) out += fmt::format(" --{} {}", name, shell_word(value));
  return out;
}

void print_advice(size_t number, const ad::Advice& advice) {
  const std::string files = fmt::format("{}", fmt::join(advice.files, ", "));
  show("\n{}\n", coloured(fmt::format("{}. {}{}: {} -> {} ({} saved)", number, advice.name, files.empty() ? "" : ": " + files,
                                      ad::seconds_text(advice.seconds_now), ad::seconds_text(advice.seconds_after), ad::seconds_text(advice.saved())),
                          Colour::good));
  print_wrapped("   seen:     ", advice.evidence + ".");
  print_wrapped("   change:   ", advice.change + ".");
  const double factor = std::min(advice.factor(), 1e6);
  const std::string times = factor < 1000 ? fmt::format("{:.3g}", factor) : ad::count_text(uint64_t(factor));
  print_wrapped("   expected: ", fmt::format("{} times faster there: {}.", times, advice.expectation));
  for (const std::string& command : advice.commands) show("   command:  {}\n", command);
  std::string options;
  for (const ad::Setting& setting : advice.settings) options += option_of(setting);
  if (!options.empty()) show("   Holdfast: holdfast run{} ...\n", options);
}

void print_report(const profile::Log& log, const ad::Report& report) {
  const std::string who = is_empty(log) ? "" : ad::plural_text(log.job.ranks, "process") + ", ";
  show("{}: {}{}, {} of them in calls on files\n", log.job.program.empty() ? "a job" : log.job.program, who, ad::seconds_text(report.job_seconds),
       ad::seconds_text(report.io_seconds));
  constexpr size_t most_patterns = 12;
  for (size_t i = 0; i < report.patterns.size() && i < most_patterns; ++i) {
    const ad::Pattern& p = report.patterns[i];
    show("  {}{}{}\n", p.name, p.files.empty() ? "" : ": ", p.files);
    print_wrapped("      ", p.words);
  }
  if (report.patterns.size() > most_patterns) show("  and {} more\n", report.patterns.size() - most_patterns);
  if (report.patterns.empty()) show("nothing can be said: the log holds no reads or writes of files\n");
  else if (report.advice.empty())
    show("nothing to change: {}\n",
         report.too_small ? "what could be better would save less than the threshold" : "nothing that is slow by itself was seen");
  for (size_t i = 0; i < report.advice.size(); ++i) print_advice(i + 1, report.advice[i]);
  if (report.advice.size() > 1) show("\nEach gain is reckoned by itself; together they are not their sum.\n");
  for (const std::string& ask : report.asks) print_wrapped("? ", ask);
}

nlohmann::json json_of_advice(const ad::Advice& a) {
  nlohmann::json settings = nlohmann::json::object();
  for (const ad::Setting& s : a.settings) settings[s.key] = s.list ? nlohmann::json(s.values) : nlohmann::json(s.values[0]);
  return {{"name", a.name},
          {"files", a.files},
          {"file_count", a.file_count},
          {"evidence", a.evidence},
          {"change", a.change},
          {"expectation", a.expectation},
          {"seconds_now", a.seconds_now},
          {"seconds_after", a.seconds_after},
          {"seconds_saved", a.saved()},
          {"factor", a.factor()},
          {"settings", settings},
          {"commands", a.commands}};
}

nlohmann::json json_of_report(const ad::Report& report) {
  nlohmann::json patterns = nlohmann::json::array(), advice = nlohmann::json::array();
  for (const ad::Pattern& p : report.patterns) patterns.push_back({{"name", p.name}, {"files", p.files}, {"words", p.words}});
  for (const ad::Advice& a : report.advice) advice.push_back(json_of_advice(a));
  return {{"job_seconds", report.job_seconds},   {"io_seconds", report.io_seconds}, {"patterns", patterns}, {"advice", advice},
          {"below_threshold", report.too_small}, {"not_known", report.asks}};
}

int apply(const AdviseOptions& options, const ad::Report& report, nlohmann::json& json) {
  const std::string file = options.apply_to.empty() ? "holdfast.toml" : options.apply_to;
  const auto settings = ad::settings_of(report);
  auto written = write_settings(file, settings);
  if (!written) return fail(written.status());
  json["written"] = {{"file", file}, {"lines", written->lines}, {"left_out", written->left_out}};
  if (options.json) return exit_ok;
  show("\n");
  for (const std::string& sentence : written->left_out) print_wrapped("left out: ", sentence);
  if (written->lines.empty()) {
    show("nothing is written to {}: {}\n", file, settings.empty() ? "there is nothing that Holdfast could set" : "see above");
    return exit_ok;
  }
  show("written to {}:\n", file);
  for (const std::string& line : written->lines) show("  {}\n", line);
  const bool by_itself = options.apply_to.empty();
  show("'holdfast run{} ...' uses it{}; 'holdfast run --measure{} ...' shows the gain.\n", by_itself ? "" : " --config " + shell_word(file),
       by_itself ? " from this directory on" : "", by_itself ? "" : " --config " + shell_word(file));
  return exit_ok;
}

Result<ForeignLog> read_any_log(const std::string& path) {
  constexpr uint64_t most_bytes = 1ull << 30;
  if (is_darshan_log(path)) return read_darshan_log(path);
  if (path.ends_with(".json")) {  // as 'holdfast report --json' has it
    const auto text = catalog::read_small(path, most_bytes);
    if (!text) return text.status();
    auto log = profile::from_json_text(*text);
    if (!log) return log.status();
    return ForeignLog{std::move(*log), {}};
  }
  auto log = read_job_log(path);
  if (!log) return log.status();
  return ForeignLog{std::move(*log), {}};
}

int advise(const AdviseOptions& options) {
  auto read = read_any_log(options.log);
  if (!read) return fail_for(options.log, read.status());
  auto site = look_at_site(read->log, options.site, read->site);
  if (!site) return fail(site.status());
  const ad::Report report = ad::advise(read->log, *site, {.least_share = options.threshold / 100});
  nlohmann::json json = json_of_report(report);
  if (!options.json) print_report(read->log, report);
  int code = exit_ok;
  if (options.apply->count()) code = apply(options, report, json);
  if (options.json && code == exit_ok) print_json(json);
  return code;
}

}  // namespace

void add_advise(CLI::App& app, int& code) {
  auto options = std::make_shared<AdviseOptions>();
  CLI::App* sub = app.add_subcommand("advise", "Say what a job could do better, from its log, and set what Holdfast can");
  sub->add_option("LOG", options->log,
                  "A job's log ('holdfast run --log FILE'), its JSON ('holdfast report --json'; *.json), or one of Darshan's (*.darshan)")
      ->required()
      ->type_name("");
  options->apply = sub->add_option("--apply", options->apply_to, "Write the settings to FILE (holdfast.toml), keeping what is there")
                       ->expected(0, 1)
                       ->type_name("[FILE]");
  sub->add_option("--threshold", options->threshold, "Least gain worth saying, in percent of the job's time (2)")
      ->check(CLI::Range(0.0, 100.0))
      ->type_name("PERCENT");
  options->site.add(*sub);
  sub->add_flag("--json", options->json, "The same facts for a machine");
  sub->footer(
      "Example:\n  holdfast run --log job.hflog mpirun -n 4 ./app\n  holdfast advise job.hflog --apply\n  holdfast run --measure mpirun -n 4 ./app\n"
      "Nothing is advised that would save less than the threshold and 0.05 s.");
  sub->callback([options, &code] { code = advise(*options); });
}

}  // namespace holdfast::cli
