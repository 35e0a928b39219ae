#include "checkpoint/singles.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "catalog/pool.hpp"
#include "catalog/user_files.hpp"

namespace holdfast::checkpoint {

namespace {

// A file's versions in their order, over all attempts of a run.
using Number = std::pair<layout::Attempt, uint32_t>;
Number number_of(const Protected& one) { return {one.version.attempt, one.version.number}; }
Number number_of(const LocalEntry& entry) { return {entry.attempt, entry.name.number}; }

using File = std::pair<std::string, std::string>;  // run, path

// Up to which number each was removed.
std::map<File, Number> removals(const std::vector<LocalEntry>& local) {
  std::map<File, Number> all;
  for (const LocalEntry& entry : local)
    if (entry.state == State::hidden && entry.name.is_single()) {
      const auto [at, first] = all.emplace(File(entry.run, entry.name.file), number_of(entry));
      if (!first) at->second = std::max(at->second, number_of(entry));
    }
  return all;
}

bool is_removed(const std::map<File, Number>& removed, const File& file, const Number& number) {
  const auto found = removed.find(file);
  return found != removed.end() && number <= found->second;
}

}  // namespace

void leave_out_lost(Checkpoint& singles) {
  for (auto file = singles.files.begin(); file != singles.files.end();) {
    const auto at = file++;
    if (!at->second.readable) singles.lost.push_back(std::move(singles.files.extract(at).mapped()));
  }
}

namespace {

// What is older on the nodes than that, or cannot be read there.
void take_plain(Checkpoint& singles, const std::string& path, const Number& drained) {
  const auto is_of_path = [&](const Protected& one) { return one.version.file == path; };
  const auto seen = std::find_if(singles.files.begin(), singles.files.end(), [&](const auto& file) { return is_of_path(file.second); });
  if (seen != singles.files.end() && number_of(seen->second) >= drained) return;
  const auto lost = std::find_if(singles.lost.begin(), singles.lost.end(), is_of_path);
  Protected plain = seen != singles.files.end() ? seen->second : lost != singles.lost.end() ? *lost : Protected();
  if (plain.file_id.empty()) return;  // nobody would take anything else for it
  if (seen != singles.files.end()) singles.files.erase(seen);
  if (lost != singles.lost.end()) singles.lost.erase(lost);
  singles.older.push_back(plain);
  std::tie(plain.version.attempt, plain.version.number) = drained;
  plain.readable = false;
  singles.plain.push_back(std::move(plain));
}

}  // namespace

void take_plain(std::vector<Checkpoint>& all, const std::vector<DrainedCheckpoint>& drained, const std::vector<LocalEntry>& local) {
  const auto removed = removals(local);
  for (Checkpoint& singles : all)
    for (const DrainedCheckpoint& record : drained) {
      if (!singles.are_singles || !record.are_singles || record.run != singles.run) continue;
      for (const DrainedFile& file : record.files)
        if (const auto number = file.number(); number && !is_removed(removed, {record.run, file.path}, *number))
          take_plain(singles, file.path, *number);
    }
}

std::vector<Protected> take_removed(std::vector<Protected>& found, const std::vector<LocalEntry>& local) {
  std::vector<Protected> taken;
  const auto removed = removals(local);
  if (removed.empty()) return taken;
  const auto stays = std::stable_partition(found.begin(), found.end(), [&](const Protected& one) {
    return !one.version.is_single() || !is_removed(removed, {one.version.run, one.version.file}, number_of(one));
  });
  taken.assign(std::make_move_iterator(stays), std::make_move_iterator(found.end()));
  found.erase(stays, found.end());
  return taken;
}

// Two of one number go together: one may just be made anew from the other.
void add_outdated(const Checkpoint& singles, size_t keep, std::vector<Protected>& gone) {
  std::map<std::string, std::map<Number, std::vector<const Protected*>, std::greater<>>> files;
  const auto add = [&](const Protected& one) { files[one.version.file][number_of(one)].push_back(&one); };
  for (const auto& [place, file] : singles.files) add(file);
  for (const auto* some : {&singles.older, &singles.lost}) std::for_each(some->begin(), some->end(), add);
  for (const auto& [path, versions] : files) {
    size_t kept = 0;
    for (const auto& [number, same] : versions) {
      if (kept >= keep) std::transform(same.begin(), same.end(), std::back_inserter(gone), [](const Protected* one) { return *one; });
      kept += std::any_of(same.begin(), same.end(), [](const Protected* one) { return one->readable && one->endures; });
    }
  }
}

std::vector<std::string> gone_back(const Checkpoint& singles) {
  std::vector<std::string> paths;
  const auto look_at = [&](const Protected& file) {
    const auto is_newer = [&](const Protected& one) { return one.version.file == file.version.file && number_of(file) < number_of(one); };
    if (std::any_of(singles.older.begin(), singles.older.end(), is_newer)) paths.push_back(file.version.file);
  };
  for (const auto& [place, file] : singles.files) look_at(file);
  std::for_each(singles.plain.begin(), singles.plain.end(), look_at);
  return paths;
}

namespace {

Status note_on(target::Target& target, const std::string& of_attempt, const std::vector<std::string>& names) {
  const std::string hidden = fmt::format("{}/{}", of_attempt, state_name(State::hidden));
  for (const std::string& directory : {std::string(local_directory), catalog::parent_of(of_attempt), of_attempt, hidden})
    HF_TRY(target.make_directory(directory));
  for (const std::string& name : names) HF_TRY(target.put(fmt::format("{}/{}", hidden, name), {}, false));
  return {};
}

}  // namespace

bool remembers_removed(const Survey& survey, const std::string& run) {
  return std::any_of(survey.local.begin(), survey.local.end(),
                     [&](const LocalEntry& entry) { return entry.run == run && entry.state == State::hidden && entry.name.is_single(); });
}

namespace {

// How many nodes may keep silent, and each version that endures is seen all the same: by what there is of this run.
size_t may_be_silent(const Survey& survey, const std::string& run) {
  std::optional<int> fewest;
  for (const catalog::FoundVersion& one : survey.versions)
    if (one.manifest.version->run == run) fewest = std::min(fewest.value_or(layout::max_members), one.manifest.geometry.scheme.m);
  return size_t(fewest.value_or(0));
}

}  // namespace

// What was written since, though not protected, is as lost as if it had not been removed before. Where too many nodes do not answer these may have a version
// that was written after the removal: then the earlier notes have to do, when an attempt begins.
void note_removed(const Survey& survey, const Run& run, uint64_t deadline_ms) {
  if (survey.silent.size() > may_be_silent(survey, run.id)) return;
  std::set<std::string> there;
  for (const Checkpoint& one : survey.checkpoints)
    if (one.are_singles && one.run == run.id) {
      for (const auto& [place, file] : one.files) there.insert(file.version.file);
      for (const auto* some : {&one.lost, &one.plain})
        for (const Protected& file : *some) there.insert(file.version.file);
    }
  const auto removed = removals(survey.local);
  for (const DrainedCheckpoint& one : survey.drained)
    for (const DrainedFile& file : one.files)  // of which no node that answers has anything else
      if (const auto number = file.number(); one.run == run.id && number && !is_removed(removed, {run.id, file.path}, *number))
        there.insert(file.path);
  std::vector<std::string> names;
  for (const auto& [file, number] : removed) {
    const auto name = encode(LocalName{.ranks = 0, .number = 0, .file = file.second});
    if (file.first == run.id && name && !there.contains(file.second)) names.push_back(*name);
  }
  const auto pool = names.empty() ? Status(Kind::not_found, "") : catalog::look_at_pool(run.nodes, deadline_ms);
  if (!pool) return;
  std::vector<std::shared_ptr<target::Ticket>> asked;
  for (const catalog::Member& member : pool->members)
    if (member.usable())
      asked.push_back(member.lane->submit(
          [=, target = member.target, of_attempt = directory_of_attempt(run.id, run.attempt)] { return note_on(*target, of_attempt, names); }));
  for (const auto& ticket : asked) (void)ticket->wait();
}

std::map<std::string, LocalEntry> unprotected_singles(const Survey& survey, const std::string& run, const layout::Attempt& attempt) {
  std::map<std::string, LocalEntry> left;
  const auto removed = removals(survey.local);
  for (const LocalEntry& entry : survey.local) {
    const bool is_open = entry.name.is_single() && !is_settled(entry.state) && entry.run == run && entry.attempt == attempt;
    if (!is_open || is_removed(removed, {run, entry.name.file}, number_of(entry))) continue;
    const auto [at, first] = left.emplace(entry.name.file, entry);
    if (!first && at->second.name.number < entry.name.number) at->second = entry;
  }
  for (const Checkpoint& one : survey.checkpoints)
    for (const auto& [place, file] : one.files)
      if (const auto found = left.find(file.version.file); one.are_singles && one.run == run && found != left.end())
        if (number_of(found->second) <= number_of(file)) left.erase(found);
  return left;
}

namespace {

Standing standing_of(const Protected& file, bool is_readable) {
  Standing standing;
  standing.state = is_readable ? state_name(State::kept) : "lost";
  if (!is_readable) standing.why = "more nodes are lost than its scheme tolerates";
  standing.files = 1, standing.bytes = file.bytes;
  standing.attempt = file.version.attempt, standing.run = file.version.run, standing.file = file.version.file;
  standing.age = {file.version.attempt, 0, file.version.written, file.written_on()};
  for (const std::string& node : std::set<std::string>(file.on.begin(), file.on.end())) standing.nodes.push_back(parse_node_path(node).node);
  return standing;
}

// Of the last attempt its state counts, for it is to become the newest version. What an earlier one has left is nobody's.
void add_local(Standing& standing, const LocalEntry& entry, bool is_of_last_attempt) {
  if (is_of_last_attempt) standing.state = state_name(entry.state), standing.why = entry.why;
  else if (standing.files == 0) standing.state = "quarantined";
  else standing.why = "what was written later is not protected";
  if (standing.files == 0) standing.attempt = entry.attempt, standing.run = entry.run, standing.file = entry.name.file;
}

}  // namespace

namespace {

// Where it is no more what the program has left it is not told.
void add_drained(Standing& standing, const DrainedCheckpoint& record, const DrainedFile& file, const std::string& newest) {
  if (!newest.empty() && newest != file.version) return;
  standing.drained = true;
  if (!standing.state.empty()) return;
  standing.state = "drained", standing.why.clear(), standing.files = 1, standing.bytes = file.state.size;
  standing.attempt = record.attempt, standing.run = record.run, standing.file = file.path;
}

}  // namespace

void add_standings_of_singles(const Survey& survey, std::vector<Standing>& all) {
  std::map<File, Standing> files;
  std::map<File, std::string> newest;
  std::map<std::string, layout::Attempt> last;
  for (const auto& [run, attempts] : survey.attempts)
    if (!attempts.empty()) last[run] = *attempts.rbegin();
  for (const Checkpoint& one : survey.checkpoints) {
    if (!one.are_singles) continue;
    const auto add = [&](const Protected& file, bool is_readable) {
      files[{one.run, file.version.file}] = standing_of(file, is_readable);
      newest[{one.run, file.version.file}] = version_drained(file.version);
    };
    for (const auto& [place, file] : one.files) add(file, true);
    for (const Protected& file : one.lost) add(file, false);
    for (const Protected& file : one.plain) add(file, false), files[{one.run, file.version.file}].state.clear();  // for what is drained
  }
  for (const auto& [run, attempts] : survey.attempts)
    for (const layout::Attempt& attempt : attempts)
      for (const auto& [path, entry] : unprotected_singles(survey, run, attempt)) add_local(files[{run, path}], entry, attempt == last[run]);
  for (const DrainedCheckpoint& one : survey.drained)
    for (const DrainedFile& file : one.files)
      if (const File of{one.run, file.path}; one.are_singles) add_drained(files[of], one, file, newest[of]);
  for (auto& [file, standing] : files) all.push_back(std::move(standing));
}

}  // namespace holdfast::checkpoint
