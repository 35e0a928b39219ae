// holdfast checkpoints [PATTERN]: what can be restarted from, what stands in the way of the rest, and plain files of one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/node_path.hpp"
#include "base/say.hpp"
#include "catalog/pool.hpp"
#include "catalog/user_files.hpp"
#include "checkpoint/drain.hpp"
#include "checkpoint/pattern.hpp"
#include "checkpoint/protect.hpp"
#include "checkpoint/singles.hpp"
#include "checkpoint/survey.hpp"
#include "cli/command.hpp"
#include "cli/files/drop.hpp"
#include "cli/files/report.hpp"
#include "cli/files/versions.hpp"
#include "cli/job/agents.hpp"
#include "cli/job/drainer.hpp"
#include "cli/output.hpp"
#include "layout/pack.hpp"
#include "target/address.hpp"

namespace holdfast::cli {

using checkpoint::LocalEntry;
using checkpoint::Standing;
using checkpoint::Survey;
using checkpoint::Surveyor;

namespace {

struct CheckpointsOptions {
  std::string pattern, drop, repair;
  std::vector<std::string> drain;  // the step, and where to
  bool verify = false, json = false;
  SettingsOptions settings;
};

Colour colour_of_standing(const std::string& state) {
  if (state == "whole") return Colour::good;
  if (state == "superseded" || state == "drained" || state == "protected" || state == "quarantined") return Colour::dim;
  return state == "failed" || state == "torn" || state == "lost" || state == "damaged" ? Colour::bad : Colour::warn;
}

nlohmann::json json_of_standing(const Standing& one, const std::map<std::string, std::string>& directories) {
  const auto directory = directories.find(one.run);
  return {{"step", one.step},
          {"state", one.state},
          {"files", one.files},
          {"files_of_all", one.ranks},
          {"ranks", one.ranks},
          {"bytes", one.bytes},
          {"nodes", one.nodes},
          {"attempt", one.attempt.number},
          {"attempt_id", one.attempt.id ? layout::id_text(one.attempt.id) : ""},
          {"run", one.run},
          {"directory", directory == directories.end() ? "" : directory->second},
          {"file", one.file},
          {"why", one.why},
          {"drained", one.drained}};
}

// Its number; with its id where another attempt has that number as well.
std::string attempt_text(const layout::Attempt& attempt, bool is_alone) { return is_alone ? std::to_string(attempt.number) : text_of(attempt); }

// The deepest directory below which all files of a run lie. By run.
std::map<std::string, std::string> directories_of_runs(const Survey& survey) {
  std::map<std::string, std::string> all;
  const auto add = [&](const std::string& run, const std::string& file) {
    std::string& at = all.try_emplace(run, catalog::parent_of(file)).first->second;
    while (at != "/" && !file.starts_with(at + "/")) at = catalog::parent_of(at);
  };
  for (const LocalEntry& entry : survey.local)
    if (entry.name.kind == checkpoint::LocalName::of_user) add(entry.run, entry.name.file);
  for (const catalog::FoundVersion& one : survey.versions)
    if (!one.manifest.version->roll) add(one.manifest.version->run, one.manifest.version->file);
  for (const checkpoint::DrainedCheckpoint& one : survey.drained)
    for (const auto& file : one.files) add(one.run, file.path);
  return all;
}

void print_standings(const std::vector<Standing>& all, const std::map<std::string, std::string>& directories) {
  if (all.empty()) return show("no checkpoints\n");
  const bool any_single = std::any_of(all.begin(), all.end(), [](const Standing& one) { return !one.file.empty(); });
  Table table({any_single ? "step or file" : ">step", "state", ">files", ">size", "nodes", ">attempt", "run", "why"});
  for (const Standing& one : all) {
    const auto is_twin = [&](const Standing& other) {
      return other.run == one.run && other.attempt.number == one.attempt.number && other.attempt != one.attempt;
    };
    const bool is_alone = std::none_of(all.begin(), all.end(), is_twin);
    table.add({one.file.empty() ? std::to_string(one.step) : one.file, one.drained && one.state != "drained" ? one.state + ", drained" : one.state,
               fmt::format("{}/{}", one.files, one.ranks), human_bytes(one.bytes), fmt::format("{}", fmt::join(one.nodes, ",")),
               attempt_text(one.attempt, is_alone), one.run, one.why},
              {Colour::none, colour_of_standing(one.state)});
  }
  table.print("");
  std::set<std::string> runs;
  for (const Standing& one : all) runs.insert(one.run);
  for (const std::string& run : runs)
    if (const auto directory = directories.find(run); runs.size() > 1 && directory != directories.end())
      show("run {}: in {}\n", run, directory->second);
}

// Checkpoints without a file that matches the pattern are nobody's business here.
Status narrow(Survey& survey, const std::string& text) {
  if (text.empty()) return {};
  const std::string path = text.starts_with(checkpoint::shared_prefix) ? text.substr(checkpoint::shared_prefix.size()) : text;
  const auto pattern = checkpoint::Pattern::resolve(pattern_from_here(path));
  if (!pattern) return pattern.status();
  using Key = std::tuple<std::string, layout::Attempt, uint64_t, std::string>;  // run, attempt, step; or run and file
  std::set<Key> meant;
  const auto key_of_file = [](const std::string& run, const std::string& file) { return Key(run, layout::Attempt(), 0, file); };
  const auto key_of_local = [&](const LocalEntry& entry) {
    return entry.name.is_single() ? key_of_file(entry.run, entry.name.file) : Key(entry.run, entry.attempt, entry.name.step, "");
  };
  const auto key_of_version = [&](const catalog::FoundVersion& one) {
    const layout::Version& version = *one.manifest.version;
    return version.is_single() ? key_of_file(version.run, version.file) : Key(version.run, version.attempt, version.step, "");
  };
  const auto key_of_drained = [](const checkpoint::DrainedCheckpoint& one) { return Key(one.run, one.attempt, one.step, one.name()); };
  for (const LocalEntry& entry : survey.local)
    if (pattern->match(entry.name.file)) meant.insert(key_of_local(entry));
  for (const catalog::FoundVersion& one : survey.versions)
    if (pattern->match(one.manifest.version->file)) meant.insert(key_of_version(one));
  for (const checkpoint::DrainedCheckpoint& one : survey.drained)
    if (std::any_of(one.files.begin(), one.files.end(), [&](const auto& file) { return pattern->match(file.path); }))
      meant.insert(key_of_drained(one));
  std::erase_if(survey.local, [&](const LocalEntry& entry) { return !meant.count(key_of_local(entry)); });
  std::erase_if(survey.versions, [&](const catalog::FoundVersion& one) { return !meant.count(key_of_version(one)); });
  std::erase_if(survey.drained, [&](const checkpoint::DrainedCheckpoint& one) { return !meant.count(key_of_drained(one)); });
  for (checkpoint::DrainedCheckpoint& one : survey.drained)
    if (one.are_singles) std::erase_if(one.files, [&](const auto& file) { return !pattern->match(file.path); });
  checkpoint::tell_checkpoints(survey);
  return {};
}

// What stands now in the place of a version that a job has written again, or dropped, since it was listed. Nothing where it is still there.
std::optional<std::vector<catalog::FoundVersion>> in_place_of(const catalog::FoundVersion& gone, const Settings& settings) {
  auto now = catalog::VersionList().look(settings.local, settings.deadline_ms);
  if (!now) return {};
  const auto is_gone = [&](const catalog::FoundVersion& one) { return one.manifest.file_id == gone.manifest.file_id; };
  if (std::any_of(now->begin(), now->end(), is_gone)) return {};
  const auto key_of = [](const catalog::FoundVersion& one) {
    const layout::Version& version = *one.manifest.version;
    return std::tie(version.run, version.attempt, version.step, version.file);
  };
  std::erase_if(*now, [&](const catalog::FoundVersion& one) { return key_of(one) != key_of(gone); });
  return std::move(*now);
}

// What --verify has found, a line each, or for machines.
class Verdicts {
 public:
  explicit Verdicts(bool json) : json_(json) {}

