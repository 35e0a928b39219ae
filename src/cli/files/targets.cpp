// holdfast targets [PATH…]: each target's reachability, space and what it holds.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/say.hpp"
#include "cli/command.hpp"
#include "cli/files/report.hpp"
#include "cli/files/sets.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {

namespace {

struct TargetsOptions {
  std::vector<std::string> paths;
  bool json = false;
  SettingsOptions settings;
};

struct TargetRow {
  std::string path, uuid;
  Status state;
  target::Space space;
  uint64_t files = 0;        // that have units here
  uint64_t stale_files = 0;  // of them, those that must be repaired here
};

struct SetReport {
  catalog::TargetSet set;
  std::vector<TargetRow> rows;
  std::vector<layout::Manifest> files;
};

TargetRow look_at(const catalog::Member& member) {
  TargetRow row{member.path, member.uuid, member.lost, {}, 0, 0};
  if (!member.usable()) return row;
  // The closure outlives a call that hangs, so it owns what it writes to.
  auto space = std::make_shared<target::Space>();
  row.state = member.lane->run([target = member.target, space] {
    HF_TRY(target->check_identity());
    auto found = target->space();
    if (!found) return found.status();
    *space = *found;
    return Status();
  });
  if (row.state) row.space = *space;
  return row;
}

Result<SetReport> look_at_set(catalog::TargetSet set) {
  SetReport report;
  for (const catalog::Member& member : set.members) report.rows.push_back(look_at(member));
  auto files = catalog::list_set(set);
  if (files) report.files = std::move(*files);
  for (const layout::Manifest& file : report.files)
    for (const layout::ManifestMember& m : file.members)
      for (TargetRow& row : report.rows)
        if (row.path == m.path) row.files += 1, row.stale_files += m.stale;
  report.set = std::move(set);
  return report;
}

nlohmann::json json_of_set(const SetReport& r) {
  nlohmann::json targets = nlohmann::json::array(), files = nlohmann::json::array();
  for (const TargetRow& row : r.rows) {
    nlohmann::json target = {
        {"path", row.path}, {"uuid", row.uuid}, {"state", row.state ? "ok" : "lost"}, {"files", row.files}, {"stale_files", row.stale_files}};
    if (row.state) target["total_bytes"] = row.space.total_bytes, target["free_bytes"] = row.space.free_bytes;
    else target["why"] = row.state.sentence();
    targets.push_back(std::move(target));
  }
  for (const layout::Manifest& m : r.files) files.push_back({{"path", m.path}, {"size", m.size}, {"scheme", m.geometry.scheme.name()}});
  return {{"set_id", r.set.id}, {"epoch", r.set.epoch}, {"targets", targets}, {"files", files}};
}

void print_set(const SetReport& r) {
  uint64_t bytes = 0;
  for (const layout::Manifest& m : r.files) bytes += m.size;
  const std::string what =
      r.set.pool ? fmt::format("pool {}", r.set.id.substr(0, 8)) : fmt::format("set {} (epoch {})", r.set.id.substr(0, 8), r.set.epoch);
  show("{}: {} in {}, {}\n", what, human_bytes(bytes), plural(r.files.size(), "file"), plural(r.rows.size(), "target"));
  Table table({">#", "target", "state", ">free", ">of", ">files", "why"});
  for (size_t i = 0; i < r.rows.size(); ++i) {
    const TargetRow& row = r.rows[i];
    std::string why = row.state.sentence();
    if (why.starts_with(row.path + ": ")) why.erase(0, row.path.size() + 2);
    if (row.state && row.stale_files) why = fmt::format("{} to repair here", plural(row.stale_files, "file"));
    table.add({std::to_string(i), row.path, row.state ? "ok" : "lost", row.state ? human_bytes(row.space.free_bytes) : "-",
               row.state ? human_bytes(row.space.total_bytes) : "-", std::to_string(row.files), why},
              {Colour::none, Colour::none, row.state ? Colour::good : Colour::bad});
  }
  table.print();
}

// A path may be a target itself, or a protected file whose targets are meant.
Result<catalog::TargetSet> set_of(const std::string& path, const Settings& settings) {
  if (is_target(path)) return open_set({path}, settings);
  auto located = catalog::locate(path, settings);
  if (!located) return located.status();
  std::vector<std::string> members;
  for (const catalog::Member& m : located->members)
    if (m.usable() || located->manifest.pool) members.push_back(m.path);
  if (located->single()) return Status(Kind::unsupported, fmt::format("{} is kept in its own directory, not on targets: see holdfast status", path));
  return open_set(members, settings);
}

// Of a pool each file, and whoever asks, means other directories.
std::string key_of(const catalog::TargetSet& set) {
  std::string key = set.id;
  for (const catalog::Member& member : set.members)
    if (set.pool) key += "," + member.path;
  return key;
}

int targets(const TargetsOptions& options) {
  auto settings = options.settings.load();
  if (!settings) return fail(settings.status());
  if (options.paths.empty() && settings->targets.empty())
    return fail(Status(Kind::invalid, "no targets named: give --targets DIR,… or a protected file's path"));
  std::map<std::string, catalog::TargetSet> sets;  // by id: several paths may share one
  int code = exit_ok;
  auto take = [&](const std::string& name, Result<catalog::TargetSet> set) {
    if (set) sets.emplace(key_of(*set), std::move(*set));
    else code = std::max(code, fail_for(name, set.status()));
  };
  for (const std::string& path : options.paths) take(path, set_of(path_from_here(path), *settings));
  if (options.paths.empty()) take(settings->targets.front(), open_set(settings->targets, *settings));

  nlohmann::json out = nlohmann::json::array();
  for (auto& [id, set] : sets) {
    auto report = look_at_set(std::move(set));
    if (!report) return fail(report.status());
    if (std::any_of(report->rows.begin(), report->rows.end(), [](const TargetRow& r) { return !r.state || r.stale_files; }))
      code = std::max<int>(code, exit_degraded);
    if (options.json) out.push_back(json_of_set(*report));
    else print_set(*report);
  }
  if (options.json) print_json({{"sets", out}});
  return code;
}

}  // namespace

void add_targets(CLI::App& app, int& code) {
  auto options = std::make_shared<TargetsOptions>();
  CLI::App* sub = app.add_subcommand("targets", "Show every target's reachability, space and what it holds");
  sub->add_option("PATH", options->paths, "Targets, or protected files whose targets are meant")->type_name("");
  sub->add_flag("--json", options->json, "The same facts for a machine");
  options->settings.add_finding(*sub);
  sub->footer(
      "Example:\n  holdfast targets --targets /mnt/a,/mnt/b\n  holdfast targets out.dat\n"
      "Exit status: 0 all are well, 1 some are lost or hold what must be repaired, 3 any other error.");
  sub->callback([options, &code] { code = targets(*options); });
}

}  // namespace holdfast::cli
