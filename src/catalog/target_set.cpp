// Target sets: made, opened, and members replaced.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "base/text_bytes.hpp"
#include "catalog/catalog.hpp"
#include "catalog/environment.hpp"
#include "catalog/probe.hpp"
#include "catalog/user_files.hpp"

namespace holdfast::catalog {

namespace {

constexpr int most_rounds = 10;

Status put_marker(const Probe& probe, const Marker& marker) {
  return probe.lane->run([target = probe.target, text = encode(marker)] { return target->put(marker_name, bytes_of_text(text), true); });
}

// One process at a time makes or changes a set.
Result<std::unique_ptr<target::Lock>> lock_set(const Probe& probe) {
  auto lock = lock_directory(probe);
  if (lock.ok() || lock.status().kind() != Kind::busy) return lock;
  return Status(Kind::busy,
                fmt::format("the set of {} is being made or changed ({}); try again when that has ended, or remove the lock of a program that died "
                            "on another node: rm {}/{}.*",
                            probe.path, lock.status().sentence(), probe.path, set_lock_name),
                EBUSY);
}

Status check_distinct(const std::vector<Probe>& probes) {
  for (size_t i = 0; i < probes.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const bool same_text = probes[i].path == probes[j].path;
      if (same_text || are_one_directory(probes[i], probes[j]))
        return Status(Kind::invalid, fmt::format("targets {} and {} are the same directory; name each target once", probes[j].path, probes[i].path));
    }
  return {};
}

// Of a set that was never finished it says nothing: makers may have been cut short one after another.
Status check_one_set(const std::vector<Probe>& probes) {
  const Probe* first = nullptr;
  for (const Probe& probe : probes) {
    if (!probe.marker || probe.marker->epoch == 0) continue;
    if (!first) first = &probe;
    if (probe.marker->set_id != first->marker->set_id)
      return Status(Kind::invalid, fmt::format("{} belongs to target set {} and {} to set {}; give the directories of one set", first->path,
                                               first->marker->set_id, probe.path, probe.marker->set_id));
  }
  return {};
}

Result<int> wanted_width(const Settings& settings) {
  if (!settings.protects()) return 1;
  auto scheme = layout::Scheme::parse(*settings.protect);
  if (!scheme) return scheme.status();
  return scheme->width();
}

Status check_width(size_t members, const Settings& settings) {
  auto width = wanted_width(settings);
  if (!width) return width.status();
  if (int(members) >= *width) return {};
  return Status(Kind::invalid, fmt::format("{} needs {} target directories and there {} {}; name more with --targets or "
                                           "choose a smaller scheme with --protect",
                                           *settings.protect, *width, members == 1 ? "is" : "are", members));
}

// "n1:dir" is a directory here, for a node's path begins with a slash. Who has forgotten that is told.
std::string hint_of_node(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const size_t colon = name.find(':');
  if (colon == std::string::npos || !names_a_node(name.substr(0, colon) + ":/")) return "";
  return fmt::format("; a directory of the node {0} is written with its whole path: {0}:/...", name.substr(0, colon));
}

// Every directory must be there and empty before it becomes a target.
Status check_can_become_targets(const std::vector<Probe>& probes) {
  for (const Probe& probe : probes) {
    if (!probe.reachable() && probe.status.kind() == Kind::not_found)
      return Status(Kind::not_found,
                    fmt::format("target directory {} does not exist, and no reachable target set names it; bring it back (is a mount missing?), make "
                                "it for a new set (mkdir -p {}), or leave it out of --targets{}",
                                probe.path, probe.path, hint_of_node(probe.path)),
                    ENOENT);
    if (!probe.reachable())
      return Status(probe.status.kind(), fmt::format("target directory {} cannot be used: {}; mend it or leave it out of "
                                                     "--targets",
                                                     probe.path, probe.status.sentence()));
    if (probe.has_marker && !probe.marker)
      return Status(probe.marker_status.kind(), fmt::format("{}: {}", probe.path, probe.marker_status.sentence()));
    if (!probe.has_marker && !probe.empty)
      return Status(Kind::invalid, fmt::format("{} is not empty and is not a target; give an empty directory", probe.path));
  }
  return {};
}

Member member_of(const Probe& probe, int index, const std::string& uuid) {
  Member member;
  member.index = index;
  member.uuid = uuid;
  member.path = probe.path;
  member.target = probe.target;
  member.lane = probe.lane;
  return member;
}

// Two rounds: first every directory gets a marker of epoch 0 ("being made"), then of epoch 1. A set whose making was cut
// short is known by its having no marker above 0, and is completed.
Result<TargetSet> make_set(const std::vector<Probe>& probes, const Settings& settings) {
  HF_TRY(check_can_become_targets(probes));
  HF_TRY(check_width(probes.size(), settings));
  if (probes.size() > size_t(layout::max_members))
    return Status(Kind::invalid, fmt::format("a target set has at most {} members and {} are named", layout::max_members, probes.size()));
  Marker marker;
  marker.set_id = layout::random_id();
  for (const Probe& probe : probes) marker.members.push_back({layout::random_id(), probe.path});
  for (marker.epoch = 0; marker.epoch <= 1; ++marker.epoch)
    for (size_t i = 0; i < probes.size(); ++i) {
      marker.index = int(i);
      Status status = put_marker(probes[i], marker);
      if (!status.ok())
        return Status(status.kind(), fmt::format("target directory {} cannot be used: {}; mend it or leave it out of "
                                                 "--targets",
                                                 probes[i].path, status.sentence()));
    }
  TargetSet set;
  set.id = marker.set_id;
  set.epoch = 1;
  for (size_t i = 0; i < probes.size(); ++i) set.members.push_back(member_of(probes[i], int(i), marker.members[i].uuid));
  return set;
}

// What the newest marker says, with each member found by its uuid wherever the user says it is.
TargetSet match(const Marker& truth, const std::vector<Probe>& probes) {
  TargetSet set;
  set.id = truth.set_id;
  set.epoch = truth.epoch;
  for (size_t i = 0; i < truth.members.size(); ++i) {
    const Probe* at_path = nullptr;
    const Probe* found = nullptr;
    for (const Probe& probe : probes) {
      if (probe.path == truth.members[i].path) at_path = &probe;
      if (probe.marker && probe.marker->set_id == truth.set_id && probe.marker->uuid() == truth.members[i].uuid) found = &probe;
    }
    if (found) {
      set.members.push_back(member_of(*found, int(i), truth.members[i].uuid));
      continue;
    }
    Member lost;
    lost.index = int(i);
    lost.path = truth.members[i].path;
    lost.lost = Status(Kind::lost, at_path ? why_not_member(*at_path, truth.set_id) : lost.path + " was not looked at");
    set.members.push_back(std::move(lost));
  }
  return set;
}

// Whatever the user named must be a member, or the place of one, or a former one, or one that is to become one.
Status check_all_named(const Marker& truth, const std::vector<Probe>& named) {
  for (const Probe& probe : named) {
    const std::string uuid = probe.marker ? probe.marker->uuid() : "";
    const bool known = std::any_of(truth.members.begin(), truth.members.end(),
                                   [&](const MarkerMember& member) { return member.path == probe.path || (!uuid.empty() && member.uuid == uuid); });
    const bool former = std::find(truth.former_paths.begin(), truth.former_paths.end(), probe.path) != truth.former_paths.end();
    const bool on_its_way = probe.marker && probe.marker->epoch == 0 && probe.marker->set_id == truth.set_id;
    if (known || former || on_its_way) continue;
    if (!probe.reachable() && probe.status.kind() == Kind::not_found)
      return Status(Kind::not_found,
                    fmt::format("target directory {} does not exist and target set {} does not name it; correct the path or "
                                "leave it out of --targets",
                                probe.path, truth.set_id),
                    ENOENT);
    return Status(Kind::invalid,
                  fmt::format("{} is not a member of target set {}, whose {} members are fixed; leave it out of --targets, or replace a lost member "
                              "by it: holdfast repair PATH --replace OLD={}",
                              probe.path, truth.set_id, truth.members.size(), probe.path));
  }
  return {};
}

// Members that the user did not name are looked for where the markers say.
void probe_unnamed(const Marker& truth, std::vector<Probe>& probes, uint64_t deadline_ms) {
  std::set<std::string> seen;
  for (const Probe& probe : probes) {
    seen.insert(probe.path);
    if (probe.marker) seen.insert(probe.marker->uuid());
  }
  std::vector<std::string> unnamed;
  for (const MarkerMember& member : truth.members)
    if (!seen.count(member.path) && !seen.count(member.uuid)) unnamed.push_back(member.path);
  for (Probe& probe : probe_directories(unnamed, {}, deadline_ms)) probes.push_back(std::move(probe));
}

// Until the newest marker names nobody that was not looked at.
Marker choose_truth(std::vector<Probe>& probes, const std::string& set_id, uint64_t deadline_ms) {
  Marker truth = *newest_marker(probes, set_id);
  for (int round = 0; round < 4; ++round) {
    probe_unnamed(truth, probes, deadline_ms);
    const Marker* newest = newest_marker(probes, set_id);
    if (newest->epoch == truth.epoch) break;
    truth = *newest;
  }
  return truth;
}

// A maker that was killed, or is not done yet, has finished some markers alone. A file must not hang on those few: were they lost, the others
// would say that the set was never made. Done as far as the others can be locked and written.
void finish_markers(const Marker& truth, const std::vector<Probe>& probes, uint64_t deadline_ms) {
  const auto is_unfinished = [](const Probe& probe, const Marker& finished) {
    return probe.marker && probe.marker->set_id == finished.set_id && probe.marker->epoch == 0 && probe.marker->members == finished.members;
  };
  if (std::none_of(probes.begin(), probes.end(), [&](const Probe& probe) { return is_unfinished(probe, truth); })) return;
  const auto keeper = std::min_element(probes.begin(), probes.end(), [](const Probe& a, const Probe& b) { return a.path < b.path; });
  if (!keeper->reachable()) return;
  const auto lock = lock_set(*keeper);
  if (!lock) return;
  std::vector<std::string> paths;
  for (const Probe& probe : probes) paths.push_back(probe.path);
  const std::vector<Probe> now = probe_directories(paths, {}, deadline_ms);
  const Marker* newest = newest_marker(now, truth.set_id);
  if (!newest) return;
  Marker finished = *newest;
  for (const Probe& probe : now) {
    if (!is_unfinished(probe, finished)) continue;
    finished.index = probe.marker->index;
    (void)put_marker(probe, finished);
  }
}

// `finish`: who makes a file on the set sees to its markers first.
Result<TargetSet> open_found_set(const std::vector<Probe>& named, const Settings& settings, bool finish) {
  const std::string set_id = newest_marker(named, "")->set_id;
  std::vector<Probe> probes = named;
  const Marker truth = choose_truth(probes, set_id, settings.deadline_ms);
  HF_TRY(check_all_named(truth, named));
  HF_TRY(check_width(truth.members.size(), settings));
  if (finish) finish_markers(truth, probes, settings.deadline_ms);
  if (finish)
    for (const Probe& probe : probes) mend_marker(probe);
  return match(truth, probes);
}

bool being_made(const std::vector<Probe>& probes) {
  const Marker* newest = newest_marker(probes, "");
  return newest && newest->epoch == 0;
}

// A marker of epoch 0 is of a set in the making, or of a directory on its way into a set that there is. Who else it names says which. A
// directory that may belong to a set out of reach is left alone.
Status look_for_its_set(const Probe& begun, std::vector<Probe>& probes, uint64_t deadline_ms) {
  const Marker marker = *begun.marker;
  const std::string path = begun.path;
  const auto known = std::ptrdiff_t(probes.size());
  probe_unnamed(marker, probes, deadline_ms);
  const auto away = std::find_if(probes.begin() + known, probes.end(), [](const Probe& probe) { return !probe.reachable(); });
  const std::string missing = away == probes.end() ? "" : away->path;
  probes.erase(std::remove_if(probes.begin() + known, probes.end(),
                              [&](const Probe& probe) { return !probe.marker || probe.marker->set_id != marker.set_id || probe.marker->epoch == 0; }),
               probes.end());
  if (missing.empty() || !being_made(probes)) return {};
  return Status(Kind::lost,
                fmt::format("{} may be a target of a set of which {} is out of reach; bring that back, or, if such a set was never finished, "
                            "remove {}/{}",
                            path, missing, path, marker_name));
}

// Makers that were cut short one after another have left markers of several sets.
Status look_for_their_sets(std::vector<Probe>& probes, uint64_t deadline_ms) {
  std::set<std::string> seen;
  for (size_t i = 0, named = probes.size(); i < named && being_made(probes); ++i)
    if (probes[i].marker && seen.insert(probes[i].marker->set_id).second) HF_TRY(look_for_its_set(probes[i], probes, deadline_ms));
  return {};
}

// A set that is made has had markers on all its directories before the first one of epoch 1. Who has none here was looked at before that.
void look_again_for_markers(std::vector<Probe>& probes, uint64_t deadline_ms) {
  if (!newest_marker(probes, "") || being_made(probes)) return;
  for (Probe& probe : probes)
    if (probe.reachable() && !probe.has_marker) probe = std::move(probe_directories({probe.path}, {}, deadline_ms)[0]);
}

// A cut-short making left markers of epoch 0 and directories without one: they all get new markers.
void forget_unfinished(std::vector<Probe>& probes) {
  for (Probe& probe : probes)
    if (probe.marker && probe.marker->epoch == 0) {
      probe.marker.reset();
      probe.has_marker = false;
      probe.empty = true;
    }
}

Result<std::vector<std::string>> absolute_directories(const std::vector<std::string>& directories) {
  if (directories.empty()) return Status(Kind::invalid, "no target directories are named; give them with --targets DIR,...");
  std::vector<std::string> absolute;
  for (const std::string& directory : directories) {
    if (directory.empty()) return Status(Kind::invalid, "--targets has an empty entry; separate directories by one comma");
    absolute.push_back(absolute_target(directory));
  }
  return absolute;
}

}  // namespace

Result<TargetSet> open_or_create_set(const std::vector<std::string>& directories, const Settings& settings) {
  auto paths = absolute_directories(directories);
  if (!paths) return paths.status();
  std::vector<Probe> probes = probe_directories(*paths, {}, settings.deadline_ms);
  HF_TRY(check_distinct(probes));
  look_again_for_markers(probes, settings.deadline_ms);
  HF_TRY(check_one_set(probes));
  HF_TRY(look_for_their_sets(probes, settings.deadline_ms));
  if (newest_marker(probes, "") && !being_made(probes)) return open_found_set(probes, settings, true);

  // Nobody has a finished marker. Make the set under a lock, for other processes may be about to do the same.
  HF_TRY(check_can_become_targets(probes));
  HF_TRY(check_width(probes.size(), settings));
  const Probe& keeper = *std::min_element(probes.begin(), probes.end(), [](const Probe& a, const Probe& b) { return a.path < b.path; });
  auto lock = lock_set(keeper);
  if (!lock) return lock.status();
  probes = probe_directories(*paths, {}, settings.deadline_ms);
  HF_TRY(check_one_set(probes));
  if (newest_marker(probes, "") && !being_made(probes)) {
    lock->reset();  // whoever finishes markers takes it
    return open_found_set(probes, settings, true);
  }
  forget_unfinished(probes);
  return make_set(probes, settings);
}

Result<TargetSet> open_whole_set(const std::vector<std::string>& directories, const Settings& settings, uint32_t mode) {
  auto paths = absolute_directories(directories);
  if (!paths) return paths.status();
  const std::vector<Probe> probes = probe_directories(*paths, {.mode = mode}, settings.deadline_ms);
  HF_TRY(check_distinct(probes));
  const Marker* newest = newest_marker(probes, "");
  const auto agrees = [&](const Probe& probe) {
    return probe.marker && probe.marker->set_id == newest->set_id && probe.marker->epoch == newest->epoch;
  };
  if (!newest || newest->epoch == 0 || newest->members.size() != probes.size() || !std::all_of(probes.begin(), probes.end(), agrees))
    return Status(Kind::not_found, "not all of one set");
  HF_TRY(check_width(newest->members.size(), settings));
  return match(*newest, probes);
}

Result<TargetSet> open_set(const std::vector<std::string>& directories, const Settings& settings) {
  auto paths = absolute_directories(directories);
  if (!paths) return paths.status();
  std::vector<Probe> probes = probe_directories(*paths, {}, settings.deadline_ms);
  look_again_for_markers(probes, settings.deadline_ms);
  HF_TRY(check_one_set(probes));
  HF_TRY(look_for_their_sets(probes, settings.deadline_ms));
  if (!newest_marker(probes, "") || being_made(probes))
    return Status(Kind::not_found, fmt::format("{} {} no target that can be reached; mount it, or name a member of the set",
                                               fmt::join(directories, ", "), directories.size() == 1 ? "is" : "are"));
  Settings any_width = settings;
  any_width.protect.reset();
  return open_found_set(probes, any_width, false);
}

namespace {

// Its marker says that it is on its way into this set: of epoch 0, and no other member knows its uuid.
bool is_prepared(const Probe& fresh, const Marker& truth) {
  if (!fresh.marker || fresh.marker->epoch != 0 || truth.epoch == 0 || fresh.marker->set_id != truth.set_id) return false;
  return std::none_of(truth.members.begin(), truth.members.end(), [&](const MarkerMember& member) { return member.uuid == fresh.marker->uuid(); });
}

// It is the member there already, and the others have still to be told. Whoever replaced was killed, or a power cut took their new markers back.
bool is_half_way(const Probe& fresh, const Marker& truth, int index) {
  if (!fresh.marker || fresh.marker->set_id != truth.set_id || fresh.marker->epoch < truth.epoch || fresh.marker->index != index) return false;
  // Another replacement has brought the set to that epoch since. A former member is none of this: the others have known it at its epoch.
  if (fresh.marker->epoch == truth.epoch)
    return std::none_of(truth.members.begin(), truth.members.end(), [&](const MarkerMember& member) { return member.uuid == fresh.marker->uuid(); });
  for (size_t i = 0; i < truth.members.size(); ++i)
    if (int(i) != index && (i >= fresh.marker->members.size() || fresh.marker->members[i].uuid != truth.members[i].uuid)) return false;
  return true;
}

// The directory that is to become a member: there, empty and unmarked (or prepared for this place before), and no member already.
Status check_replacement(const Probe& fresh, const std::vector<Probe>& probes, const Marker& truth, int index) {
  if (!fresh.reachable())
    return Status(fresh.status.kind(),
                  fmt::format("replacement {} cannot be used: {}; make the directory or name another", fresh.path, fresh.status.sentence()));
  if (is_prepared(fresh, truth)) {
    if (fresh.marker->index == index) return {};
    return Status(Kind::invalid, fmt::format("replacement {} already takes the place of {}; finish that repair, or name an empty directory",
                                             fresh.path, truth.members[size_t(fresh.marker->index)].path));
  }
  if (is_half_way(fresh, truth, index)) return {};
  if (fresh.has_marker)
    return Status(Kind::invalid, fmt::format("replacement {} is a target already{}; give an empty directory", fresh.path,
                                             fresh.marker ? fmt::format(" (of set {})", fresh.marker->set_id) : std::string()));
  if (!fresh.empty) return Status(Kind::invalid, fmt::format("replacement {} is not empty; give an empty directory", fresh.path));
  for (const Probe& probe : probes)
    if (probe.marker && probe.marker->set_id == truth.set_id && are_one_directory(probe, fresh))
      return Status(Kind::invalid, fmt::format("replacement {} is the directory of member {}; give another", fresh.path, probe.path));
  return {};
}

int find_member(const Marker& truth, const std::vector<Probe>& probes, const std::string& old_path) {
  for (size_t i = 0; i < truth.members.size(); ++i)
    if (plain_address(truth.members[i].path) == old_path) return int(i);
  for (const Probe& probe : probes)  // a member whose mount point moved
    if (probe.path == old_path && probe.marker)
      for (size_t i = 0; i < truth.members.size(); ++i)
        if (truth.members[i].uuid == probe.marker->uuid()) return int(i);
  return -1;
}

// The new member first: until another member knows of it, nothing has changed.
Status write_replacement(Marker next, int index, const Probe& fresh, const std::vector<Probe>& probes) {
  next.index = index;
  HF_TRY(put_marker(fresh, next));
  int told = 0, others = 0;
  Status last;
  for (const Probe& probe : probes) {
    if (!probe.marker || probe.marker->set_id != next.set_id) continue;
    for (size_t i = 0; i < next.members.size(); ++i) {
      if (int(i) == index || next.members[i].uuid != probe.marker->uuid()) continue;
      ++others;
      next.index = int(i);
      Status status = put_marker(probe, next);
      if (status.ok()) ++told;
      else last = status;
    }
  }
  if (others > 0 && told == 0)
    return Status(last.kind(), fmt::format("no other member of the set could be told of the replacement: {}", last.sentence()));
  return {};
}

// A set as it is under the locks of all its members that can be reached. Whoever changes it meets any other who reaches one of them, too.
struct LockedSet {
  std::vector<Probe> probes;
  Marker truth;
  std::vector<std::unique_ptr<target::Lock>> locks;
};

// In the order of the members, so that no two wait for each other. One that cannot be locked at all, for it is read-only by now, is left out. It
// may be the one that is to be replaced.
Result<std::vector<std::unique_ptr<target::Lock>>> lock_members(const Marker& truth, const std::vector<Probe>& probes) {
  std::vector<std::unique_ptr<target::Lock>> locks;
  Status last;
  for (const MarkerMember& member : truth.members)
    for (const Probe& probe : probes) {
      if (!probe.reachable() || !probe.marker || probe.marker->set_id != truth.set_id || probe.marker->uuid() != member.uuid) continue;
      auto lock = lock_set(probe);
      if (lock) locks.push_back(std::move(*lock));
      else if (last = lock.status(); last.kind() == Kind::busy) return last;
    }
  if (locks.empty() && !last.ok()) return last;
  return locks;
}

Result<LockedSet> lock_whole_set(const std::string& any_member, const Settings& settings) {
  for (int round = 0; round < most_rounds; ++round) {
    LockedSet found;
    found.probes = probe_directories({absolute_target(any_member)}, {}, settings.deadline_ms);
    const Marker* known = newest_marker(found.probes, "");
    if (!known)
      return Status(Kind::lost, fmt::format("{} is not a reachable target: {}; name another member of the set", found.probes[0].path,
                                            why_not_member(found.probes[0], "")));
    const std::string set_id = known->set_id;
    const Marker before = choose_truth(found.probes, set_id, settings.deadline_ms);
    auto locks = lock_members(before, found.probes);
    if (!locks) return locks.status();
    found.locks = std::move(*locks);
    // What was read before may have been changed by whoever had the locks until now.
    found.probes = probe_directories({absolute_target(any_member)}, {}, settings.deadline_ms);
    if (!newest_marker(found.probes, set_id)) continue;
    found.truth = choose_truth(found.probes, set_id, settings.deadline_ms);
    if (found.truth.epoch == before.epoch) return found;
  }
  return Status(Kind::busy, fmt::format("the set of {} is being changed by others all the time; try again", any_member), EBUSY);
}

// A set, locked, and the place in it that another directory is to take.
struct Vacancy : LockedSet {
  int index = 0;
  Probe fresh;
  std::string uuid;  // the new member's
};

Result<Vacancy> find_vacancy(const std::string& any_member, const std::string& old_path, const std::string& new_path, const Settings& settings) {
  const std::string old_full = absolute_target(old_path);
  auto set = lock_whole_set(any_member, settings);
  if (!set) return set.status();
  Vacancy found{std::move(*set), 0, {}, {}};
  found.index = find_member(found.truth, found.probes, old_full);
  if (found.index < 0)
    return Status(Kind::invalid,
                  fmt::format("{} is not a member of target set {}; see its members with: holdfast targets", old_full, found.truth.set_id));
  found.fresh = probe_directories({absolute_target(new_path)}, {}, settings.deadline_ms)[0];
  HF_TRY(check_replacement(found.fresh, found.probes, found.truth, found.index));
  found.uuid = found.fresh.marker ? found.fresh.marker->uuid() : layout::random_id();
  return found;
}

}  // namespace

Result<Member> prepare_replacement(const std::string& any_member, const std::string& old_path, const std::string& new_path,
                                   const Settings& settings) {
  auto found = find_vacancy(any_member, old_path, new_path, settings);
  if (!found) return found.status();
  Marker marker = found->truth;
  marker.epoch = 0;
  marker.index = found->index;
  marker.members[size_t(found->index)] = {found->uuid, found->fresh.path};
  HF_TRY(put_marker(found->fresh, marker));
  return member_of(found->fresh, found->index, found->uuid);
}

Result<TargetSet> replace_member(const std::string& any_member, const std::string& old_path, const std::string& new_path, const Settings& settings) {
  auto found = find_vacancy(any_member, old_path, new_path, settings);
  if (!found) return found.status();
  const std::string new_full = found->fresh.path;
  Marker next = found->truth;
  next.epoch = std::max(found->truth.epoch, found->fresh.marker ? found->fresh.marker->epoch : 0) + 1;
  const std::string former = next.members[size_t(found->index)].path;
  next.members[size_t(found->index)] = {found->uuid, new_full};
  std::erase(next.former_paths, new_full);
  if (former != new_full) next.former_paths.push_back(former);
  HF_TRY(write_replacement(next, found->index, found->fresh, found->probes));

  std::erase_if(found->probes, [&](const Probe& probe) { return probe.path == new_full; });
  found->fresh.marker = next;
  found->fresh.marker->index = found->index;
  found->probes.push_back(std::move(found->fresh));
  return match(next, found->probes);
}

}  // namespace holdfast::catalog
