#include "checkpoint/leftovers.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <tuple>

#include <fmt/format.h>

#include "catalog/disk_space.hpp"
#include "catalog/growing.hpp"
#include "catalog/pool.hpp"
#include "catalog/user_files.hpp"
#include "checkpoint/attempt.hpp"
#include "checkpoint/said_once.hpp"
#include "target/lane.hpp"

namespace holdfast::checkpoint {

namespace {

using OnNode = std::function<Status(target::Target&, const std::string& node)>;

// On all that answer, side by side: those where it failed, and those that do not answer.
std::set<std::string> on_each(const std::vector<std::string>& nodes, uint64_t deadline_ms, const OnNode& call) {
  const auto pool = nodes.empty() ? Result<catalog::TargetSet>(catalog::TargetSet()) : catalog::look_at_pool(nodes, deadline_ms);
  if (!pool) return {nodes.begin(), nodes.end()};
  std::set<std::string> failed;
  std::vector<std::pair<std::string, std::shared_ptr<target::Ticket>>> asked;
  for (const catalog::Member& member : pool->members) {
    if (!member.usable()) failed.insert(member.path);
    else asked.emplace_back(member.path, member.lane->submit([=, target = member.target, node = member.path] { return call(*target, node); }));
  }
  for (const auto& [node, ticket] : asked)
    if (!ticket->wait()) failed.insert(node);
  return failed;
}

// On a full disk the copy has to go first.
Status drop_copy(target::Target& target, const LocalEntry& entry, const std::string& name, bool remembers) {
  const auto in = [&entry](State state, const std::string& text) {
    return fmt::format("{}/{}/{}", directory_of_attempt(entry.run, entry.attempt), state_name(state), text);
  };
  const bool put = remembers && target.put(in(State::dropped, name), {}, false).ok();
  const Status gone = target.remove(in(entry.state, name));
  if (remembers && !put) HF_TRY(target.put(in(State::dropped, name), {}, false));
  if (entry.state == State::failed) (void)target.remove(in(entry.state, why_begins + name));
  return gone || gone.kind() == Kind::not_found ? Status() : gone;
}

}  // namespace

std::set<std::string> drop_copies(const std::vector<LocalEntry>& entries, const layout::Attempt& attempt_now, const Settings& settings) {
  const auto by_node = std::make_shared<std::map<std::string, std::vector<LocalEntry>>>();
  std::vector<std::string> nodes;
  for (const LocalEntry& entry : entries) (*by_node)[entry.node].push_back(entry);
  for (const auto& [node, some] : *by_node) nodes.push_back(node);
  return on_each(nodes, settings.deadline_ms, [by_node, attempt_now](target::Target& target, const std::string& node) {
    Status worst;
    for (const LocalEntry& entry : by_node->at(node)) {
      const auto name = encode(entry.name);
      const Status gone = name ? drop_copy(target, entry, *name, is_written_here(entry.state) && entry.attempt == attempt_now) : name.status();
      if (!gone) worst = gone;
    }
    return worst;
  });
}

namespace {

// Of one run, on one node.
class Unneeded {
 public:
  Unneeded(target::Target& target, std::string below, const std::string& attempt) : target_(target), below_(std::move(below) + "/" + attempt) {}

  void remove_never_finished() const {
    for (const std::string& name : list(""))
      if (name.starts_with(scratch_begins) || name.starts_with(described_begins) || name.starts_with(seen_begins) || name == turns_file)
        (void)target_.remove(at(name));
      else if (name.starts_with(team_begins)) (void)target_.remove_directory(at(name));
    (void)target_.remove(at(gave_way));
    (void)target_.remove_directory(at(said_directory));
    (void)target_.remove_directory(at(untouched_directory));
    // Who died with one open may be the reason why its checkpoint is passed over (updates.hpp).
    if (const auto open = list(state_name(State::writing)); !open.empty() && target_.make_directory(at(state_name(State::torn))))
      for (const std::string& name : open) (void)target_.put(in(State::torn, name), {}, false);
    for (const State state : {State::restored, State::twin, State::writing}) (void)target_.remove_directory(at(state_name(state)));
    for (const std::string& name : list(state_name(State::torn))) (void)target_.put(in(State::torn, name), {}, false);
  }
  // Of what it has dropped only itself had to know.
  void remove_where_empty() const {
    const auto holds = [this](State state) { return state != State::dropped && !list(state_name(state)).empty(); };
    if (std::any_of(std::begin(all_states), std::end(all_states), holds) || !list(unread_directory).empty()) return;
    (void)target_.remove_directory(below_);
  }
  void remove(const LocalEntry& entry) const {
    const auto name = encode(entry.name);
    if (!name) return;
    (void)target_.remove(in(entry.state, *name));
    if (entry.state == State::failed) (void)target_.remove(in(entry.state, why_begins + *name));
  }

 private:
  std::string at(const std::string& name) const { return name.empty() ? below_ : below_ + "/" + name; }
  std::string in(State state, const std::string& name) const { return fmt::format("{}/{}/{}", below_, state_name(state), name); }
  std::vector<std::string> list(const std::string& name) const {
    auto names = target_.list(at(name));
    return names ? std::move(*names) : std::vector<std::string>();
  }

