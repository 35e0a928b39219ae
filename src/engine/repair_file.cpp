#include "engine/repair_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/node_path.hpp"
#include "base/shell_word.hpp"
#include "catalog/catalog.hpp"
#include "catalog/pool.hpp"
#include "engine/plausible.hpp"
#include "engine/restripe.hpp"

namespace holdfast::engine {

namespace {

constexpr int most_looks = 3;

// Done already where this command was interrupted and is run again, or where another file of the same set had
// it done.
bool already_done(const catalog::TargetSet& set, const Replacement& r) {
  auto at = [&](const std::string& path) {
    return std::find_if(set.members.begin(), set.members.end(), [&](const catalog::Member& m) { return m.path == path; });
  };
  const auto there = at(r.new_path);
  const bool old_gone = r.old_path == r.new_path || at(r.old_path) == set.members.end();
  return old_gone && there != set.members.end() && there->usable();
}

// A member of the file's set that is on its way to another directory: the set is told once the file is there.
struct Move {
  Replacement paths;
  std::string guide;  // another member, which leads to the set
  catalog::Member onto;
};

// A file on a pool: its manifest alone will tell of the new members.
Status begin_pool_moves(catalog::Located& located, const std::vector<Replacement>& replacements, const Settings& settings) {
  const std::string& path = located.manifest.path;
  const auto at = [&](const std::string& place) {
    return std::find_if(located.members.begin(), located.members.end(),
                        [&](const catalog::Member& m) { return plain_address(m.path) == plain_address(place); });
  };
  if (replacements.empty()) return {};
  HF_TRY(enough_left(located, settings));
  for (const Replacement& r : replacements) {
    const auto old = at(r.old_path), there = at(r.new_path);
    const bool done = there != located.members.end() && there->usable() && (r.old_path == r.new_path || old == located.members.end());
    if (done) continue;
    if (old == located.members.end())
      return Status(Kind::invalid,
                    fmt::format("{} is not a member of {}; see its members with: holdfast status {}", r.old_path, path, shell_word(path)));
    auto fresh = catalog::prepare_pool_member(located, old->index, r.new_path, settings);
    if (!fresh) return fresh.status();
    for (const catalog::Member& other : located.replacements)
      if (other.index == fresh->index)
        return Status(Kind::invalid, fmt::format("{} is to go to {} and to {}; name one of them", r.old_path, other.path, fresh->path));
      else if (other.uuid == fresh->uuid || node_of(other.path) == node_of(fresh->path))
        return Status(Kind::invalid,
                      fmt::format("{} and {} are to take two places of {} on one node; give each a node of its own", other.path, fresh->path, path));
    located.replacements.push_back(std::move(*fresh));
  }
  return {};
}

// The directories that are to take members' places are made ready; nothing that counts is changed by that.
Result<std::vector<Move>> begin_moves(catalog::Located& located, const std::vector<Replacement>& replacements, const Settings& settings) {
  std::vector<Move> moves;
  if (replacements.empty()) return moves;
  const std::string& path = located.manifest.path;
  if (located.single())
    return Status(Kind::invalid, fmt::format("{} is kept in its own directory and has no targets to replace: leave --replace out", path));
  const auto member = std::find_if(located.members.begin(), located.members.end(), [](const catalog::Member& m) { return m.usable(); });
  if (member == located.members.end()) return Status(Kind::lost, fmt::format("no target of {} can be reached: bring one back first", path));
  HF_TRY(enough_left(located, settings));
  for (const Replacement& r : replacements) {
    auto set = catalog::open_set({member->path}, settings);
    if (!set) return set.status();
    if (already_done(*set, r)) continue;
    // Some other member leads to the set: the one to be replaced may be among those that answer.
    std::string guide = member->path;
    for (const catalog::Member& m : set->members)
      if (m.usable() && m.path != r.old_path) guide = m.path;
    auto fresh = catalog::prepare_replacement(guide, r.old_path, r.new_path, settings);
    if (!fresh) return fresh.status();
    std::erase_if(located.replacements, [&](const catalog::Member& m) { return m.index == fresh->index; });
    if (located.members[size_t(fresh->index)].uuid != fresh->uuid) located.replacements.push_back(*fresh);
    moves.push_back({r, guide, std::move(*fresh)});
  }
  return moves;
}

// Only where the file is there by now: until then the old member keeps its place, in the set as in the file.
Status end_moves(const catalog::Located& located, const std::vector<Move>& moves, const Settings& settings) {
  for (const Move& move : moves) {
    const layout::ManifestMember& now = located.manifest.members[size_t(move.onto.index)];
    if (now.uuid != move.onto.uuid || now.stale) continue;
    HF_TRY(catalog::replace_member(move.guide, move.paths.old_path, move.paths.new_path, settings).status());
  }
  return Status();
}

// Nodes that keep nothing of the file are too few, as `few` says: it is written anew over those that live.
Result<FileRepair> write_anew(const catalog::Located& located, const std::vector<std::string>& candidates, const Status& few,
                              const Settings& settings, const Progress& progress) {
  auto live = catalog::live_members(located, candidates, settings);
  if (!live) return live.status();
  if (int(catalog::count_nodes(*live)) < located.manifest.geometry.scheme.width()) return few;
  const auto fresh = restripe(located.manifest.path, std::move(*live), settings, progress);
  FileRepair report;
  report.stopped = fresh.status().sys_errno() == ECANCELED;
  if (!fresh && !report.stopped)
    return Status(fresh.status().kind(),
                  fmt::format("{}: too few nodes are free for its lost members, and it cannot be written anew over those that live: {}",
                              located.manifest.path, fresh.status().sentence()),
                  fresh.status().sys_errno());
  if (fresh) report.written_anew = fresh->members.size();
  auto status = file_status(fresh ? *fresh : located, settings);
  if (!status) return status.status();
  report.status = std::move(*status);
  return report;
}

Result<FileRepair> look_and_repair(const std::string& path, const std::vector<Replacement>& replacements, bool revert, const Settings& settings,
                                   const Progress& progress, const std::vector<std::string>* live) {
  auto located = catalog::locate(path, settings, {.adopt_replacements = true, .ignore_edits = revert});
  if (!located) return located.status();
  HF_TRY(check_plausible(*located, settings));
  const bool pool = located->manifest.pool;
  if (live && !pool) return Status(Kind::invalid, fmt::format("{} is not on a pool of nodes; name the directories with --replace OLD=NEW", path));
  auto onto_pool = pool ? replacements : std::vector<Replacement>();
  if (live) {
    HF_TRY(enough_left(*located, settings));
    const auto chosen = catalog::choose_live(*located, *live, settings);
    if (!chosen) return chosen.status();
    const auto lost = std::count_if(located->members.begin(), located->members.end(), [](const catalog::Member& m) { return !m.usable(); });
    const Status few = std::ssize(*chosen) < lost ? catalog::too_few_live(*located, chosen->size(), settings) : Status();
    if (!few.ok() && replacements.empty()) return write_anew(*located, *live, few, settings, progress);
    HF_TRY(few);
    for (const auto& [index, onto] : *chosen) onto_pool.push_back({located->members[size_t(index)].path, onto});
  }
  HF_TRY(begin_pool_moves(*located, onto_pool, settings));
  auto moves = begin_moves(*located, pool ? std::vector<Replacement>() : replacements, settings);
  if (!moves) return moves.status();
  auto report = repair(*located, settings, progress);
  if (report) HF_TRY(end_moves(*located, *moves, settings));
  if (report && revert) HF_TRY(located->path_keeper->publish(located->manifest, true));
  if (!report) return report.status();
  return FileRepair{std::move(*report), 0};
}

}  // namespace

Result<FileRepair> repair_file(const std::string& path, const std::vector<Replacement>& replacements, bool revert, const Settings& settings,
                               const Progress& progress, const std::vector<std::string>* live) {
  for (int times = 1;; ++times) {
    auto report = look_and_repair(path, replacements, revert, settings, progress, live);
    const bool replaced_meanwhile = report.status().kind() == Kind::stale && report.status().sys_errno() == ESTALE;
    if (!replaced_meanwhile || times == most_looks) return report;
  }
}

}  // namespace holdfast::engine