  // Of a file of a pack all of the pack is meant.
  int add(const catalog::FoundVersion& one, const Result<engine::VerifyReport>& report) {
    const layout::Version& version = *one.manifest.version;
    nlohmann::json now = {{"file", version.file}, {"step", version.step}, {"attempt", version.attempt.number}, {"run", version.run}};
    if (!report) {
      now["error"] = report.status().sentence();
      files_.push_back(std::move(now));
      return fail_for(version.file, report.status());
    }
    for (const engine::MemberReport& member : report->status.members)
      if (report->status.health == engine::Health::unknown && member.state == "unreached") unreached_.insert(member.path);
    const size_t together = layout::versions_in(layout::stored(one.manifest));
    const char* const health = engine::health_name(report->status.health);
    if (json_) {
      now.update({{"health", health}, {"rows", report->rows}, {"files_together", together}, {"findings", damages_in(*report)}});
      files_.push_back(std::move(now));
    } else {
      show("{} (step {}, attempt {}): {}, {}{}, {}\n", version.file, version.step, version.attempt.number, health, plural(report->rows, "row"),
           together > 1 ? fmt::format(" of {} files together", together) : "", plural(damages_in(*report), "finding"));
    }
    return code_of(*report);
  }
  void end() const {
    if (json_) return print_json({{"files", files_}, {"unreached", unreached_}});
    for (const std::string& address : unreached_) show("{}\n", how_to_reach(address));
  }