  target::Target& target_;
  const std::string below_;
};

// By attempt, file and number.
using WholeOnes = std::set<std::tuple<layout::Attempt, std::string, uint32_t>>;

WholeOnes whole_ones(const Survey& survey, const std::string& run) {
  WholeOnes all;
  for (const Checkpoint& one : survey.checkpoints)
    if (one.run == run && one.endures())
      for (const auto& [place, file] : one.files) all.emplace(file.version.attempt, file.version.file, file.version.number);
  return all;
}

}  // namespace

void forget_unneeded(const Survey& survey, const std::string& run, const layout::Attempt& until, const Age& begun, const Settings& settings) {
  const auto gone = std::make_shared<std::map<std::string, std::vector<LocalEntry>>>();  // by node
  const WholeOnes whole = whole_ones(survey, run);
  for (const LocalEntry& entry : survey.local) {
    if (entry.run != run || entry.attempt >= until) continue;
    const bool is_cached = entry.state == State::kept && whole.contains({entry.attempt, entry.name.file, entry.name.number});
    const bool is_unprotected = entry.state == State::failed || entry.state == State::closed || entry.state == State::protecting;
    if (is_cached || (is_unprotected && begun.attempt.number > 0 && is_before(age_of(entry), begun))) (*gone)[entry.node].push_back(entry);
  }
  std::set<layout::Attempt> with_versions;
  for (const catalog::FoundVersion& one : survey.versions)
    if (one.manifest.version->run == run) with_versions.insert(one.manifest.version->attempt);
  const std::string below = fmt::format("{}/{}", local_directory, run);
  (void)on_each(survey.live, settings.deadline_ms, [=](target::Target& target, const std::string& node) {
    const auto names = target.list(below);
    if (!names) return names.status();
    std::map<layout::Attempt, std::string> past;
    for (const std::string& attempt : *names)
      if (const auto which = layout::parse_attempt(attempt); which && *which < until) past[*which] = attempt;
    for (const auto& [which, attempt] : past) Unneeded(target, below, attempt).remove_never_finished();
    if (const auto here = gone->find(node); here != gone->end())
      for (const LocalEntry& entry : here->second) Unneeded(target, below, text_of(entry.attempt)).remove(entry);
    if (!past.empty()) past.erase(std::prev(past.end()));  // its number says which one comes next
    for (const auto& [which, attempt] : past)
      if (!with_versions.contains(which)) Unneeded(target, below, attempt).remove_where_empty();
    return Status();
  });
}

uint64_t bytes_here(const LocalFiles& files, const LocalName& of) {
  const auto goes_with_it = [&](const LocalName& name) { return of.is_single() ? name.file == of.file : name.step == of.step; };
  uint64_t bytes = 0;
  for (const State state : {State::closed, State::protecting, State::kept})
    for (const LocalName& name : files.list(state))
      if (const auto state_now = goes_with_it(name) ? catalog::look(files.path(state, name), false) : Status(Kind::not_found, ""))
        bytes += state_now->size;
  return bytes;
}

bool has_room(const LocalFiles& files, uint64_t wanted_bytes) {
  const auto bytes = catalog::free_bytes_at(files.directory());
  return !bytes || *bytes >= wanted_bytes;
}

void make_room(const LocalFiles& files, const Run& run, uint64_t wanted_bytes, const std::vector<catalog::FoundVersion>& versions) {
  const auto can_be_read = [&](const LocalName& name) {
    return std::any_of(versions.begin(), versions.end(), [&](const catalog::FoundVersion& one) {
      const layout::Version& version = *one.manifest.version;
      const bool is_it = version.run == run.id && version.attempt == run.attempt && version.file == name.file && version.number == name.number;
      return is_it && one.readable() && one.endures();
    });
  };
  std::vector<LocalName> kept = files.list(State::kept);
  std::sort(kept.begin(), kept.end(), [](const LocalName& a, const LocalName& b) { return a.written < b.written; });
  std::optional<LocalName> newest = kept.empty() ? std::nullopt : std::optional(kept.back());
  for (const State state : {State::closed, State::protecting})
    for (const LocalName& name : files.list(state))
      if (!newest || newest->written < name.written) newest = name;
  for (const LocalName& name : kept) {
    if (has_room(files, wanted_bytes)) return;
    const bool is_current = name.is_single() ? name.file == newest->file : name.step == newest->step;
    if (!is_current && can_be_read(name)) (void)files.evict(name);
  }
}

void remove_unfinished(const std::vector<std::string>& nodes, const std::function<bool(const Unfinished& one)>& is_meant, uint64_t deadline_ms) {
  catalog::remove_growing(
      nodes,
      [is_meant](const std::string& owner) {
        std::istringstream words(owner);
        Unfinished one;
        std::string attempt;
        if (!(words >> one.run >> attempt >> one.step)) return false;  // what ranks write together has no step there
        words >> one.file;
        const auto which = layout::parse_attempt(attempt);
        if (which) one.attempt = *which;
        return which && is_meant(one);
      },
      deadline_ms);
}

void forget_run(const std::string& run, const std::vector<std::string>& nodes, uint64_t deadline_ms) {
  (void)on_each(nodes, deadline_ms, [at = fmt::format("{}/{}", local_directory, run)](target::Target& target, const std::string&) {
    return target.remove_directory(at);
  });
}

}  // namespace holdfast::checkpoint
