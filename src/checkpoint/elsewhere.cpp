#include "checkpoint/elsewhere.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "catalog/environment.hpp"
#include "catalog/pool.hpp"

namespace holdfast::checkpoint {

namespace {

constexpr std::chrono::milliseconds between_looks(50);

// What `look` says of each of the nodes that answer, side by side. `only`: of that address alone, if there is one.
template <class Found, class Look>
std::vector<Found> ask_others(const std::string& own, const Run& run, const Settings& settings, Look look, const std::string& only = "") {
  std::vector<Found> all;
  const auto nodes = only.empty() ? run.nodes : std::vector<std::string>{only};
  const auto pool = run.nodes.size() > 1 ? catalog::look_at_pool(nodes, settings.deadline_ms) : Status(Kind::not_found, "");
  if (!pool) return all;
  const std::string below = directory_of_attempt(run.id, run.attempt);
  std::vector<std::pair<std::shared_ptr<Found>, std::shared_ptr<target::Ticket>>> asked;
  for (const catalog::Member& member : pool->members) {
    if (!member.usable() || member.path == own) continue;
    auto here = std::make_shared<Found>();
    asked.emplace_back(here, member.lane->submit([=, target = member.target, address = member.path] {
      *here = look(*target, address, below);
      return Status();
    }));
  }
  for (auto& [here, ticket] : asked)
    if (ticket->wait()) all.push_back(std::move(*here));
  return all;
}

// Of users' files that `is_meant`, in these states.
template <class IsMeant>
std::vector<FoundElsewhere> find_elsewhere(const std::vector<State>& states, const std::string& own, const Run& run, const Settings& settings,
                                           IsMeant is_meant, const std::string& only = "") {
  using All = std::vector<FoundElsewhere>;
  const auto look = [=](target::Target& target, const std::string& address, const std::string& below) {
    All here;
    for (const State state : states) {
      const auto names = target.list(fmt::format("{}/{}", below, state_name(state)));
      if (!names) continue;
      for (const std::string& text : *names)
        if (auto name = decode_local_name(text); name && name->kind == LocalName::of_user && is_meant(state, *name))
          here.push_back({address, {state, std::move(*name)}});
    }
    return here;
  };
  All found;
  for (const All& here : ask_others<All>(own, run, settings, look, only)) found.insert(found.end(), here.begin(), here.end());
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
  Elsewhere found;
  for (const auto& [address, one] : files_elsewhere(file, {State::writing, State::together, State::closed, State::protecting}, own, run, settings))
    (one.state == State::writing || one.state == State::together ? found.writing : found.coming) = node_of(address);
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

Status wait_for_others(const std::string& file, const std::string& own, const Run& run, const Settings& settings) {
  const auto until = catalog::environment().now() + std::chrono::milliseconds(settings.lock_patience_ms);
  for (;;) {
    const Elsewhere now = look_elsewhere(file, own, run, settings);
    if (!now.writing.empty()) return refuse_beside(now.writing, file);
    if (now.coming.empty()) return {};
    if (catalog::environment().now() >= until) return refuse_coming(now.coming, file);
    catalog::environment().wait(between_looks);
  }
}

}  // namespace holdfast::checkpoint
