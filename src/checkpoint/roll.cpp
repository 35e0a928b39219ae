#include "checkpoint/roll.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "catalog/pool.hpp"
#include "catalog/user_files.hpp"
#include "catalog/versions.hpp"
#include "checkpoint/moved.hpp"
#include "checkpoint/protect.hpp"
#include "checkpoint/untouched.hpp"

namespace holdfast::checkpoint {

namespace {

// The newest of each file, but of those that were removed.
class Listed {
 public:
  void remove(const LocalName& name) {
    uint32_t& number = removed_[name.file];
    number = std::max(number, name.number);
  }
  void add(const LocalName& name) {
    const auto [at, first] = newest_.try_emplace(name.file, name);
    if (!first && std::tie(at->second.number, at->second.written) < std::tie(name.number, name.written)) at->second = name;
  }
  std::vector<LocalName> take() {
    std::vector<LocalName> all;
    for (auto& [file, name] : newest_)
      if (const auto gone = removed_.find(file); gone == removed_.end() || gone->second < name.number) all.push_back(std::move(name));
    return all;
  }

 private:
  std::map<std::string, LocalName> newest_;
  std::map<std::string, uint32_t> removed_;
};

uint64_t last_written(const std::vector<LocalName>& names) {
  uint64_t last = 0;
  for (const LocalName& name : names) last = std::max(last, name.written);
  return last;
}

// The nodes that have lost power in this attempt: programs sync no names, so some may be gone.
std::set<std::string> nodes_started_anew(const Run& run, const Settings& settings) {
  std::set<std::string> nodes;
  const auto pool = catalog::look_at_pool(run.nodes, settings.deadline_ms);
  if (!pool) return nodes;
  const std::string at = directory_of_attempt(run.id, run.attempt);
  std::vector<std::pair<std::string, std::shared_ptr<target::Ticket>>> asked;
  for (const catalog::Member& member : pool->members)
    if (member.usable())
      asked.emplace_back(member.path, member.lane->submit([target = member.target, at]() -> Status {
        const auto names = target->list(at);
        if (!names) return names.status().kind() == Kind::not_found ? Status() : names.status();
        return std::count(names->begin(), names->end(), started_anew) ? Status(Kind::lost, "") : Status();
      }));
  for (auto& [node, ticket] : asked)
    if (!ticket->wait()) nodes.insert(node);
  return nodes;
}

// What the nodes have of the attempt's checkpoint. A file that goes on to its next state while its node is listed may be missed once.
// `but`: a name that the file which completes it had before, and may have still.
Result<std::vector<LocalName>> listed_on(const Run& run, uint64_t step, const Settings& settings, const std::vector<std::string>& unknown = {},
                                         const std::optional<LocalName>& but = {}) {
  Listed all;
  if (but) all.remove(*but);
  for (int time = 0; time < 2; ++time) {
    const auto survey = Surveyor(run.nodes, settings.deadline_ms).look(run.id);
    if (!survey) return survey.status();
    std::set<std::string> silent = nodes_started_anew(run, settings);
    for (const auto* nodes : {&survey->lost, &survey->unknown, &unknown}) silent.insert(nodes->begin(), nodes->end());
    if (!silent.empty() && !are_all_ranks_heard(*survey, run, silent)) {
      const std::string& one = *silent.begin();
      return Status(Kind::lost,
                    fmt::format("node {} does not answer, was started anew or has no protector, and nobody knows what it has had of checkpoint {}",
                                node_of(one), step));
    }
    for (const LocalEntry& entry : survey->local) {
      if (entry.attempt != run.attempt || entry.name.step != step || entry.name.kind != LocalName::of_user) continue;
      if (entry.state == State::hidden) all.remove(entry.name);
      else if (is_written_here(entry.state) && !entry.is_untouched) all.add(entry.name);
    }
    for (const catalog::FoundVersion& one : survey->versions)
      if (const layout::Version& v = *one.manifest.version; v.run == run.id && v.attempt == run.attempt && v.step == step && !v.roll)
        all.add(name_of(v));
  }
  return all.take();
}

// As listed on its own node, and what the rank has written with others together, which is on the nodes alone.
Result<std::vector<LocalName>> listed_of(const LocalFiles& files, const LocalName& completing, const Run& run, const Settings& settings,
                                         const std::optional<LocalName>& but) {
  Listed all;
  if (but) all.remove(*but);
  const auto own = of_rank(files, completing.writer).files;
  if (const auto here = own.find(completing.step); here != own.end())
    for (const LocalName& name : here->second) all.add(name);
  const auto found = catalog::VersionList().look(run.nodes, settings.deadline_ms);
  if (!found) return found.status();
  for (const catalog::FoundVersion& one : *found) {
    const layout::Version& v = *one.manifest.version;
    const bool is_own = v.writers > 0 && v.writer == completing.writer && !v.roll;
    if (v.run == run.id && v.attempt == run.attempt && v.step == completing.step && is_own) all.add(name_of(v));
  }
  return all.take();
}

// Of a file that is being renamed, which is protected under its new name.
std::optional<LocalName> name_before(const LocalFiles& files, const LocalName& name) {
  auto others = other_names(files, files.path(State::protecting, name), {State::closed, State::protecting, State::kept, State::restored});
  const auto before = std::find_if(others.begin(), others.end(),
                                   [&](const LocalFile& other) { return other.name.file != name.file && other.name.step == name.step; });
  return before == others.end() ? std::nullopt : std::optional(std::move(before->name));
}

LocalName roll_name(LocalName of, LocalName::Kind kind, uint64_t written) {
  of.kind = kind;
  of.rank = of.ranks;  // it has no place
  if (kind == LocalName::roll_of_all) of.writer = 0;
  of.file = kind == LocalName::roll_of_all ? fmt::format("/roll.{}.of.all", of.step) : fmt::format("/roll.{}.of.{}", of.step, of.writer);
  of.written = std::max<uint64_t>(written, 1);
  return of;
}

Result<std::string> content_of(const std::vector<LocalName>& listed) {
  std::string content;
  for (const LocalName& name : listed) {
    const auto text = encode(name);
    if (!text) return text.status();
    content += *text + '\0';
  }
  return content;
}

layout::Roll roll_of(const std::vector<LocalName>& listed, bool of_all) {
  layout::Roll roll;
  roll.of_all = of_all;
  for (const LocalName& name : listed) roll.files.push_back({name.file, std::max(name.number, 1u), name.written});
  return roll;
}

// Among what is closed: it is protected as that is.
Status put(const LocalFiles& files, const LocalName& name, const std::vector<LocalName>& listed) {
  const auto content = content_of(listed);
  return content ? catalog::replace_file(files.path(State::closed, name), files.scratch(), *content, 0600, false) : content.status();
}

}  // namespace

OfRank of_rank(const LocalFiles& files, uint32_t rank) {
  std::map<uint64_t, Listed> listed;
  OfRank all;
  const auto untouched = Untouched(files).noted();
  for (const State state : all_states) {
    if (!is_written_here(state) && state != State::dropped && state != State::hidden) continue;
    for (const LocalName& name : files.list(state)) {
      if (state == State::hidden) {
        if (const auto here = listed.find(name.step); here != listed.end()) here->second.remove(name);
        continue;
      }
      const bool is_roll = name.kind == LocalName::roll_of_rank;
      if (name.writers == 0 || name.writer != rank || (!is_roll && (name.kind != LocalName::of_user || state == State::dropped))) continue;
      if (!is_roll && is_untouched(state, name, untouched)) continue;
      if (!is_roll) listed[name.step].add(name);
      else if (auto [at, first] = all.rolls.try_emplace(name.step, name); !first && at->second.number < name.number) at->second = name;
    }
  }
  for (auto& [step, names] : listed) all.files[step] = names.take();
  return all;
}

Status roll(const LocalFiles& files, const OfRank& rank, const LocalName& of, const std::vector<LocalName>& listed) {
  const auto last = rank.rolls.find(of.step);
  LocalName name = roll_name(of, LocalName::roll_of_rank, last_written(listed));
  if (last != rank.rolls.end() && last->second.written >= name.written) return {};
  name.number = last == rank.rolls.end() ? 1 : last->second.number + 1;
  HF_TRY(files.make());
  return put(files, name, listed);
}

Status roll_completed(const LocalFiles& files, const LocalName& completing, bool of_all, const Run& run, const Settings& settings) {
  const auto before = name_before(files, completing);
  const auto listed = of_all ? listed_on(run, completing.step, settings, {}, before) : listed_of(files, completing, run, settings, before);
  if (!listed) return listed.status();
  // Of the same number as that file: it is made as often, and by a protector that is started anew once more.
  return put(files, roll_name(completing, of_all ? LocalName::roll_of_all : LocalName::roll_of_rank, completing.written), *listed);
}

namespace {

// Those of the attempt of which a file was dropped, and not written anew since. What a node that was away still has of one is not all of it.
std::set<uint64_t> dropped_steps(const Survey& survey, const Run& run) {
  std::map<std::string, uint32_t> newest, dropped;
  std::map<std::string, uint64_t> steps;
  const auto note = [](std::map<std::string, uint32_t>& numbers, const std::string& file, uint32_t number) {
    numbers[file] = std::max(numbers[file], number);
  };
  for (const LocalEntry& entry : survey.local) {
    if (entry.attempt != run.attempt || entry.name.kind != LocalName::of_user) continue;
    if (entry.state == State::dropped) note(dropped, entry.name.file, entry.name.number), steps[entry.name.file] = entry.name.step;
    else if (is_written_here(entry.state) && !entry.is_untouched) note(newest, entry.name.file, entry.name.number);
  }
  for (const catalog::FoundVersion& one : survey.versions)
    if (const layout::Version& v = *one.manifest.version; v.run == run.id && v.attempt == run.attempt && !v.roll) note(newest, v.file, v.number);
  std::set<uint64_t> all;
  for (const auto& [file, number] : dropped)
    if (const auto other = newest.find(file); other == newest.end() || other->second <= number) all.insert(steps.at(file));
  return all;
}

}  // namespace

std::vector<Status> roll_ended(const Run& run, const Settings& settings, const std::vector<std::string>& unknown) {
  const auto survey = Surveyor(run.nodes, settings.deadline_ms).look(run.id);
  if (!survey) return {survey.status()};
  std::map<uint64_t, LocalName> steps;  // any file of each
  for (const LocalEntry& entry : survey->local)
    if (entry.attempt == run.attempt && entry.name.writers > 0 && is_written_here(entry.state)) steps.try_emplace(entry.name.step, entry.name);
  for (const Checkpoint& one : survey->checkpoints)
    if (one.run == run.id && one.attempt == run.attempt && !one.files.empty() && one.writers > 0)
      steps.insert_or_assign(one.step, name_of(one.files.begin()->second.version));
  for (const uint64_t step : dropped_steps(*survey, run)) steps.erase(step);
  std::vector<Status> remarks;
  for (const auto& [step, name] : steps) {
    const auto is_it = [&, of = step](const Checkpoint& one) { return one.run == run.id && one.attempt == run.attempt && one.step == of; };
    const auto one = std::find_if(survey->checkpoints.begin(), survey->checkpoints.end(), is_it);
    const bool is_rolled = one != survey->checkpoints.end() && one->is_rolled();
    const auto listed = listed_on(run, step, settings, unknown);
    if (!listed && !is_rolled) remarks.push_back(listed.status());
    // A file may have come after its rank's roll.
    const auto has = [&](const LocalName& file) { return one->file_at(file.file) != nullptr; };
    if (!listed || (is_rolled && std::all_of(listed->begin(), listed->end(), has))) continue;
    LocalName of = roll_name(name, LocalName::roll_of_all, last_written(*listed));
    of.turn = of.times = of.fewest = 0;  // no file says it, and what is there may be of two turns
    of.number = one != survey->checkpoints.end() && one->roll_of_all ? one->roll_of_all->version.number + 1 : 1;
    layout::Version version = of.version_in(run);
    version.roll = roll_of(*listed, true);
    if (const auto done = protect_roll(version, run.nodes.front(), settings); !done) remarks.push_back(done.status());
  }
  return remarks;
}

Result<layout::Version> version_of(const LocalName& name, const Run& run, const Patterns& patterns, const std::string& content) {
  layout::Version version = name.version_in(run);
  if (name.kind == LocalName::of_user) {
    version.stem = patterns.stem(name.file);
    return version;
  }
  std::vector<LocalName> listed;
  std::istringstream names(content);
  for (std::string text; std::getline(names, text, '\0');) {
    auto one = decode_local_name(text);
    if (!one) return Status(Kind::corrupt, fmt::format("what is listed of checkpoint {} makes no sense", name.step));
    listed.push_back(std::move(*one));
  }
  version.roll = roll_of(listed, name.kind == LocalName::roll_of_all);
  return version;
}

LocalName name_of(const layout::Version& version) {
  LocalName name{version.step,    version.rank, version.ranks,   version.number, version.file,
                 version.written, version.turn, version.writers, version.writer};
  name.times = version.times, name.fewest = version.fewest;
  if (version.roll) name.kind = version.roll->of_all ? LocalName::roll_of_all : LocalName::roll_of_rank;
  return name;
}

}  // namespace holdfast::checkpoint