 private:
  const bool json_;
  nlohmann::json files_ = nlohmann::json::array();
  std::set<std::string> unreached_;  // whose agents have to answer before all can be told
};

// Every unit of every version of the newest whole ones and all others that are readable. A job that runs may write one again meanwhile.
int verify(const Survey& survey, const Settings& settings, bool json) {
  int code = exit_ok;
  Verdicts verdicts(json);
  std::deque<catalog::FoundVersion> left(survey.versions.begin(), survey.versions.end());
  std::set<std::string> met;
  for (const catalog::FoundVersion& one : left) met.insert(one.manifest.file_id);
  std::map<std::string, Result<engine::VerifyReport>> packs;  // that were verified, by id
  const auto report_of = [&](const layout::Manifest& manifest) {
    const auto known = packs.find(layout::stored(manifest).file_id);
    if (known != packs.end()) return known->second;
    auto report = engine::verify(catalog::locate_version(manifest, settings), settings, [](uint64_t, uint64_t) { return !interrupted(); });
    if (manifest.within) packs.emplace(manifest.within->file_id, report);
    return report;
  };
  for (; !left.empty(); left.pop_front()) {
    const catalog::FoundVersion& one = left.front();
    const auto report = report_of(one.manifest);
    const bool sound = report && report->finding_count == 0 && report->status.health == engine::Health::healthy;
    if (auto others = sound || interrupted() ? std::nullopt : in_place_of(one, settings)) {
      for (catalog::FoundVersion& other : *others)
        if (met.insert(other.manifest.file_id).second) left.push_back(std::move(other));
    } else {
      code = std::max(code, verdicts.add(one, report));
    }
  }
  verdicts.end();
  return code;
}

int drop_meant(const Survey& survey, const std::string& step, const Settings& settings, bool json) {
  const OfStep all = of_step(survey, step);
  const Status one = check_is_of_one_program(all, step);
  return one ? drop(all, step, survey, settings, json) : fail(one);
}

// Those that answer. Nodes of this step that lost their disks and answer again are among them: who repairs says that no mount is missing there.
std::vector<std::string> nodes_for(const Survey& survey, const std::string& step, const Settings& settings) {
  std::vector<std::string> nodes = survey.live;
  std::set<std::string> wiped;
  std::string pool_id;
  for (const catalog::FoundVersion& one : survey.versions) {
    if (!is_meant(*one.manifest.version, step)) continue;
    const layout::Manifest& manifest = layout::stored(one.manifest);
    pool_id = manifest.set_id;
    for (const layout::ManifestMember& member : manifest.members)
      if (std::count(survey.lost.begin(), survey.lost.end(), member.path) > 0) wiped.insert(member.path);
  }
  if (wiped.empty()) return nodes;
  for (const std::string& node : catalog::take_anew({wiped.begin(), wiped.end()}, pool_id, settings.deadline_ms)) {
    say("holdfast: {} is empty, and is taken anew\n", node);
    nodes.push_back(node);
  }
  return nodes;
}

// Never changed in place: what lacks something is written again.
int repair(const Survey& survey, const std::string& step, const Settings& settings, bool json) {
  catch_interrupts();
  int code = exit_ok;
  uint64_t looked_at = 0, renewed = 0;
  std::set<std::string> stores;
  const std::vector<std::string> nodes = nodes_for(survey, step, settings);
  for (const catalog::FoundVersion& one : survey.versions) {
    if (interrupted()) return exit_stopped;
    const layout::Version& version = *one.manifest.version;
    if (!is_meant(version, step)) continue;
    ++looked_at;
    if (!stores.insert(layout::stored(one.manifest).file_id).second) continue;  // with its pack
    const auto done = renew_version(one, nodes, settings);
    if (!done) code = std::max(code, fail_for(version.file, done.status()));
    else if (*done) renewed += layout::versions_in(layout::stored(one.manifest));
  }
  if (looked_at == 0) return fail(Status(Kind::not_found, none_is_meant(step)));
  if (json) print_json({{"repaired", step}, {"files", looked_at}, {"made_anew", renewed}});
  else show("{}: {} of {} made anew\n", text_of_meant(step), renewed, plural(looked_at, "file"));
  return code;
}

// Of several with this number the one that was written last.
Result<const checkpoint::Checkpoint*> whole_one(const Survey& survey, const std::string& step) {
  const checkpoint::Checkpoint *whole = nullptr, *other = nullptr;
  for (const checkpoint::Checkpoint& one : survey.checkpoints)
    if (!one.are_singles && std::to_string(one.step) == step) (one.whole() ? whole : other) = &one;
  if (whole) return whole;
  const auto standings = standings_of(survey);
  const auto standing =
      std::find_if(standings.rbegin(), standings.rend(), [&](const Standing& s) { return s.file.empty() && std::to_string(s.step) == step; });
  if (standing == standings.rend()) return Status(Kind::not_found, none_is_meant(step));
  if (standing->state == "drained")
    return Status(Kind::not_found,
                  fmt::format("checkpoint {} is drained: it is plain at its paths, and the nodes do not keep all of it any more", step));
  if (other && standing->state == "lost")
    return Status(Kind::lost, fmt::format("checkpoint {} cannot be read: {}; start the agents of the nodes that are missing", step, standing->why));
  if (other && (!other->torn_update.empty() || !other->half_written.file.empty()))
    return Status(Kind::not_found,
                  fmt::format("checkpoint {} is not whole: {}; go on from an older one, which 'holdfast checkpoints' lists", step, standing->why));
  return Status(Kind::not_found, fmt::format("checkpoint {} is not whole, of {} files {} are protected; 'holdfast checkpoints' lists those that are",
                                             step, standing->ranks, standing->files));
}

// Nobody is given an older one of that number without a word.
void say_what_was_written_later(const Survey& survey, const checkpoint::Checkpoint& which) {
  for (const checkpoint::Checkpoint& one : survey.checkpoints) {  // as they were written
    const bool is_alone = one.run != which.run || one.attempt.number != which.attempt.number || one.attempt == which.attempt;
    if (&one > &which && one.step == which.step && one.has_all() && !one.whole())
      say("holdfast: this is checkpoint {} of attempt {}; that of attempt {} was written later, but more nodes are lost than its "
          "scheme tolerates\n",
          one.step, attempt_text(which.attempt, is_alone), attempt_text(one.attempt, is_alone));
  }
}

// Below `directory` with the names that files have from here: as the program, run there, would find them.
checkpoint::Place below(const std::string& directory) {
  return [root = std::filesystem::canonical(directory).string(),
          here = std::filesystem::current_path().string()](const std::string& file) -> Result<std::string> {
    const std::string base = here == "/" ? here : here + "/";
    if (file.starts_with(base)) return fmt::format("{}/{}", root, file.substr(base.size()));
    return Status(Kind::invalid, fmt::format("{} does not lie below this directory, so it has no name below {}: run this where it does", file, root));
  };
}

// Of the last run that has some of these files what can be read of them. Where that is all of it, `is_all`.
Result<checkpoint::Checkpoint> singles_of(const Survey& survey, const std::string& what, bool& is_all) {
  std::optional<checkpoint::Checkpoint> last;
  const checkpoint::Protected* lost = nullptr;
  const auto is_meant = [&](const checkpoint::Protected& file) { return names_file(what, file.version.file); };
  for (const checkpoint::Checkpoint& one : survey.checkpoints) {  // ascending
    if (!one.are_singles) continue;
    checkpoint::Checkpoint meant = one;
    std::erase_if(meant.files, [&](const auto& file) { return !is_meant(file.second); });
    const auto unread = std::find_if(one.lost.begin(), one.lost.end(), is_meant);
    if (meant.files.empty() && unread == one.lost.end()) continue;
    lost = unread == one.lost.end() ? nullptr : &*unread;
    is_all = meant.files.size() == one.files.size();
    last = std::move(meant);
  }
  if (lost)
    return Status(Kind::lost,
                  fmt::format("{} cannot be read: more nodes are lost than its scheme tolerates; start the agents of those that are missing, "
                              "or name the other files",
                              lost->version.file));
  return last ? Result<checkpoint::Checkpoint>(std::move(*last)) : Status(Kind::not_found, none_is_meant(what));
}

int drain(const Survey& survey, const std::vector<std::string>& what, const Settings& settings, bool json) {
  OfStep versions = of_step(survey, what[0]);
  versions.local.clear();  // nobody drains these
  if (Status one = check_is_of_one_program(versions, what[0]); !one) return fail(one);
  const bool is_step = is_number(what[0]);
  bool is_all = true;
  const auto singles = is_step ? Result<checkpoint::Checkpoint>(checkpoint::Checkpoint()) : singles_of(survey, what[0], is_all);
  if (!singles) return fail(singles.status());
  const auto which = is_step ? whole_one(survey, what[0]) : Result<const checkpoint::Checkpoint*>(&*singles);
  if (!which) return fail(which.status());
  const bool elsewhere = what.size() > 1;
  if (elsewhere && !std::filesystem::is_directory(what[1]))
    return fail(Status(Kind::not_found, fmt::format("{} is not there: make the directory first", what[1])));
  if (is_step) say_what_was_written_later(survey, **which);
  catch_interrupts();
  ProgressBar bar("drain " + text_of_meant(what[0]));
  // Without a record where these are some of those that are protected one by one: it would say that all are there.
  const auto place = elsewhere ? below(what[1]) : checkpoint::Place(checkpoint::own_place);
  const auto drained = elsewhere || !is_all ? checkpoint::drain(manifests_of(**which, survey.versions), place, settings, bar.callback())
                                            : drain_to_own_paths(**which, survey.versions, settings, bar.callback());
  if (!drained) return fail(drained.status(), interrupted() ? exit_stopped : exit_error);
  if (json) return print_json({{"drained", what[0]}, {"files", drained->files}, {"bytes", drained->bytes}}), exit_ok;
  for (const std::string& file : drained->files) show("{}\n", file);
  show("{} is plain there ({}, {})\n", text_of_meant(what[0]), plural(drained->files.size(), "file"), human_bytes(drained->bytes));
  return exit_ok;
}

// A directory that answers may be no member of the pool: of a node whose disk was replaced, or is not mounted.
void say_who_is_lost(const Survey& survey, const Settings& settings) {
  std::map<std::string, std::string> reasons;  // of those that answer
  const auto pool =
      survey.lost.empty() ? Result<catalog::TargetSet>(catalog::TargetSet()) : catalog::look_at_pool(settings.local, settings.deadline_ms);
  if (pool)
    for (const catalog::Member& member : pool->members)
      if (!member.usable() && !target::is_unreached(member.path)) reasons[member.path] = member.lost.sentence();
  for (const std::string& node : survey.lost) {
    const auto reason = reasons.find(node);
    if (reason == reasons.end()) say("holdfast: {} does not answer\n", node);
    else if (reason->second.ends_with('?'))
      say("holdfast: {} If not, the next job takes it anew, and so does: holdfast checkpoints --repair STEP\n", reason->second);
    else say("holdfast: {}\n", reason->second);
  }
}

int checkpoints(const CheckpointsOptions& options) {
  auto settings = options.settings.load();
  if (!settings) return fail(settings.status());
  settings->local = nodes_of(*settings);
  if (settings->local.empty())
    return fail(Status(Kind::not_found, fmt::format("no agents are known in {}; start those of the job's nodes (holdfast agents start DIR), or name "
                                                    "their directories with --local NODE:/DIR,...",
                                                    agents_directory())));
  auto survey = Surveyor(settings->local, settings->deadline_ms).look("");
  if (!survey) return fail(survey.status());
  if (Status narrowed = narrow(*survey, options.pattern); !narrowed) return fail(narrowed);
  if (!options.drop.empty()) return drop_meant(*survey, options.drop, *settings, options.json);
  if (!options.repair.empty()) return repair(*survey, options.repair, *settings, options.json);
  if (!options.drain.empty()) return drain(*survey, options.drain, *settings, options.json);
  if (options.verify) return verify(*survey, *settings, options.json);
  const auto all = standings_of(*survey);
  const auto directories = directories_of_runs(*survey);
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const Standing& one : all) list.push_back(json_of_standing(one, directories));
    print_json({{"checkpoints", list}, {"live", survey->live}, {"lost", survey->lost}});
  } else {
    print_standings(all, directories);
    say_who_is_lost(*survey, *settings);
  }
  return exit_ok;
}

}  // namespace

