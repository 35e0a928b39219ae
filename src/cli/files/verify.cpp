// holdfast verify PATH…: reads everything, checks every checksum and every row's code, names every damage.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/say.hpp"
#include "base/shell_word.hpp"
#include "cli/command.hpp"
#include "cli/files/report.hpp"
#include "cli/files/versions.hpp"
#include "cli/output.hpp"
#include "engine/plausible.hpp"

namespace holdfast::cli {

namespace {

constexpr size_t findings_shown = 20;

struct VerifyOptions {
  std::vector<std::string> paths;
  bool json = false, all = false;
  SettingsOptions settings;
};

nlohmann::json json_of_finding(const engine::Finding& f) {
  nlohmann::json out = {{"row", f.row}, {"what", f.what}, {"detail", f.detail}};
  if (f.unit >= 0) out["unit"] = f.unit;
  if (f.member >= 0) out["member"] = f.member;
  return out;
}

nlohmann::json json_of_report(const engine::VerifyReport& r) {
  nlohmann::json out = json_of(r.status);
  out["verified"] = {{"rows", r.rows},        {"units", r.units}, {"bytes", r.bytes}, {"lost_rows", r.lost_rows}, {"finding_count", r.finding_count},
                     {"complete", !r.stopped}};
  out["findings"] = nlohmann::json::array();
  for (const engine::Finding& f : r.findings) out["findings"].push_back(json_of_finding(f));
  return out;
}

void print_findings(const engine::VerifyReport& r, bool all) {
  if (r.findings.empty()) return;
  Table table({">row", ">unit", ">target", "what", "detail"});
  const size_t shown = all ? r.findings.size() : std::min(findings_shown, r.findings.size());
  for (size_t i = 0; i < shown; ++i) {
    const engine::Finding& f = r.findings[i];
    table.add({std::to_string(f.row), f.unit < 0 ? "-" : std::to_string(f.unit), f.member < 0 ? "-" : std::to_string(f.member), f.what, f.detail},
              {Colour::none, Colour::none, Colour::none, Colour::warn});
  }
  show("  {}\n", damages_in(r) ? "damage" : "out of reach");
  table.print("    ");
  if (shown < r.finding_count) show("    and {} more ({})\n", r.finding_count - shown, all ? "the list ends at 10000" : "--all lists them");
}

void print_report(const engine::VerifyReport& r, bool all) {
  print_status(r.status, r.finding_count == 0);
  // What is out of reach is named by now; of damage nothing is known.
  if (r.status.health == engine::Health::unknown && r.units == 0) return show("  nothing of it can be read until more targets answer\n");
  print_findings(r, all);
  const auto unseen = uint64_t(std::count_if(r.status.members.begin(), r.status.members.end(), [](const engine::MemberReport& m) {
    return m.state == "lost" || m.state == "unreached" || m.state == "stale";
  }));
  std::string verdict = "every checksum and every row's code is right";
  if (unseen) verdict = fmt::format("every checksum is right, but {} could not be read", plural(unseen, "target"));
  const uint64_t damages = damages_in(r);
  if (damages) verdict = fmt::format("{} found", plural(damages, "damage"));
  if (r.lost_rows) verdict += fmt::format(", {} cannot be rebuilt from what is reachable", plural(r.lost_rows, "row"));
  show("  read {} in {} of {}: {}\n", human_bytes(r.bytes), plural(r.units, "unit"), plural(r.rows, "row"), verdict);
  if (r.finding_count && !r.lost_rows) show("  mend: holdfast repair {}\n", shell_word(r.status.manifest.path));
  if (r.stopped) show("  stopped before the end: what was not read is not judged\n");
}

Result<engine::VerifyReport> verify_one(const std::string& path, const Settings& settings) {
  auto located = catalog::locate(path_from_here(path), settings);
  if (!located) return or_of_checkpoint(path, located.status(), Asked::check, settings);
  HF_TRY(engine::check_plausible(*located, settings));
  ProgressBar bar("verify " + path);
  return engine::verify(*located, settings, bar.callback());
}

int verify(const VerifyOptions& options) {
  auto settings = options.settings.load();
  if (!settings) return fail(settings.status());
  FileReports reports(options.json);
  for (const std::string& path : options.paths) {
    if (interrupted()) break;
    auto report = verify_one(path, *settings);
    if (report) reports.found(code_of(*report), json_of_report(*report), [&] { print_report(*report, options.all); });
    else reports.failed(path, report.status());
  }
  return reports.end();
}

}  // namespace

void add_verify(CLI::App& app, int& code) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* sub = app.add_subcommand("verify", "Read everything; check every checksum and every row's code");
  sub->add_option("PATH", options->paths, "Protected files")->required()->type_name("");
  sub->add_flag("--json", options->json, "The same facts for a machine");
  sub->add_flag("--all", options->all, "List every damage found, not the first 20");
  options->settings.add_finding(*sub);
  sub->footer(
      "Example:\n  holdfast verify out.dat\n"
      "Exit status: 0 all is right, 1 damage that can be repaired, 2 data is lost, 3 any other error.");
  sub->callback([options, &code] { code = verify(*options); });
}

}  // namespace holdfast::cli
