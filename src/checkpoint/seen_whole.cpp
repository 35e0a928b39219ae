#include "checkpoint/seen_whole.hpp"

#include <algorithm>

#include "base/node_path.hpp"
#include "checkpoint/attempt.hpp"

namespace holdfast::checkpoint {

namespace {

std::set<std::string> silent_ones(const SeenWhole& one, const Survey& survey) {
  std::set<std::string> silent;
  for (const std::string& address : survey.silent)
    if (const std::string node = parse_node_path(address).node; one.nodes.contains(node)) silent.insert(node);
  return silent;
}

// What the program has removed is not missed.
bool have_gone(const SeenWhole& one, const Survey& survey, const std::string& run) {
  std::set<std::string> missed = one.paths;
  for (const LocalEntry& entry : survey.local)
    if (entry.state == State::hidden) missed.erase(entry.name.file);
  if (missed.empty()) return false;
  const auto is_known = [&](const auto& one) { return one.run == run && one.are_singles; };
  return std::none_of(survey.checkpoints.begin(), survey.checkpoints.end(), is_known) &&
         std::none_of(survey.drained.begin(), survey.drained.end(), is_known);
}

}  // namespace

void see(std::optional<SeenWhole>& last, const Checkpoint& now) {
  if (!now.are_singles && !now.endures()) return;
  SeenWhole seen{now.attempt, now.step, now.files.size(), now.age(), {}, true, now.are_singles, {}};
  if (now.are_singles)
    for (const auto& [place, file] : now.files) seen.paths.insert(file.version.file);
  for (const std::string& place : now.nodes()) seen.nodes.insert(parse_node_path(place).node);
  see(last, seen);
}

void see(std::optional<SeenWhole>& last, const SeenWhole& now) {
  if (!last || now.are_singles || is_before(last->age, now.age)) last = now;
}

SeenWhole begun_with(const Checkpoint& now, const std::vector<catalog::FoundVersion>& versions) {
  SeenWhole seen{now.attempt, now.step, now.files.size(), now.age(), {}, false};
  for (const layout::Manifest& manifest : manifests_of(now, versions))
    for (const layout::ManifestMember& member : manifest.members)
      if (!member.stale) seen.nodes.insert(parse_node_path(member.path).node);
  return seen;
}

bool has_gone(const SeenWhole& one, const Survey& survey, const std::string& run) {
  if (one.may_be_dropped && silent_ones(one, survey).empty()) return false;
  if (one.are_singles) return have_gone(one, survey, run);
  if (!is_before(beginning_of(survey, run).age, one.age)) return false;
  // One with all its files is being written anew, or can not be read: unreadable_after.
  return std::none_of(survey.checkpoints.begin(), survey.checkpoints.end(), [&](const Checkpoint& now) {
    return now.run == run && now.attempt == one.attempt && now.step == one.step && now.files.size() + now.beside.size() >= one.files;
  });
}

std::set<std::string> nodes_that_would_help(const SeenWhole& one, const Survey& survey) {
  const std::set<std::string> silent = silent_ones(one, survey);
  return silent.empty() ? one.nodes : silent;
}

bool was_removed(const SeenWhole& one, const Survey& survey, const layout::Attempt& attempt) {
  return std::any_of(survey.local.begin(), survey.local.end(), [&](const LocalEntry& entry) {
    return entry.state == State::hidden && entry.attempt == attempt && entry.name.step == one.step;
  });
}

}  // namespace holdfast::checkpoint