void add_checkpoints(CLI::App& app, int& code) {
  auto options = std::make_shared<CheckpointsOptions>();
  CLI::App* sub = app.add_subcommand("checkpoints", "List what a job can be restarted from");
  sub->add_option("PATTERN", options->pattern, "As given to run --checkpoint: only these")->type_name("");
  sub->add_flag("--verify", options->verify, "Read all of them, and check every checksum and every row's code");
  sub->add_option("--drop", options->drop, "Remove this checkpoint from all nodes; of files that are protected one by one a path or a pattern")
      ->type_name("STEP");
  sub->add_option("--repair", options->repair, "Rewrite the files of this checkpoint that lack units, over the nodes that answer")->type_name("STEP");
  sub->add_option("--drain", options->drain, "Make this checkpoint's files plain: at their own paths, or below DIR by their paths relative to here")
      ->type_name("STEP [DIR]")
      ->expected(1, 2);
  sub->add_flag("--json", options->json, "For machines");
  options->settings.add(*sub, "local", "The nodes' directories (those of all agents that are known)", "NODE:DIR,...");
  options->settings.add_config(*sub);
  sub->footer("Example:\n  holdfast checkpoints\n  holdfast checkpoints 'ck/ck.{step}.{rank}' --verify\n  holdfast checkpoints --drain 30 /archive");
  sub->callback([options, &code] {
    // The pattern where it stands behind the step, and not a directory with braces.
    std::vector<std::string>& drain = options->drain;
    if (options->pattern.empty() && drain.size() > 1 && drain[1].find("{step}") != std::string::npos) {
      options->pattern = drain[1];
      drain.pop_back();
    }
    code = checkpoints(*options);
  });
}

}  // namespace holdfast::cli
