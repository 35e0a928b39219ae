#include "checkpoint/elsewhere.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "catalog/environment.hpp"
#include "catalog/pool.hpp"
#include "checkpoint/untouched.hpp"

namespace holdfast::checkpoint {

namespace {

// Of users' files those that `is_meant`, in these states, on all nodes that answer, side by side. `only`: on that address alone, if there is one.
using IsMeant = std::function<bool(State, const LocalName&)>;

// What programs have opened to read and write, and may never write, is nobody's business elsewhere. It has its note before it is there, and as long as it is: of
// what has its note no more, and is not there any more either, no new state was found.
void leave_out_untouched(std::vector<FoundElsewhere>& found, target::Target& target, const std::string& below) {
  const auto may_be = [](const FoundElsewhere& one) { return may_be_untouched(one.file.state); };
  if (std::none_of(found.begin(), found.end(), may_be)) return;
  const auto untouched = Untouched::noted_on(target, below);
  std::set<std::string> there;
  for (const State state : {State::writing, State::closed, State::protecting})
    if (const auto names = target.list(fmt::format("{}/{}", below, state_name(state))))
      for (const std::string& text : *names)
        if (const auto name = decode_local_name(text)) there.insert(opener_begins(*name));
  std::erase_if(found, [&](const FoundElsewhere& one) {
    const std::string begins = opener_begins(one.file.name);
    return may_be(one) && (untouched.contains(begins) || !there.contains(begins));
  });
}

std::vector<FoundElsewhere> find_on(target::Target& target, const std::string& address, const std::string& below, const std::vector<State>& states,
                                    const IsMeant& is_meant) {
  std::vector<FoundElsewhere> found;
  for (const State state : states) {
    const auto names = target.list(fmt::format("{}/{}", below, state_name(state)));
    if (!names) continue;
    for (const std::string& text : *names)
      if (auto name = decode_local_name(text); name && name->kind == LocalName::of_user && is_meant(state, *name))
        found.push_back({address, {.state = state, .name = std::move(*name)}});
  }
  leave_out_untouched(found, target, below);
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

Status check_not_overtaken(const LocalName& name, const std::string& own, const Run& run, const Settings& settings, catalog::VersionList& versions) {
  const auto refused = [&](const std::string& address) {
    return Status(Kind::busy,
                  fmt::format("{} wrote it as well while {} had it open: let one node write it after the other, or each rank a file of its own",
                              address.empty() ? "another node" : node_of(address), node_of(own)),
                  EBUSY);
  };
  const std::vector<State> states{State::writing, State::closed, State::protecting, State::kept};
  for (const FoundElsewhere& one : files_elsewhere(name.file, states, own, run, settings))
    if (one.file.name.number >= name.number) return refused(one.address);
  const auto found = versions.look(run.nodes, settings.deadline_ms);
  if (!found) return {};
  for (const catalog::FoundVersion& one : *found) {
    const layout::Version& version = *one.manifest.version;
    if (version.run != run.id || version.attempt != run.attempt || version.file != name.file || version.roll || version.number < name.number)
      continue;
    const auto wrote = [&](const std::string& address) { return one.manifest.file_id.ends_with(catalog::digits_of_node(address)); };
    const auto who = std::find_if(run.nodes.begin(), run.nodes.end(), wrote);
    if (who == run.nodes.end() || *who != own) return refused(who == run.nodes.end() ? "" : *who);
  }
  return {};
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
