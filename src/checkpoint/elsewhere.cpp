#include "checkpoint/elsewhere.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "catalog/environment.hpp"
#include "catalog/pool.hpp"

namespace holdfast::checkpoint {

namespace {

// Of users' files those that `is_meant`, in these states, on all nodes that answer, side by side. `only`: on that address alone, if there is one.
using IsMeant = std::function<bool(State, const LocalName&)>;

std::vector<FoundElsewhere> find_on(target::Target& target, const std::string& address, const std::string& below, const std::vector<State>& states,
                                    const IsMeant& is_meant) {
  std::vector<FoundElsewhere> found;
  for (const State state : states) {
    const auto names = target.list(fmt::format("{}/{}", below, state_name(state)));
    if (!names) continue;
    for (const std::string& text : *names)
      if (auto name = decode_local_name(text); name && name->kind == LocalName::of_user && is_meant(state, *name))
        found.push_back({address, {state, std::move(*name)}});
  }
  return found;
}

std::vector<FoundElsewhere> find_elsewhere(const std::vector<State>& states, const std::string& own, const Run& run, const Settings& settings,
                                           const IsMeant& is_meant, const std::string& only = "") {
  std::vector<FoundElsewhere> found;
  const auto nodes = only.empty() ? run.nodes : std::vector<std::string>{only};
  const auto pool = run.nodes.size() > 1 ? catalog::look_at_pool(nodes, settings.deadline_ms) : Status(Kind::not_found, "");
  if (!pool) return found;
  const std::string below = directory_of_attempt(run.id, run.attempt);
  using Answer = std::shared_ptr<std::vector<FoundElsewhere>>;
  std::vector<std::pair<Answer, std::shared_ptr<target::Ticket>>> asked;
  for (const catalog::Member& member : pool->members) {
    if (!member.usable() || member.path == own) continue;
    const auto here = std::make_shared<std::vector<FoundElsewhere>>();
    asked.emplace_back(here, member.lane->submit([=, target = member.target, address = member.path] {
      *here = find_on(*target, address, below, states, is_meant);
      return Status();
    }));
  }
  for (const auto& [here, ticket] : asked)
    if (ticket->wait()) found.insert(found.end(), here->begin(), here->end());
  return found;
}

// A protector that begins anew gives back what the one before has taken. What was removed stays there, with a note.
std::vector<State> not_protected_yet() { return {State::closed, State::protecting, State::closed, State::hidden}; }

std::map<std::string, LocalName> removed_among(const std::vector<FoundElsewhere>& found) {
  std::map<std::string, LocalName> removed;
  for (const auto& [address, one] : found) {
    if (one.state != State::hidden) continue;
    const auto [at, first] = removed.emplace(one.name.file, one.name);
    if (!first && at->second.number < one.name.number) at->second = one.name;
  }
  return removed;
}

}  // namespace

std::vector<FoundElsewhere> files_elsewhere(const std::string& file, const std::vector<State>& states, const std::string& own, const Run& run,
                                            const Settings& settings) {
  return find_elsewhere(states, own, run, settings, [file](State, const LocalName& name) { return name.file == file; });
}

// In the order in which a file goes from one state to the next.
Elsewhere look_elsewhere(const std::string& file, const std::string& own, const Run& run, const Settings& settings) {
  std::vector<State> states = not_protected_yet();
  states.insert(states.begin(), {State::writing, State::together});
  const auto all = files_elsewhere(file, states, own, run, settings);
  const auto removed = removed_among(all);
  const auto gone = removed.find(file);
  Elsewhere found;
  for (const auto& [address, one] : all)
    if (one.state == State::writing || one.state == State::together) found.writing = node_of(address);
    else if (one.state != State::hidden && (gone == removed.end() || one.name.number > gone->second.number)) found.is_coming = true;
  return found;
}

std::vector<FoundElsewhere> closed_elsewhere(const std::string& own, const Run& run, const Settings& settings) {
  auto found = find_elsewhere(not_protected_yet(), own, run, settings, [](State, const LocalName&) { return true; });
  const auto removed = removed_among(found);
  std::erase_if(found, [&](const FoundElsewhere& one) {
    const auto gone = removed.find(one.file.name.file);
    return one.file.state == State::hidden || (gone != removed.end() && one.file.name.number <= gone->second.number);
  });
  return found;
}

std::optional<Coming> coming_elsewhere(const std::string& file, uint32_t known, const std::string& address, const std::string& own, const Run& run,
                                       const Settings& settings) {
  const auto is_meant = [file](State state, const LocalName& name) { return state == State::protecting || name.file == file; };
  const auto found = find_elsewhere(not_protected_yet(), own, run, settings, is_meant, address);
  if (const auto removed = removed_among(found); removed.contains(file)) known = std::max(known, removed.at(file).number);
  std::optional<Coming> coming;
  for (const auto& [at, one] : found)
    if (one.state != State::hidden && one.name.file == file && one.name.number > (coming ? coming->number : known)) coming = {at, one.name.number};
  if (coming)
    coming->is_worked_on = std::any_of(found.begin(), found.end(), [&](const FoundElsewhere& one) {
      return one.address == coming->address && one.file.state == State::protecting;
    });
  return coming;
}

std::map<std::string, LocalName> removed_elsewhere(const std::optional<std::string>& file, const std::string& own, const Run& run,
                                                   const Settings& settings) {
  return removed_among(
      find_elsewhere({State::hidden}, own, run, settings, [file](State, const LocalName& name) { return !file || name.file == *file; }));
}

Status refuse_beside(const std::string& node, const std::string& file) {
  return Status(Kind::busy,
                fmt::format("{} is open to write on node {}, and two nodes cannot write it at once: put 'shared:' before its pattern if ranks "
                            "write one file, else put {{rank}} into its name",
                            file, node),
                EBUSY);
}

Status refuse_coming(const std::string& node, const std::string& file) {
  return Status(Kind::busy,
                fmt::format("{} was closed on node {} and is not protected yet: see what keeps it with 'holdfast checkpoints'", file, node), EBUSY);
}

}  // namespace holdfast::checkpoint
