#include "checkpoint/attempt.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <span>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "catalog/pool.hpp"
#include "catalog/user_files.hpp"
#include "catalog/versions.hpp"
#include "checkpoint/local.hpp"
#include "checkpoint/protect.hpp"
#include "checkpoint/roll.hpp"
#include "checkpoint/updates.hpp"

namespace holdfast::checkpoint {

layout::Attempt last_attempt(const Survey& survey, const std::string& run) {
  layout::Attempt last = 0;
  const auto take = [&](const layout::Attempt& one) { last = {std::max(last.number, one.number), std::max(last.id, one.id)}; };
  for (const Checkpoint& one : survey.checkpoints)
    if (one.run == run) take(one.attempt);
  if (const auto found = survey.attempts.find(run); found != survey.attempts.end())
    for (const layout::Attempt& one : found->second) take(one);
  for (const DrainedCheckpoint& one : survey.drained)
    if (one.run == run) take(one.attempt);
  return last;
}

layout::Attempt next_attempt(const Survey& survey, const std::string& run, const layout::Attempt& last_begun, uint64_t drawn) {
  constexpr int bits = drawn_bits_of_attempt;
  const layout::Attempt known = last_attempt(survey, run);
  const uint64_t before = std::max(known.id, last_begun.id) >> bits, latest = ~uint64_t(0) >> bits;
  const uint64_t time = std::max(drawn >> bits, std::min(before + 1, latest));
  return {std::max(known.number, last_begun.number) + 1, time << bits | (drawn & ((uint64_t(1) << bits) - 1))};
}

std::string latest_run(const Survey& survey) {
  std::string latest;
  const auto take = [&](const std::string& run) {
    if (is_run(run) && latest < run) latest = run;
  };
  for (const Checkpoint& one : survey.checkpoints) take(one.run);
  for (const DrainedCheckpoint& one : survey.drained) take(one.run);
  return latest;
}

namespace {

// Its plain files are of a checkpoint that nobody is to begin with: the program has removed that (given_up.hpp), or they are of a part of it.
bool is_passed_over(const Survey& survey, const DrainedCheckpoint& drained) {
  const auto is_given_up = [&](const Checkpoint& one) {
    return one.run == drained.run && one.attempt == drained.attempt && one.step == drained.step && !one.removed.empty();
  };
  return is_drained_in_part(drained, survey.checkpoints) || std::any_of(survey.checkpoints.begin(), survey.checkpoints.end(), is_given_up);
}

}  // namespace

Beginning beginning_of(const Survey& survey, const std::string& run) {
  Beginning begun;
  Ages ages;
  if (const Checkpoint* const newest = newest_whole(survey.checkpoints, run)) {
    begun = {from_of(*newest), newest->age()};
    ages = newest->ages();
  }
  for (const DrainedCheckpoint& one : survey.drained)
    if (one.run == run && !one.are_singles && !is_passed_over(survey, one) && (!begun.from || is_before(ages, one.ages()))) {
      begun = {Run::From{one.attempt, one.step, true}, one.age()};
      ages = one.ages();
    }
  return begun;
}

namespace {

constexpr uint64_t most_program_bytes = 4096;

std::string program_note(const std::string& run) { return fmt::format("{}/{}/program", local_directory, run); }

constexpr std::string_view ended_well_begins = "ended.", over_begins = "over.";
constexpr const char* all_is_plain = "plain";

std::string note_of_end(const Run& run, std::string_view begins) {
  return fmt::format("{}/{}/{}{}", local_directory, run.id, begins, layout::text_of(run.attempt));
}

std::string own_note_of_end(const Run& run, std::string_view begins, const std::string& own) {
  return fmt::format("{}/{}", parse_node_path(own).path, note_of_end(run, begins));
}

// On all nodes that answer, beside the run's attempts.
void put_note(const std::string& at, const std::string& text, const std::vector<std::string>& nodes, uint64_t deadline_ms) {
  const auto pool = catalog::look_at_pool(nodes, deadline_ms);
  if (!pool) return;
  std::vector<std::shared_ptr<target::Ticket>> noted;
  for (const catalog::Member& member : pool->members)
    if (member.usable())
      noted.push_back(member.lane->submit([target = member.target, at, text] {
        for (const std::string& directory : {std::string(local_directory), catalog::parent_of(at)}) HF_TRY(target->make_directory(directory));
        return target->put(at, std::as_bytes(std::span(text)), false);
      }));
  for (const auto& ticket : noted) (void)ticket->wait();
}

}  // namespace

void note_program(const std::string& run, const std::string& program, const std::vector<std::string>& nodes, uint64_t deadline_ms) {
  put_note(program_note(run), program, nodes, deadline_ms);
}

void note_over(const Run& run, uint64_t deadline_ms) { put_note(note_of_end(run, over_begins), "", run.nodes, deadline_ms); }
bool is_over(const Run& run, const std::string& own) { return catalog::look(own_note_of_end(run, over_begins, own), false).ok(); }

void note_ended_well(const Run& run, bool is_plain, uint64_t deadline_ms) {
  put_note(note_of_end(run, ended_well_begins), is_plain ? all_is_plain : "", run.nodes, deadline_ms);
}

bool is_all_plain(const Run& run, const std::string& own) {
  const auto text = catalog::read_beginning(own_note_of_end(run, ended_well_begins, own), std::strlen(all_is_plain));
  return text && *text == all_is_plain;
}

Status remove_attempts(target::Target& target, const std::string& directory) {
  const auto names = target.list(directory);
  if (!names) return names.status();
  Status first;
  for (const std::string& name : *names) {
    if (!layout::parse_attempt(name)) continue;
    const Status removed = target.remove_directory(fmt::format("{}/{}", directory, name));
    if (first.ok()) first = removed;
  }
  return first;
}

std::optional<layout::Attempt> attempt_ended_well(std::string_view name) {
  if (!name.starts_with(ended_well_begins)) return {};
  return layout::parse_attempt(name.substr(ended_well_begins.size()));
}

std::string noted_program(const std::string& run, const std::vector<std::string>& nodes, uint64_t deadline_ms) {
  const auto pool = catalog::look_at_pool(nodes, deadline_ms);
  if (!pool) return "";
  for (const catalog::Member& member : pool->members) {
    if (!member.usable()) continue;
    const auto found = std::make_shared<std::string>();
    const Status read = member.lane->run([target = member.target, at = program_note(run), found] {
      const auto text = target->get(at, most_program_bytes);
      if (text) found->assign(reinterpret_cast<const char*>(text->data()), text->size());
      return text.status();
    });
    if (read && !found->empty()) return *found;
  }
  return "";
}

void note_beginning(const Survey& survey, const Run& run, uint64_t deadline_ms) {
  if (!run.from || !run.from->drained) return;
  for (const DrainedCheckpoint& one : survey.drained)
    if (one.run == run.id && one.attempt == run.from->attempt && one.step == run.from->step) (void)keep_record(one, run.nodes, deadline_ms, true);
}

void make_directories(const Run& run, const Patterns& patterns) {
  for (const Pattern& pattern : patterns.all())
    if (const std::string directory = pattern.directory(); run.from && !directory.empty()) (void)catalog::make_with_parents(directory);
}

const Checkpoint* unreadable_after(const Survey& survey, const std::string& run, const Age& begun, const std::string& later_run) {
  const Checkpoint* lost = nullptr;
  for (const Checkpoint& one : survey.checkpoints) {  // ascending
    const bool is_newer = one.run == run ? is_before(begun, one.age()) : one.run == later_run;
    if (is_newer && one.has_all() && one.rivals.empty() && !one.whole()) lost = &one;
  }
  return lost;
}

bool may_have_ranks(const std::string& node, const Survey& survey, const Run& run, const Checkpoint& newest, const Patterns& patterns) {
  std::set<std::string> silent(survey.silent.begin(), survey.silent.end());
  silent.insert(node);
  if (are_all_ranks_heard(survey, run, silent)) return false;
  if (has_written(node, survey, run) || newest.run != run.id || newest.attempt != run.attempt || !newest.whole()) return true;
  const auto& all = patterns.all();
  const bool have_files = std::any_of(all.begin(), all.end(), [](const Pattern& one) { return one.has_rank() && !one.is_open(); });
  const bool are_own = std::all_of(newest.files.begin(), newest.files.end(), [](const auto& file) {
    return file.second.version.writers > 0 || file.second.version.writer == 0;  // else it says nothing of its rank's node
  });
  const bool have_rolls = newest.writers > 0 && newest.rolls.size() == newest.writers;
  return !(have_files && are_own) && !have_rolls;
}

namespace {

std::optional<Checkpoint> begun_among(const std::vector<catalog::FoundVersion>& found, const Run& run, bool with_older) {
  if (!run.from || run.from->drained) return {};
  std::vector<catalog::FoundVersion> begun;
  for (const catalog::FoundVersion& one : found) {
    const layout::Version& version = *one.manifest.version;
    if (!is_of(version, run.id, *run.from) || version.attempt == run.attempt || is_later_than(version, one.manifest.file_id, *run.from)) continue;
    if (with_older || !is_older_than(version, *run.from)) begun.push_back(one);
  }
  auto all = checkpoints_of(protected_of(begun));
  return all.empty() ? Checkpoint() : std::move(all.front());
}

}  // namespace

std::optional<Checkpoint> beginning_and_older(const std::vector<catalog::FoundVersion>& found, const Run& run) {
  return begun_among(found, run, true);
}
std::optional<Checkpoint> beginning_among(const std::vector<catalog::FoundVersion>& found, const Run& run) { return begun_among(found, run, false); }

bool has_all_of_beginning(const std::vector<catalog::FoundVersion>& found, const Run& run) {
  const auto begun = beginning_among(found, run);
  return !begun || begun->whole();
}

bool is_past_beginning(const std::vector<catalog::FoundVersion>& found, const Run& run) {
  std::vector<catalog::FoundVersion> own;
  for (const catalog::FoundVersion& one : found)
    if (const layout::Version& version = *one.manifest.version; version.run == run.id && version.attempt == run.attempt && !version.is_single())
      own.push_back(one);
  if (own.empty()) return false;
  const auto all = checkpoints_of(protected_of(own));
  return std::any_of(all.begin(), all.end(), [](const Checkpoint& one) { return one.whole(); });
}

namespace {

std::string note_of_giving_way(const Run& run) { return fmt::format("{}/{}", directory_of_attempt(run.id, run.attempt), gave_way); }

}  // namespace

void note_giving_way(const std::vector<Protected>& old, const Run& run, const Settings& settings) {
  const auto is_of_beginning = [&](const Protected& one) { return !one.version.is_single() && is_of(one.version, run.id, *run.from); };
  if (!run.from || run.from->drained || std::none_of(old.begin(), old.end(), is_of_beginning)) return;
  const auto pool = catalog::look_at_pool(settings.local, settings.deadline_ms);
  if (!pool) return;
  for (const catalog::Member& member : pool->members)
    if (member.usable())
      (void)member.lane->run([target = member.target, at = note_of_giving_way(run)] {
        const Status put = target->put(at, {}, false);
        if (put.kind() != Kind::not_found) return put;
        for (const std::string& directory : {std::string(local_directory), catalog::parent_of(catalog::parent_of(at)), catalog::parent_of(at)})
          (void)target->make_directory(directory);
        return target->put(at, {}, false);
      });
}

bool has_given_way(const Run& run, const std::string& own, const Settings& settings) {
  const std::string at = note_of_giving_way(run);
  if (catalog::look(fmt::format("{}/{}", parse_node_path(own).path, at), false)) return true;
  const auto pool = catalog::look_at_pool(run.nodes, settings.deadline_ms);
  return pool && std::any_of(pool->members.begin(), pool->members.end(), [&](const catalog::Member& member) {
           return member.usable() && member.lane->run([target = member.target, at] { return target->get(at, 1).status(); }).ok();
         });
}

namespace {

struct LocalPaths {
  std::string copy, twin, evicted, memory;
};

std::optional<LocalPaths> local_paths_of(const layout::Version& version) {
  const auto name = encode(name_of(version));
  if (!name) return {};
  const auto in = [&](State state) { return fmt::format("{}/{}/{}", directory_of_attempt(version.run, version.attempt), state_name(state), *name); };
  return LocalPaths{in(State::kept), in(State::twin), in(State::evicted), in(State::dropped)};
}

using Numbers = std::map<std::string, uint32_t>;  // by path

// Of those of this attempt, whose files nodes may have fetched.
Numbers numbers_of(std::span<const layout::Manifest> stored_together, const layout::Attempt& attempt_now) {
  Numbers numbers;
  for (const layout::Manifest& one : stored_together)
    if (const layout::Version& version = *one.version; version.attempt == attempt_now && !version.is_single()) {
      uint32_t& number = numbers[version.file];
      number = std::max(number, version.number);
    }
  return numbers;
}

// What was fetched of these files there, and of what the attempt began with in their places: their ranks may have had other numbers.
void drop_restored(target::Target& target, const std::string& directory, const Numbers& numbers) {
  const auto names = numbers.empty() ? Result<std::vector<std::string>>(std::vector<std::string>()) : target.list(directory);
  if (!names) return;
  for (const std::string& text : *names) {
    const auto name = decode_local_name(text);
    const auto dropped = name ? numbers.find(name->file) : numbers.end();
    if (dropped != numbers.end() && name->number <= dropped->second) (void)target.remove(directory + "/" + text);
  }
}

// On a full disk the copy has to go first. Where there is a twin its name is remembered as well.
Status drop_local(target::Target& target, const LocalPaths& paths, bool remembers) {
  const bool was_twin = target.remove(paths.twin).ok();
  (void)target.remove(paths.evicted);
  if (!remembers && !was_twin) return target.remove(paths.copy);
  const bool put = target.put(paths.memory, {}, false).ok();
  const Status gone = target.remove(paths.copy);
  return put ? gone : target.put(paths.memory, {}, false);
}

}  // namespace

Status drop(std::span<const layout::Manifest> stored_together, const layout::Attempt& attempt_now, const Settings& settings) {
  const layout::Manifest& any = stored_together.front();
  const Status gone = catalog::remove_version(catalog::locate_version(any, settings));
  const auto pool = catalog::look_at_pool(settings.local, settings.deadline_ms);
  if (!pool) return gone;
  const Numbers numbers = numbers_of(stored_together, attempt_now);
  const std::string restored = fmt::format("{}/{}", directory_of_attempt(any.version->run, attempt_now), state_name(State::restored));
  for (const catalog::Member& member : pool->members) {
    if (!member.usable()) continue;
    std::vector<std::pair<LocalPaths, bool>> all;  // and whether it is remembered
    for (const layout::Manifest& one : stored_together)
      if (auto paths = local_paths_of(*one.version)) {
        const bool remembers = one.version->attempt == attempt_now && one.file_id.ends_with(catalog::digits_of_node(member.path));
        all.emplace_back(std::move(*paths), remembers);
      }
    (void)member.lane->run([target = member.target, all = std::move(all), restored, numbers] {
      for (const auto& [paths, remembers] : all) (void)drop_local(*target, paths, remembers);
      drop_restored(*target, restored, numbers);
      return Status();
    });
  }
  return gone;
}

}  // namespace holdfast::checkpoint
