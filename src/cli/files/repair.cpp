// holdfast repair PATH…: rebuilds what is lost, stale or damaged, onto the old or onto new targets.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/say.hpp"
#include "catalog/pool.hpp"
#include "catalog/sidecar.hpp"
#include "catalog/user_files.hpp"
#include "cli/command.hpp"
#include "cli/files/report.hpp"
#include "cli/files/versions.hpp"
#include "cli/job/agents.hpp"
#include "cli/output.hpp"
#include "engine/exclusion.hpp"
#include "engine/repair_file.hpp"

namespace holdfast::cli {

namespace {

struct RepairOptions {
  std::vector<std::string> paths;
  std::vector<std::string> replacements;  // OLD=NEW
  bool revert = false, break_locks = false, onto_live = false, json = false;
  SettingsOptions settings;
};

std::string without_trailing_slashes(std::string path) {
  path = path_from_here(path);
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

Result<std::vector<engine::Replacement>> parse_replacements(const std::vector<std::string>& texts) {
  std::vector<engine::Replacement> out;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
      return Status(Kind::invalid, fmt::format("--replace is '{}': write OLD=NEW with two directories, for example "
                                               "--replace /mnt/b=/mnt/g, or OLD=OLD for one that was emptied",
                                               text));
    out.push_back({without_trailing_slashes(text.substr(0, equals)), without_trailing_slashes(text.substr(equals + 1))});
  }
  return out;
}

// By the user's word alone: who holds them may live on a node that cannot be asked.
Result<std::vector<std::string>> break_locks_of(const std::string& path, const Settings& settings) {
  say("holdfast: {}: its locks are broken as you say: a program that still writes it now would lose data\n", path);
  auto broken = std::vector<std::string>();
  const std::string sidecar = catalog::sidecar_of(path);
  if (auto there = catalog::Sidecar::open(sidecar)) {
    auto names = there->break_locks();
    if (!names) return names;
    broken = std::move(*names);
  }
  auto located = catalog::locate(path, settings, {.adopt_replacements = true, .ignore_edits = true});
  if (!located) return located.status();
  auto on_members = engine::break_locks(*located);
  if (!on_members) return on_members;
  broken.insert(broken.end(), on_members->begin(), on_members->end());
  return broken;
}

void print_broken(const std::string& path, const std::vector<std::string>& broken) {
  if (broken.empty()) show("{}: no lock is held by name\n", path);
  for (const std::string& sentence : broken) show("{}: removed {}\n", path, sentence);
}

void print_report(const engine::FileRepair& r) {
  print_status(r.status, !r.stopped && r.lost_rows.empty());
  for (size_t i = 0; i < r.per_member_units.size(); ++i)
    if (r.per_member_units[i] && i < r.status.members.size())
      show("  rebuilt {} on {}\n", plural(r.per_member_units[i], "unit"), r.status.members[i].path);
  if (r.journals_replayed) show("  finished {} that a killed job had left\n", plural(r.journals_replayed, "journal"));
  if (r.sessions_folded) show("  folded away what {} had left\n", plural(r.sessions_folded, "killed writer"));
  if (r.units_rebuilt) show("  in all {}, {}\n", plural(r.units_rebuilt, "unit"), human_bytes(r.bytes_rebuilt));
  else if (r.written_anew)
    show("  written anew over {}, for too few were free to take the places of those that are lost\n", plural(r.written_anew, "node"));
  else if (!r.stopped) show("  no unit had to be rebuilt\n");
  if (r.records_rewritten) show("  rewrote {} of checksums, one of each row and target\n", plural(r.records_rewritten, "record"));
  if (!r.lost_rows.empty())
    show(
        "  {} cannot be rebuilt from what is reachable, the first is row {}: bring a lost target back and "
        "repair again\n",
        plural(r.lost_rows.size(), "row"), r.lost_rows.front());
  for (const std::string& sentence : r.left) show("  {}\n", sentence);
  if (r.stopped) show("  stopped; run it again to go on\n");
}

nlohmann::json json_of_report(const engine::FileRepair& r) {
  nlohmann::json out = json_of(r.status);
  out["repaired"] = {{"units", r.units_rebuilt},
                     {"bytes", r.bytes_rebuilt},
                     {"records", r.records_rewritten},
                     {"manifests", r.manifests_rewritten},
                     {"journals", r.journals_replayed},
                     {"sessions", r.sessions_folded},
                     {"units_per_member", r.per_member_units},
                     {"lost_rows", r.lost_rows},
                     {"left", r.left},
                     {"written_anew_over", r.written_anew},
                     {"complete", !r.stopped}};
  return out;
}

int code_of_report(const engine::FileRepair& r) {
  const auto& members = r.status.members;
  const bool may_come_back = std::any_of(members.begin(), members.end(), [](const engine::MemberReport& m) { return m.state == "unreached"; });
  if (!r.lost_rows.empty()) return may_come_back ? exit_error : exit_lost;
  if (r.stopped) return exit_stopped;
  return r.left.empty() ? code_of(r.status.health) : std::max<int>(exit_degraded, code_of(r.status.health));
}

// A file of a checkpoint never changes: it is written again, on whichever nodes answer.
void repair_version(const catalog::FoundVersion& version, const RepairOptions& options, const Settings& settings, FileReports& reports) {
  const std::string& path = version.manifest.path;
  if (options.revert || options.onto_live || !options.replacements.empty())
    return reports.failed(path,
                          Status(Kind::invalid,
                                 fmt::format("{} is a file of checkpoint {}, which is written again over the nodes that answer: leave --replace, "
                                             "--onto-live and --revert out",
                                             path, version.manifest.version->step)));
  const auto pool = catalog::look_at_pool(nodes_of(settings), settings.deadline_ms);
  if (!pool) return reports.failed(path, pool.status());
  std::vector<std::string> live;
  for (const catalog::Member& member : pool->members)
    if (member.usable()) live.push_back(member.path);
  const auto renewed = renew_version(version, live, settings);
  if (!renewed) return reports.failed(path, renewed.status());
  const auto now = version_at(path, settings);
  const auto status =
      now ? status_of_version(now->manifest, settings) : Result<engine::FileStatus>(Status(Kind::not_found, "it was dropped meanwhile"));
  if (!status) return reports.failed(path, status.status());
  nlohmann::json facts = json_of(*status);
  facts["made_anew"] = *renewed;
  reports.found(code_of(status->health), std::move(facts), [&] {
    print_status(*status);
    show("  {}\n", *renewed ? "made anew" : "nothing is missing");
  });
}

int repair(const RepairOptions& options) {
  auto settings = options.settings.load();
  if (!settings) return fail(settings.status());
  auto replacements = parse_replacements(options.replacements);
  if (!replacements) return fail(replacements.status());
  const std::vector<std::string> live = options.onto_live ? known_directories() : std::vector<std::string>();
  FileReports reports(options.json);
  for (const std::string& path : options.paths) {
    if (interrupted()) break;
    const std::string whole_path = path_from_here(path);
    if (options.break_locks) {
      auto broken = break_locks_of(whole_path, *settings);
      if (!broken) {
        reports.failed(path, broken.status());
        continue;
      }
      if (!options.json) print_broken(path, *broken);
    }
    if (const auto version = version_at(whole_path, *settings)) {
      repair_version(*version, options, *settings, reports);
      continue;
    }
    ProgressBar bar("repair " + whole_path);
    auto report = engine::repair_file(whole_path, *replacements, options.revert, *settings, bar.callback(), options.onto_live ? &live : nullptr);
    if (report) reports.found(code_of_report(*report), json_of_report(*report), [&] { print_report(*report); });
    else reports.failed(path, report.status());
  }
  return reports.end();
}

}  // namespace

void add_repair(CLI::App& app, int& code) {
  auto options = std::make_shared<RepairOptions>();
  CLI::App* sub = app.add_subcommand("repair", "Rebuild what is lost, stale or damaged");
  sub->add_option("PATH", options->paths, "Protected files")->required()->type_name("");
  sub->add_option("--replace", options->replacements,
                  "Replace target OLD by the empty directory NEW (repeatable); OLD=OLD uses OLD again once it is empty")
      ->type_name("OLD=NEW")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  sub->add_flag("--onto-live", options->onto_live,
                "Replace lost members by live nodes of the pool that hold nothing of the file, or rewrite the file over the live nodes");
  sub->add_flag("--revert", options->revert, "If the path was changed from outside: put back what the targets hold");
  sub->add_flag("--break-locks", options->break_locks, "First remove locks that others hold by name, such as programs that died on other nodes");
  sub->add_flag("--json", options->json, "The outcome for a machine");
  options->settings.add_finding(*sub);
  options->settings.add(*sub, "domains", "With --onto-live: file of lines NODE RACK [POWER]; the parts go to different racks");
  sub->footer(
      "Example:\n  holdfast repair out.dat --replace /mnt/b=/mnt/g\n"
      "It may be interrupted and run again.\n"
      "Exit status: 0 healthy now, 1 still degraded, 2 data is lost, 3 any other error.");
  sub->callback([options, &code] { code = repair(*options); });
}

}  // namespace holdfast::cli
