// holdfast status PATH…: layout, size and health, without reading the data.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/say.hpp"
#include "cli/command.hpp"
#include "cli/files/merge_parts.hpp"
#include "cli/files/report.hpp"
#include "cli/files/versions.hpp"
#include "cli/output.hpp"
#include "cli/redundant/teams.hpp"

namespace holdfast::cli {

namespace {
struct StatusOptions {
  std::vector<std::string> paths;
  bool json = false, job = false;
  SettingsOptions settings;
};

int status(const StatusOptions& options) {
  if (options.job) return show_job(options.json);
  if (options.paths.empty()) return fail(Status(Kind::invalid, "name a protected file, or --job; see: holdfast status --help"));
  auto settings = options.settings.load();
  if (!settings) return fail(settings.status());
  FileReports reports(options.json);
  for (const std::string& path : options.paths) {
    auto located = catalog::locate(path_from_here(path), *settings);
    const auto version = located ? std::nullopt : version_at(path, *settings);
    auto report = located   ? engine::file_status(*located, *settings)
                  : version ? status_of_version(version->manifest, *settings)
                            : Result<engine::FileStatus>(located.status());
    if (const std::string said = report ? "" : said_of_parts(path_from_here(path)); !said.empty()) {
      reports.found(exit_degraded, {{"path", path_from_here(path)}, {"health", "not joined"}, {"sentence", said}}, [&] { show("{}\n", said); });
      continue;
    }
    if (!report) {
      reports.failed(path, report.status());
      continue;
    }
    reports.found(code_of(report->health), json_of(*report), [&] { print_status(*report); });
  }
  return reports.end();
}
}  // namespace

void add_status(CLI::App& app, int& code) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* sub = app.add_subcommand("status", "Show layout, size and the health of each target");
  sub->add_option("PATH", options->paths, "Protected files")->type_name("");
  sub->add_flag("--job", options->job, "The newest job of holdfast run --replicas: teams, ranks, processes, and what was lost");
  sub->add_flag("--json", options->json, "The same facts for a machine");
  options->settings.add_finding(*sub);
  sub->footer(
      "Example:\n  holdfast status out.dat\nExit status: 0 healthy, 1 degraded, 2 lost, 3 unknown (agents do not answer) or any other error.");
  sub->callback([options, &code] { code = status(*options); });
}

}  // namespace holdfast::cli
