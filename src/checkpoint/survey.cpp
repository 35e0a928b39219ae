#include "checkpoint/survey.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/node_path.hpp"
#include "catalog/pool.hpp"
#include "checkpoint/attempt.hpp"
#include "checkpoint/ended.hpp"
#include "checkpoint/given_up.hpp"
#include "checkpoint/protect.hpp"
#include "checkpoint/singles.hpp"
#include "checkpoint/untouched.hpp"
#include "checkpoint/updates.hpp"
#include "layout/pack.hpp"

namespace holdfast::checkpoint {

namespace {

struct OfNode {
  std::vector<LocalEntry> entries;
  std::map<std::string, std::set<layout::Attempt>> attempts;
  EndedWell ended_well;
  std::vector<Unread> unread;
  std::vector<RankNoted> ranks;
  bool is_all = true;

  // What a directory has; nothing where there is none.
  std::vector<std::string> list(target::Target& target, const std::string& directory) {
    auto names = target.list(directory);
    if (names) return std::move(*names);
    is_all &= names.status().kind() == Kind::not_found;
    return {};
  }
};

std::string text_of(target::Target& target, const std::string& at) {
  const auto bytes = target.get(at, most_why_bytes);
  return bytes ? why_in({reinterpret_cast<const char*>(bytes->data()), bytes->size()}) : "";
}

// In the lane of one node.
void list_attempt(target::Target& target, const std::string& node, const std::string& run, const std::string& attempt, OfNode& into) {
  const auto which = layout::parse_attempt(attempt);
  if (!which || which->number == 0) return;
  into.attempts[run].insert(*which);
  const std::string of_attempt = fmt::format("{}/{}/{}", local_directory, run, attempt);
  const std::string notes = fmt::format("{}/{}", of_attempt, unread_directory);
  for (const std::string& file_id : into.list(target, notes))
    into.unread.push_back({node, run, *which, file_id, text_of(target, notes + "/" + file_id)});
  for (const std::string& note : into.list(target, fmt::format("{}/{}", of_attempt, ranks_directory)))
    into.ranks.push_back({node, run, *which, note});
  const auto untouched = Untouched::noted_on(target, of_attempt);
  for (const State state : all_states) {
    const std::string directory = fmt::format("{}/{}", of_attempt, state_name(state));
    for (const std::string& text : into.list(target, directory)) {
      auto name = decode_local_name(text);
      if (!name) continue;
      LocalEntry& entry = into.entries.emplace_back(LocalEntry{node, run, *which, state, std::move(*name), ""});
      entry.is_untouched = is_untouched(state, entry.name, untouched);
      if (state != State::failed) continue;
      entry.why = text_of(target, directory + "/" + why_begins + text);
    }
  }
}

Status list_local(target::Target& target, const std::string& node, const std::string& wanted, OfNode& into) {
  const std::string all = local_directory;
  const auto runs = wanted.empty() ? target.list(all) : Result<std::vector<std::string>>(std::vector<std::string>{wanted});
  if (!runs) return runs.status().kind() == Kind::not_found ? Status() : runs.status();
  for (const std::string& run : *runs) {
    if (run == drained_directory) continue;
    for (const std::string& name : into.list(target, all + "/" + run))
      if (const auto ended = attempt_ended_well(name)) into.ended_well[run].insert(*ended);
      else list_attempt(target, node, run, name, into);
  }
  return {};
}

using Key = std::tuple<std::string, layout::Attempt, uint64_t>;  // run, attempt, step

// From local names alone: the state that is furthest from being protected.
std::string local_state(const std::vector<const LocalEntry*>& files) {
  for (const State state : {State::failed, State::torn, State::together, State::writing, State::closed, State::protecting})
    for (const LocalEntry* file : files)
      if (file->state == state && !file->is_untouched) return state_name(state == State::together ? State::writing : state);
  return state_name(State::kept);
}

// Its plain files are what is left of it.
void take_plain(Standing& standing, const DrainedCheckpoint& plain) {
  standing.state = "drained";
  standing.files = plain.files.size();
  standing.ranks = uint32_t(plain.files.size());
  standing.bytes = plain.bytes();
}

}  // namespace

Age age_of(const LocalEntry& entry) { return {entry.attempt, entry.name.step, entry.name.written, catalog::digits_of_node(entry.node)}; }

std::string rivalry_in(const Checkpoint& checkpoint, const Survey& survey) {
  const Protected& one = checkpoint.rivals.front();
  const auto name_of = [&](const std::string& digits) -> std::string {
    for (const auto& addresses : {survey.live, survey.lost})
      for (const std::string& address : addresses)
        if (catalog::digits_of_node(address) == digits) return parse_node_path(address).node;
    return "a node that is no more of the job";
  };
  const Protected* const counts = checkpoint.counterpart_of(one);
  if (counts && counts->version.file != one.version.file)
    return fmt::format("{} was written on {}, and {}, which has its place, on {}", one.version.file, name_of(one.written_on()), counts->version.file,
                       name_of(counts->written_on()));
  const Protected* const other = checkpoint.file_at(one.version.file);
  return fmt::format("{} was written on {} and at the same time on {}", one.version.file, name_of(one.written_on()),
                     name_of(other && other->written_on() != one.written_on() ? other->written_on() : checkpoint.older.back().written_on()));
}

std::vector<layout::Manifest> manifests_of(const Checkpoint& checkpoint, const std::vector<catalog::FoundVersion>& versions) {
  std::map<std::string, const layout::Manifest*> by_id;
  for (const catalog::FoundVersion& one : versions) by_id[one.manifest.file_id] = &one.manifest;
  std::vector<layout::Manifest> manifests;
  for (const auto& [rank, file] : checkpoint.files)
    if (const auto found = by_id.find(file.file_id); found != by_id.end()) manifests.push_back(*found->second);
  return manifests;
}

bool has_written(const std::string& node, const Survey& survey, const Run& run) {
  const std::string digits = catalog::digits_of_node(node);
  return std::any_of(survey.versions.begin(), survey.versions.end(), [&](const catalog::FoundVersion& one) {
    const layout::Version& version = *one.manifest.version;
    return version.run == run.id && version.attempt == run.attempt && one.manifest.file_id.ends_with(digits);
  });
}

namespace {

bool are_all_ranks_noted(const Survey& survey, const Run& run, const std::set<std::string>& but) {
  RanksThere there;
  for (const RankNoted& one : survey.ranks)
    if (one.run == run.id && one.attempt == run.attempt && !but.contains(one.node)) there.add(one.note);
  return there.are_all();
}

// Where launchers do not say which rank a process is there are no notes.
bool have_all_ranks_written(const Survey& survey, const Run& run, const std::set<std::string>& but) {
  std::map<uint32_t, std::set<uint32_t>> heard;  // by the number of ranks: a job may run other programs beside, of fewer
  for (const LocalEntry& entry : survey.local) {
    const bool is_own = entry.run == run.id && entry.attempt == run.attempt && is_written_here(entry.state) && entry.state != State::together;
    // A roll of all is no rank's.
    if (is_own && entry.name.kind == LocalName::of_user && entry.name.writers > 0 && !but.contains(entry.node))
      heard[entry.name.writers].insert(entry.name.writer);
  }
  if (heard.empty()) return false;
  const auto& [ranks, of] = *heard.rbegin();
  return of.size() == ranks && *of.rbegin() < ranks;
}

}  // namespace

bool are_all_ranks_heard(const Survey& survey, const Run& run, const std::set<std::string>& but) {
  if (std::any_of(but.begin(), but.end(), [&](const std::string& node) { return has_written(node, survey, run); })) return false;
  return are_all_ranks_noted(survey, run, but) || have_all_ranks_written(survey, run, but);
}

void tell_checkpoints(Survey& survey, const std::set<std::string>& damaged) {
  auto all = protected_of(survey.versions, damaged);
  survey.removed = take_removed(all, survey.local);
  survey.checkpoints = checkpoints_of(all);
  mark_half_written(survey.checkpoints, survey.drained);
  unmark_ended_well(survey.checkpoints, survey.ended_well, survey.local);
  take_plain(survey.checkpoints, survey.drained, survey.local);
  mark_torn_updates(survey.checkpoints, survey.local, survey.drained);
  mark_given_up(survey.checkpoints, survey.local, survey.drained);
}

Result<Survey> Surveyor::look(const std::string& run) {
  auto pool = catalog::look_at_pool(directories_, deadline_ms_);
  if (!pool) return Status(Kind::lost, pool.status().sentence());
  Survey survey;
  std::vector<std::tuple<std::string, std::shared_ptr<OfNode>, std::shared_ptr<target::Ticket>>> asked;
  for (const catalog::Member& member : pool->members) {
    (member.usable() ? survey.live : survey.lost).push_back(member.path);
    if (!member.usable()) continue;
    auto found = std::make_shared<OfNode>();
    asked.emplace_back(member.path, found,
                       member.lane->submit([=, target = member.target, node = member.path] { return list_local(*target, node, run, *found); }));
  }
  for (auto& [node, here, ticket] : asked) {
    const bool listed = ticket->wait().ok();
    if (!listed || !here->is_all) survey.unknown.push_back(node);
    if (!listed) continue;
    survey.local.insert(survey.local.end(), here->entries.begin(), here->entries.end());
    survey.unread.insert(survey.unread.end(), here->unread.begin(), here->unread.end());
    survey.ranks.insert(survey.ranks.end(), here->ranks.begin(), here->ranks.end());
    for (const auto& [of, attempts] : here->attempts) survey.attempts[of].insert(attempts.begin(), attempts.end());
    for (const auto& [of, attempts] : here->ended_well) survey.ended_well[of].insert(attempts.begin(), attempts.end());
  }
  survey.drained = records_of(*pool);
  survey.changed = leave_out_what_has_changed(survey.drained);
  auto found = versions_.look(directories_, deadline_ms_);
  if (!found) return found.status();
  survey.versions = std::move(*found);
  tell_checkpoints(survey, damaged_);
  survey.silent = versions_.silent();
  for (const auto* nodes : {&survey.lost, &survey.unknown}) survey.silent.insert(survey.silent.end(), nodes->begin(), nodes->end());
  return survey;
}

Result<std::vector<Checkpoint>> Surveyor::look_at_versions() {
  auto found = versions_.look(directories_, deadline_ms_);
  if (!found) return found.status();
  last_ = std::move(*found);
  return checkpoints_of(protected_of(last_, damaged_));
}

void leave_out_later(std::vector<catalog::FoundVersion>& versions, const Run& run) {
  if (!run.from || run.from->drained || is_past_beginning(versions, run)) return;
  std::erase_if(versions, [&](const catalog::FoundVersion& one) {
    const layout::Version& version = *one.manifest.version;
    return version.run == run.id && is_later_than(version, one.manifest.file_id, *run.from);
  });
}

namespace {

// The others that were protected late, and are newer than it.
void leave_out_after_beginning(std::vector<Checkpoint>& all, const Run& run) {
  const auto begun = std::find_if(all.begin(), all.end(), [&](const Checkpoint& one) {
    return one.run == run.id && one.attempt == run.from->attempt && one.step == run.from->step;
  });
  if (begun == all.end()) return;
  all.erase(std::remove_if(begun + 1, all.end(), [&](const Checkpoint& one) { return one.run == run.id && one.attempt != run.attempt; }), all.end());
}

}  // namespace

Result<std::vector<Checkpoint>> Surveyor::look_during(const Run& run) {
  auto found = versions_.look(directories_, deadline_ms_);
  if (!found) return found.status();
  last_ = std::move(*found);
  auto meant = last_;
  leave_out_later(meant, run);
  auto all = checkpoints_of(protected_of(meant, damaged_));
  unmark_beginning(all, run);
  if (run.from && !run.from->drained && !is_past_beginning(last_, run)) leave_out_after_beginning(all, run);
  return all;
}

std::optional<layout::Manifest> Surveyor::manifest_of(const std::string& file_id) const {
  for (const catalog::FoundVersion& one : last_)
    if (one.manifest.file_id == file_id) return one.manifest;
  return {};
}

std::vector<std::vector<layout::Manifest>> Surveyor::stores_of(const std::vector<Protected>& old) const {
  std::map<std::string, const layout::Manifest*> found;
  for (const catalog::FoundVersion& one : last_) found[one.manifest.file_id] = &one.manifest;
  std::vector<std::vector<layout::Manifest>> all;  // in the order of `old`
  std::map<std::string, size_t> places;
  for (const Protected& one : old) {
    const auto version = found.extract(one.file_id);
    if (version.empty()) continue;
    const auto [at, first] = places.try_emplace(layout::stored(*version.mapped()).file_id, all.size());
    if (first) all.emplace_back();
    all[at->second].push_back(*version.mapped());
  }
  std::erase_if(all, [](const auto& files) { return files.size() < layout::versions_in(layout::stored(files.front())); });
  return all;
}

namespace {

// What a rank could not read of it, in one sentence; empty where there is nothing.
std::string why_unread(const Checkpoint& one, const Survey& survey) {
  for (const auto& [place, file] : one.files)
    for (const Unread& note : survey.unread)
      if (note.file_id == file.file_id) return fmt::format("{} could not be read: {}", file.version.file, note.why);
  return "";
}

const Checkpoint* newest_read(const Survey& survey, const std::string& run) {
  const Checkpoint* newest = nullptr;
  for (const Checkpoint& one : survey.checkpoints)
    if (one.run == run && one.whole() && one.removed.empty() && why_unread(one, survey).empty()) newest = &one;
  return newest;
}

// What was seen of one checkpoint, and where.
struct Sighted {
  const Checkpoint* version = nullptr;
  std::vector<const LocalEntry*> files;
  const DrainedCheckpoint* drained = nullptr;
};

std::map<Key, Sighted> all_sighted(const Survey& survey) {
  std::map<Key, Sighted> all;
  for (const Checkpoint& one : survey.checkpoints)
    if (!one.are_singles) all[{one.run, one.attempt, one.step}].version = &one;
  for (const LocalEntry& entry : survey.local) {
    if (entry.name.is_single() || !is_written_here(entry.state) || entry.state == State::twin || entry.state == State::evicted) continue;
    all[{entry.run, entry.attempt, entry.name.step}].files.push_back(&entry);
  }
  for (const DrainedCheckpoint& one : survey.drained)
    if (!one.are_singles) all[{one.run, one.attempt, one.step}].drained = &one;
  return all;
}

std::map<std::string, layout::Attempt> last_attempts(const Survey& survey) {
  std::map<std::string, layout::Attempt> last;
  for (const Checkpoint& one : survey.checkpoints) last[one.run] = std::max(last[one.run], one.attempt);
  for (const LocalEntry& entry : survey.local) last[entry.run] = std::max(last[entry.run], entry.attempt);
  return last;
}

Standing facts_of(const Key& key, const Sighted& seen) {
  Standing standing;
  std::tie(standing.run, standing.attempt, standing.step) = key;
  standing.age = {standing.attempt, standing.step, 0, ""};
  standing.drained = seen.drained != nullptr;
  for (const LocalEntry* file : seen.files) {
    standing.ranks = std::max(standing.ranks, file->name.ranks);
    if (standing.why.empty()) standing.why = file->why;
    if (standing.age.written == 0) standing.age = age_of(*file);
  }
  if (!seen.version) return standing;
  standing.ranks = uint32_t(seen.version->files_of_all());
  standing.age = seen.version->age();
  standing.files = seen.version->files.size();
  standing.bytes = seen.version->bytes;
  const auto nodes = seen.version->nodes();
  for (const std::string& node : nodes) standing.nodes.push_back(parse_node_path(node).node);
  return standing;
}

std::string why_given_up(const Checkpoint& one) { return one.removed.empty() ? "" : "the program has removed " + one.removed; }

void judge(Standing& standing, const Sighted& seen, const Survey& survey, const layout::Attempt& last_attempt) {
  const Checkpoint* const one = seen.version;
  const std::string unread = one ? why_unread(*one, survey) : "";
  const bool whole = one && one->whole() && unread.empty();
  if (whole) standing.state = one == newest_read(survey, standing.run) ? "whole" : "superseded", standing.why = why_given_up(*one);
  else if (seen.drained) take_plain(standing, *seen.drained);
  else if (one && !one->rivals.empty()) standing.state = state_name(State::failed), standing.why = rivalry_in(*one, survey);
  else if (!unread.empty() && one->has_all()) standing.state = "damaged", standing.why = unread;
  else if (one && one->has_all()) standing.state = "lost", standing.why = "more nodes are lost than its scheme tolerates";
  else if (standing.attempt < last_attempt) standing.state = "quarantined";
  else standing.state = !seen.files.empty() ? local_state(seen.files) : state_name(State::kept);
  if (one && !one->torn_update.empty() && standing.why.empty())
    standing.why = one->torn_update + " was not written again to its end, and other files of it had been before";
  if (one && standing.why.empty()) standing.why = one->is_emptied ? "all its files are empty" : why_half_written(*one);
  const bool is_late = standing.state == state_name(State::kept) || (standing.state == "quarantined" && one && one->silent_rank());
  if (one && !whole && standing.why.empty() && is_late) standing.why = one->why_not_rolled();
}

}  // namespace

std::vector<Standing> standings_of(const Survey& survey) {
  const auto last_attempt = last_attempts(survey);
  std::vector<Standing> all;
  for (const auto& [key, seen] : all_sighted(survey)) {
    Standing standing = facts_of(key, seen);
    const auto last = last_attempt.find(standing.run);
    judge(standing, seen, survey, last == last_attempt.end() ? layout::Attempt() : last->second);
    all.push_back(std::move(standing));
  }
  add_standings_of_singles(survey, all);
  return all;
}

}  // namespace holdfast::checkpoint
