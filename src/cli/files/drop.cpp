#include "cli/files/drop.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <tuple>

#include "catalog/user_files.hpp"
#include "checkpoint/leftovers.hpp"
#include "checkpoint/pattern.hpp"
#include "cli/command.hpp"
#include "cli/files/versions.hpp"
#include "cli/job/drainer.hpp"
#include "cli/job/live_runs.hpp"
#include "cli/output.hpp"
#include "layout/pack.hpp"

namespace holdfast::cli {

using checkpoint::LocalEntry;
using checkpoint::Survey;
using checkpoint::Surveyor;

// Files that are protected one by one are named by a path, or a pattern of theirs, where checkpoints are named by their numbers.
bool is_number(const std::string& what) { return !what.empty() && what.find_first_not_of("0123456789") == std::string::npos; }
std::string text_of_meant(const std::string& what) { return is_number(what) ? "checkpoint " + what : "'" + what + "'"; }
std::string none_is_meant(const std::string& what) {
  return fmt::format("there is no {}{}; 'holdfast checkpoints' lists what there is",
                     is_number(what) ? "" : "file that is protected by itself and named ", text_of_meant(what));
}

bool names_file(const std::string& what, const std::string& file) {
  if (is_number(what)) return false;
  if (what.find_first_of("*?") == std::string::npos) return catalog::absolute_path(what) == file;
  const auto pattern = checkpoint::Pattern::resolve(pattern_from_here(what));
  return pattern && pattern->match(file);
}
bool is_meant(const layout::Version& version, const std::string& what) {
  return version.is_single() ? names_file(what, version.file) : std::to_string(version.step) == what;
}
static bool is_meant(const checkpoint::LocalName& name, const std::string& what) {
  return name.is_single() ? names_file(what, name.file) : std::to_string(name.step) == what;
}

OfStep of_step(const Survey& survey, const std::string& step) {
  OfStep all;
  for (const catalog::FoundVersion& one : survey.versions)
    if (const layout::Version& version = *one.manifest.version; is_meant(version, step)) all.versions.push_back(one), all.runs.insert(version.run);
  for (const LocalEntry& entry : survey.local)
    if (is_meant(entry.name, step)) all.local.push_back(entry), all.runs.insert(entry.run);
  return all;
}

Status check_is_of_one_program(const OfStep& all, const std::string& step) {
  if (!is_number(step)) return {};                     // it is named by its path
  std::map<std::string, std::set<std::string>> files;  // by run
  for (const catalog::FoundVersion& one : all.versions)
    if (const layout::Version& version = *one.manifest.version; !version.roll) files[version.run].insert(version.file);
  for (const LocalEntry& entry : all.local)
    if (entry.name.kind == checkpoint::LocalName::of_user) files[entry.run].insert(entry.name.file);
  std::vector<std::set<std::string>> programs;
  for (const auto& [run, paths] : files) {
    const auto has_one_of = [&paths = paths](const std::set<std::string>& program) {
      return std::any_of(paths.begin(), paths.end(), [&](const std::string& path) { return program.contains(path); });
    };
    const auto same = std::find_if(programs.begin(), programs.end(), has_one_of);
    if (same == programs.end()) programs.push_back(paths);
    else same->insert(paths.begin(), paths.end());
  }
  if (programs.size() < 2) return {};
  std::vector<std::string> examples;
  for (const auto& program : programs) examples.push_back(*program.begin());
  return Status(Kind::invalid, fmt::format("several programs have a checkpoint {} ({}): say which is meant by its pattern, as in: "
                                           "holdfast checkpoints 'ck/ck.{{step}}.{{rank}}' ...",
                                           step, fmt::join(examples, ", ")));
}

namespace {

bool is_at_work(checkpoint::State state) {
  return state == checkpoint::State::writing || state == checkpoint::State::together || state == checkpoint::State::closed ||
         state == checkpoint::State::protecting;
}

// Ranks of a job that runs may not have read yet what it has begun with, and its protectors have in hands what ranks have written.
Status check_nobody_needs(const OfStep& all, const std::string& step, const std::vector<Begun>& live) {
  for (const Begun& begun : live) {
    if (!all.runs.contains(begun.run)) continue;
    if (begun.now.number == 0) return Status(Kind::busy, fmt::format("a job chooses just now which checkpoint it begins with; drop {} later", step));
    if (!is_number(step)) return Status(Kind::busy, fmt::format("a job that runs keeps {}; drop it when the job has ended", text_of_meant(step)));
    const bool is_beginning = std::to_string(begun.step) == step && std::any_of(all.versions.begin(), all.versions.end(), [&](const auto& one) {
                                return one.manifest.version->run == begun.run && one.manifest.version->attempt == begun.attempt;
                              });
    if (is_beginning)
      return Status(Kind::busy, fmt::format("a job that runs has begun with checkpoint {}, and may not have read all of it; drop it when the job "
                                            "has ended",
                                            step));
    const bool is_coming = std::any_of(all.local.begin(), all.local.end(), [&](const LocalEntry& entry) {
      return entry.run == begun.run && entry.attempt == begun.now && is_at_work(entry.state);
    });
    if (is_coming)
      return Status(Kind::busy, fmt::format("a job that runs is writing checkpoint {}; drop it when it is protected, or the job has ended", step));
  }
  return {};
}

// The nodes that have a part of it still and do not answer. One that answers as another directory has lost it for good.
std::set<std::string> away_of(const catalog::Located& located, const Survey& survey) {
  std::set<std::string> nodes;
  for (const catalog::Member& member : located.members) {
    const bool answers = member.usable() || std::count(survey.live.begin(), survey.live.end(), member.path) > 0;
    if (!answers && !located.manifest.members[size_t(member.index)].stale) nodes.insert(node_of(member.path));
  }
  return nodes;
}

// Files that the program wrote, each once, wherever they lie.
uint64_t count_files(const OfStep& all) {
  using checkpoint::State;
  std::set<std::tuple<std::string, layout::Attempt, std::string, uint32_t>> files;
  for (const catalog::FoundVersion& one : all.versions)
    files.emplace(one.manifest.version->run, one.manifest.version->attempt, one.manifest.version->file, one.manifest.version->number);
  for (const LocalEntry& entry : all.local)
    if (checkpoint::is_written_here(entry.state) && entry.state != State::twin)
      files.emplace(entry.run, entry.attempt, entry.name.file, entry.name.number);
  return files.size();
}

// What is left of runs that have ended is no more than names, where none of their checkpoints is there.
void forget_empty_runs(const std::set<std::string>& runs, const std::vector<Begun>& live, const Settings& settings) {
  for (const std::string& run : runs) {
    const auto is_it = [&](const Begun& begun) { return begun.run == run; };
    const auto survey = std::any_of(live.begin(), live.end(), is_it) ? Result<Survey>(Status(Kind::busy, ""))
                                                                     : Surveyor(settings.local, settings.deadline_ms).look(run);
    if (!survey || !survey->silent.empty()) continue;
    const bool any = std::any_of(survey->versions.begin(), survey->versions.end(), [&](const auto& one) { return one.manifest.version->run == run; });
    OfStep left;
    left.local = survey->local;
    if (!any && count_files(left) == 0) checkpoint::forget_run(run, survey->live, settings.deadline_ms);
  }
}

// Of files that are protected one by one: as notes of who writes their versions name them.
std::set<std::string> digits_of_files(const OfStep& all, const std::string& what) {
  std::set<std::string> files;
  if (is_number(what)) return files;
  for (const catalog::FoundVersion& one : all.versions) files.insert(catalog::digits_of_path(one.manifest.version->file));
  for (const LocalEntry& entry : all.local) files.insert(catalog::digits_of_path(entry.name.file));
  return files;
}

// Such a one is listed, too.
bool is_drained(const std::string& step, const Survey& survey) {
  return std::any_of(survey.drained.begin(), survey.drained.end(),
                     [&](const checkpoint::DrainedCheckpoint& one) { return !one.are_singles && std::to_string(one.step) == step; });
}

}  // namespace

int drop(const OfStep& all, const std::string& step, const Survey& survey, const Settings& settings, bool json) {
  const auto live = live_runs();
  if (Status free = check_nobody_needs(all, step, live); !free) return fail(free);
  const uint64_t dropped = count_files(all);
  if (dropped == 0 && is_drained(step, survey))
    return fail(
        Status(Kind::not_found, fmt::format("checkpoint {} is drained: it is plain at its paths, and the nodes keep nothing of it; remove its files "
                                            "to be rid of it",
                                            step)));
  if (dropped == 0) return fail(Status(Kind::not_found, none_is_meant(step)));
  std::set<std::string> away, stores;
  for (const catalog::FoundVersion& one : all.versions) {
    if (!stores.insert(layout::stored(one.manifest).file_id).second) continue;  // it goes with its pack
    const catalog::Located located = catalog::locate_version(one.manifest, settings);
    if (Status gone = catalog::remove_version(located); !gone) return fail(gone);
    away.merge(away_of(located, survey));
  }
  for (const std::string& run : all.runs) {
    std::vector<LocalEntry> local = all.local;
    std::erase_if(local, [&](const LocalEntry& entry) { return entry.run != run; });
    const auto begun = std::find_if(live.begin(), live.end(), [&](const Begun& one) { return one.run == run; });
    if (begun != live.end()) std::erase_if(local, [](const LocalEntry& entry) { return entry.state == checkpoint::State::hidden; });
    for (const std::string& node : checkpoint::drop_copies(local, begun == live.end() ? 0 : begun->now, settings)) away.insert(node_of(node));
  }
  const auto is_dropped = [&, files = digits_of_files(all, step)](const checkpoint::Unfinished& one) {
    const bool lives = std::any_of(live.begin(), live.end(), [&](const Begun& begun) { return begun.run == one.run; });
    const bool is_it = one.file.empty() ? std::to_string(one.step) == step : files.contains(one.file);
    return all.runs.contains(one.run) && is_it && !lives;
  };
  checkpoint::remove_unfinished(settings.local, is_dropped, settings.deadline_ms);
  if (json) print_json({{"dropped", step}, {"files", dropped}, {"away", away}});
  else show("{} of {} dropped\n", plural(dropped, "file"), text_of_meant(step));
  if (away.empty()) return forget_empty_runs(all.runs, live, settings), exit_ok;
  return fail(Status(Kind::lost, fmt::format("{} is not dropped on {}, which does not answer, and may come back with it: repeat this then",
                                             text_of_meant(step), fmt::join(away, ", "))));
}

namespace {

using Key = std::tuple<std::string, layout::Attempt, uint64_t>;  // run, attempt, step
using Files = std::set<std::string>;

bool counts(const LocalEntry& entry) {
  return entry.name.kind == checkpoint::LocalName::of_user && checkpoint::is_written_here(entry.state) && entry.state != checkpoint::State::twin;
}

// Checkpoints that have one of these files, by their numbers, and files that are protected one by one, by their paths.
std::map<std::string, OfStep> having(const Files& paths, const Survey& survey) {
  std::set<Key> keys;
  for (const catalog::FoundVersion& one : survey.versions)
    if (const layout::Version& version = *one.manifest.version; !version.is_single() && !version.roll && paths.contains(version.file))
      keys.emplace(version.run, version.attempt, version.step);
  for (const LocalEntry& entry : survey.local)
    if (!entry.name.is_single() && counts(entry) && paths.contains(entry.name.file)) keys.emplace(entry.run, entry.attempt, entry.name.step);
  std::map<std::string, OfStep> all;
  const auto of = [&](bool is_single, const std::string& file, const Key& key) -> OfStep* {
    if (is_single ? !paths.contains(file) : !keys.contains(key)) return nullptr;
    OfStep& one = all[is_single ? file : std::to_string(std::get<uint64_t>(key))];
    one.runs.insert(std::get<std::string>(key));
    return &one;
  };
  for (const catalog::FoundVersion& one : survey.versions)
    if (const layout::Version& version = *one.manifest.version;
        OfStep* const at = of(version.is_single(), version.file, {version.run, version.attempt, version.step}))
      at->versions.push_back(one);
  for (const LocalEntry& entry : survey.local)
    if (OfStep* const at = of(entry.name.is_single(), entry.name.file, {entry.run, entry.attempt, entry.name.step})) at->local.push_back(entry);
  return all;
}

Files files_of(const OfStep& all) {
  Files files;
  for (const catalog::FoundVersion& one : all.versions)
    if (!one.manifest.version->roll) files.insert(one.manifest.version->file);
  for (const LocalEntry& entry : all.local)
    if (counts(entry)) files.insert(entry.name.file);
  return files;
}

// A checkpoint without one of its files is none.
Status check_all_are_named(const OfStep& all, const std::string& what, const Files& paths) {
  const Files files = files_of(all);
  const auto other = std::find_if(files.begin(), files.end(), [&](const std::string& file) { return !paths.contains(file); });
  if (other == files.end()) return {};
  const auto named = std::find_if(files.begin(), files.end(), [&](const std::string& file) { return paths.contains(file); });
  return Status(Kind::invalid,
                fmt::format("{} is one of {} of checkpoint {}, which is removed as a whole: name all of them, {} too, or use: holdfast "
                            "checkpoints --drop {}",
                            *named, plural(files.size(), "file"), what, *other, what));
}

}  // namespace

int drop_named(const std::vector<std::string>& paths, const Settings& how) {
  Settings settings = how;
  settings.local = nodes_of(how);
  const auto survey = Surveyor(settings.local, settings.deadline_ms).look("");
  if (!survey) return fail(survey.status());
  const Files named(paths.begin(), paths.end());
  int code = exit_ok;
  for (const auto& [what, all] : having(named, *survey)) {
    const Status whole = check_all_are_named(all, what, named);
    code = std::max(code, whole ? drop(all, what, *survey, settings) : fail(whole));
  }
  return code;
}

}  // namespace holdfast::cli
