// From the user's path to the manifest and the members that answer.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "base/shell_word.hpp"
#include "catalog/catalog.hpp"
#include "catalog/copy_check.hpp"
#include "catalog/creation.hpp"
#include "catalog/entry.hpp"
#include "catalog/environment.hpp"
#include "catalog/path_keeper.hpp"
#include "catalog/pool.hpp"
#include "catalog/probe.hpp"
#include "catalog/sidecar.hpp"
#include "catalog/single_directory.hpp"
#include "catalog/torn_creation.hpp"
#include "catalog/user_files.hpp"

namespace holdfast::catalog {

namespace {

constexpr int looks_again = 2;
constexpr auto look_again_after = std::chrono::milliseconds(30);

// Where to look for a file over target directories: from the sidecar, the stub, a link or the settings.
struct Trail {
  std::string file_id;  // empty: whatever file is in `directory`
  std::string directory;
  std::string set_id;
  std::vector<std::string> targets;
  std::vector<std::string> uuids = {};  // of all members of a file on a pool, where its stub says them
};

void add_unless_there(std::vector<std::string>& list, const std::string& value) {
  if (!value.empty() && std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

class Finder {
 public:
  Finder(std::string full, const Settings& settings, LocateOptions options) : full_(std::move(full)), settings_(settings), options_(options) {}

  Result<Located> find() {
    entry_ = look_at_entry(full_);
    HF_TRY(read_sidecar());
    if (entry_.kind == EntryKind::other && !sidecar_) return entry_.status.ok() ? not_protected() : entry_.status;
    if (sidecar_status_.kind() == Kind::version) return sidecar_status_;
    pass_over_torn_entry();
    if (entry_.kind == EntryKind::stub && sidecar_ && !options_.ignore_edits) HF_TRY(check_stub_is_ours());
    if (sidecar_ && sidecar_->geometry.single_directory) return find_single(*sidecar_);
    // Damaged, on a storage node that is lost, or gone with a power failure.
    if (!sidecar_)
      if (auto copy = any_single_copy()) return find_single(*copy);
    auto trail = follow();
    if (!trail) return trail.status();
    return find_on_targets(std::move(*trail));
  }

  // Whether something else stands at the path by now, or nothing.
  bool entry_has_changed() const {
    const Entry now = look_at_entry(full_);
    return now.kind != entry_.kind || now.state.inode != entry_.state.inode || now.state.change_ns != entry_.state.change_ns;
  }

 private:
  Status not_protected() const {
    if (!is_torn_creation(full_)) return Status(Kind::not_found, full_ + " is not a protected file", ENOENT);
    return Status(Kind::not_found,
                  fmt::format("{} was not synced before a power loss, and no named target knows it; name its targets with --targets, or remove the "
                              "rest: holdfast rm {}",
                              full_, shell_word(full_)),
                  ENOENT);
  }

  Status never_synced() const {
    return Status(Kind::not_found,
                  fmt::format("{} was not synced before a power loss, and its targets hold nothing of it; create it again, or remove the rest: "
                              "holdfast rm {}",
                              full_, shell_word(full_)),
                  ENOENT);
  }

  Status edited() const {
    return Status(Kind::stale,
                  fmt::format("{} was changed or replaced from outside; to protect the new content run: holdfast import {}; to restore the protected "
                              "content run: holdfast repair --revert {}",
                              full_, shell_word(full_), shell_word(full_)));
  }

  Status appended() const {
    return Status(Kind::stale,
                  fmt::format("{} has {} bytes behind the note that stands for the protected file, written by a program that Holdfast does not "
                              "serve; look at them (tail -c {} {}), then run: holdfast repair --revert {}",
                              full_, entry_.stub.appended, entry_.stub.appended, full_, full_));
  }

  Status written_over() const {
    return Status(Kind::stale,
                  fmt::format("somebody has written into the note that stands for the protected file {}; look at it (less {}), then run: holdfast "
                              "repair --revert {}",
                              full_, full_, full_));
  }

  // A file was to be removed, another one was made in its place, and power was lost before either was for good. What leads to the second one is at
  // the path, and all of the first one is back.
  void pass_over_torn_entry() {
    if (!sidecar_ || sidecar_->never_synced() || wanted_entry(*sidecar_, {}).plain) return;
    std::vector<std::string> targets;
    for (const auto& member : sidecar_->members) add_unless_there(targets, member.path);
    std::string directory;
    if (entry_.kind == EntryKind::own_link && entry_.link_directory.starts_with(name_of(full_) + "-")) {
      directory = entry_.link_directory;
      add_unless_there(targets, entry_.link_target);
    } else if (entry_.kind == EntryKind::stub && entry_.stub_status.ok() && entry_.stub.path == full_) {
      directory = entry_.stub.directory;
      for (const std::string& target : entry_.stub.targets) add_unless_there(targets, target);
    }
    if (directory.empty() || directory == sidecar_->directory || !was_never_synced(targets, directory, settings_.deadline_ms)) return;
    entry_ = Entry{};
    torn_directory_ = directory;
  }

  Status check_stub_is_ours() {
    if (!entry_.stub_status.ok() || entry_.stub.file_id == sidecar_->file_id) return {};
    if (wanted_entry(*sidecar_, {}).plain) return {};  // a program may keep such a text in a plain file
    // A file was removed, another one made in its place, and power was lost before either was for good: the first one is back.
    if (sidecar_->never_synced()) {
      sidecar_.reset();
      sidecar_status_ = Status(Kind::not_found, "of a file that was never synced", ENOENT);
      return {};
    }
    return Status(Kind::stale,
                  fmt::format("{} holds the stub of another protected file (put there as {}); move it elsewhere, or remove the file that was "
                              "protected here before: holdfast rm {}",
                              full_, entry_.stub.path, shell_word(full_)));
  }

  // What stands in the sidecar's place and is none is refused: the file may be found without it, but no publish would get there.
  Status read_sidecar() {
    auto sidecar = Sidecar::open(sidecar_of(full_));
    if (sidecar.status().kind() == Kind::invalid && !options_.ignore_edits) return sidecar.status();
    auto manifest = sidecar ? sidecar->manifest() : Result<layout::Manifest>(sidecar.status());
    if (manifest) sidecar_ = std::move(*manifest);
    else sidecar_status_ = manifest.status();
    return {};
  }

  bool has_sidecar() const { return sidecar_ || sidecar_status_.kind() != Kind::not_found; }

  // ---- one directory

  // A sidecar whose own manifest is damaged: the members' copies lie beside it.
  std::optional<layout::Manifest> any_single_copy() const {
    std::optional<layout::Manifest> newest;
    auto sidecar = Sidecar::open(sidecar_of(full_));
    for (int i = 0; sidecar && i < layout::max_members; ++i) {
      auto copy = sidecar->manifest(fmt::format("m{}.manifest", i));
      if (copy && copy->geometry.single_directory && (!newest || copy->epoch > newest->epoch)) newest = std::move(*copy);
    }
    return newest;
  }

  Result<Located> find_single(layout::Manifest best) {
    const std::string parent = parent_of(full_);
    const Probe probe = probe_directories({parent}, {.marker = false, .mode = best.mode}, settings_.deadline_ms)[0];
    if (!probe.reachable()) return probe.status;
    for (auto& member : best.members) member.path = parent;
    Located located;
    located.manifest = std::move(best);
    located.single_directory_name = name_of(full_);
    located.members = members_in_directory(located, probe, settings_.deadline_ms);
    take_newest_copy(located);
    return finish(std::move(located), KeeperPlace{});
  }

  // Each through its member's lane: one that lies on a storage node that hangs must not hide the others.
  static void take_newest_copy(Located& located) {
    std::vector<std::shared_ptr<target::Ticket>> tickets;
    std::vector<std::shared_ptr<std::optional<layout::Manifest>>> copies;
    for (const Member& member : located.members) {
      if (!member.usable()) continue;
      auto copy = copies.emplace_back(std::make_shared<std::optional<layout::Manifest>>());
      tickets.push_back(member.lane->submit([copy, target = member.target, name = located.meta_name(member.index, "manifest")] {
        auto text = target->get(name, layout::max_manifest_bytes);
        auto found = text ? layout::decode(*text) : Result<layout::Manifest>(text.status());
        if (found) *copy = std::move(*found);
        return Status();
      }));
    }
    const std::string parent = located.manifest.members[0].path;
    for (size_t i = 0; i < tickets.size(); ++i) {
      if (!tickets[i]->wait().ok() || !*copies[i]) continue;
      layout::Manifest& copy = **copies[i];
      if (copy.file_id != located.manifest.file_id || copy.epoch <= located.manifest.epoch) continue;
      if (!(copy.geometry == located.manifest.geometry)) continue;  // which never changes
      located.manifest = std::move(copy);
    }
    for (auto& member : located.manifest.members) member.path = parent;
    for (Member& member : located.members) member.uuid = located.manifest.members[size_t(member.index)].uuid;
  }

  // ---- target directories

  Result<Trail> follow() const {
    Trail trail;
    if (sidecar_) {
      trail = {sidecar_->file_id, sidecar_->directory, sidecar_->set_id, {}};
      for (const auto& member : sidecar_->members) add_unless_there(trail.targets, member.path);
      return trail;
    }
    if (entry_.kind == EntryKind::stub) return follow_stub();
    if (entry_.kind == EntryKind::own_link) return Trail{"", entry_.link_directory, "", {entry_.link_target}};
    const bool users_own = entry_.kind == EntryKind::regular || (entry_.kind == EntryKind::zeros && !has_sidecar());
    if (users_own || settings_.targets.empty()) return not_protected();
    return search_targets();
  }

  Status stub_failure() const { return Status(entry_.stub_status.kind(), fmt::format("{}: {}", full_, entry_.stub_status.sentence())); }

  Result<Trail> follow_stub() const {
    if (!entry_.stub_status.ok()) return stub_failure();
    const Stub& stub = entry_.stub;
    if (stub.directory.empty())
      return Status(Kind::stale, fmt::format("the data of {} lie in {}, beside where the stub stood; move both together, or "
                                             "put the stub back: mv {} {}",
                                             full_, sidecar_of(stub.path), full_, stub.path));
    if (!is_file_directory(stub.directory) || stub.directory.find('/') != std::string::npos)
      return Status(Kind::corrupt, full_ + ": this stub names a directory that no protected file can have; remove it");
    return Trail{stub.file_id, stub.directory, stub.set_id, stub.targets, stub.uuids};
  }

  // Nothing is left at the path: some manifest on the targets may name it.
  Result<Trail> search_targets() const {
    Settings any_width = settings_;
    any_width.protect.reset();
    auto set = open_or_create_set_if_there(any_width);
    if (!set) return set.status();
    auto manifests = list_set(*set);
    if (!manifests) return manifests.status();
    const layout::Manifest* newest = nullptr;
    for (const layout::Manifest& manifest : *manifests)
      if (manifest.path == full_ && (!newest || manifest.epoch > newest->epoch)) newest = &manifest;
    if (!newest) return not_protected();
    Trail trail{newest->file_id, newest->directory, newest->set_id, {}};
    for (const auto& member : newest->members) add_unless_there(trail.targets, member.path);
    return trail;
  }

  // Looking for a file must not make targets of directories.
  Result<TargetSet> open_or_create_set_if_there(const Settings& settings) const {
    std::vector<std::string> paths;
    for (const std::string& target : settings.targets) paths.push_back(absolute_target(target));
    const auto probes = probe_directories(paths, {}, settings.deadline_ms);
    if (std::any_of(probes.begin(), probes.end(), [](const Probe& probe) { return probe.pool.has_value(); })) return pool_of(probes);
    if (!newest_marker(probes, "")) return not_protected();
    return open_or_create_set(settings.targets, settings);
  }

  Result<Located> find_on_targets(Trail trail) {
    std::vector<Probe> probes;
    std::optional<layout::Manifest> best = sidecar_;
    std::vector<std::string> wanted = trail.targets;
    // Each round may find a newer manifest or marker that names places not looked at yet.
    LookFor what{.manifest_name = trail.directory + "/manifest"};
    for (int round = 0; round < 4 && !wanted.empty(); ++round) {
      if (best) what.mode = best->mode;
      for (Probe& probe : probe_directories(wanted, what, settings_.deadline_ms)) probes.push_back(std::move(probe));
      take_newest(probes, trail, best);
      wanted = places_not_looked_at(probes, best, trail.set_id);
    }
    // More of these than the file can do without are not lost: nothing is known of them.
    if (std::count_if(probes.begin(), probes.end(), lacked_a_descriptor) > (best ? best->geometry.scheme.m : 0)) return no_descriptors(full_);
    const auto nothing = [&] {
      return all_hold_nothing(probes, trail.set_id, trail.directory) || all_hold_nothing(probes, trail.uuids, trail.directory);
    };
    if (!best && is_torn_creation(full_) && nothing()) return never_synced();
    if (!best) return nothing_found(trail, probes);
    Located located;
    located.manifest = std::move(*best);
    match_members(located, probes);
    KeeperPlace place;
    HF_TRY(notice_move(located, place));
    return finish(std::move(located), std::move(place));
  }

  static bool lacked_a_descriptor(const Probe& probe) { return probe.status.sys_errno() == EMFILE || probe.manifest_status.sys_errno() == EMFILE; }

  void take_newest(const std::vector<Probe>& probes, Trail& trail, std::optional<layout::Manifest>& best) const {
    std::vector<layout::ManifestCopy> copies;
    if (sidecar_) copies.push_back({&*sidecar_, ""});
    for (const Probe& probe : probes) {
      if (!probe.manifest || probe.manifest->directory != trail.directory) continue;
      if (probe.manifest->geometry.single_directory) continue;
      if (!trail.file_id.empty() && probe.manifest->file_id != trail.file_id) continue;
      if (trail.file_id.empty()) trail.file_id = probe.manifest->file_id;
      copies.push_back({&*probe.manifest, std::string_view(probe.uuid())});
    }
    if (const layout::Manifest* newest = layout::newest_of(copies)) best = *newest;
  }

  std::vector<std::string> places_not_looked_at(const std::vector<Probe>& probes, const std::optional<layout::Manifest>& best,
                                                const std::string& set_id) const {
    std::set<std::string> looked, uuids;
    for (const Probe& probe : probes) {
      looked.insert(probe.path);
      uuids.insert(probe.uuid());
    }
    std::vector<std::string> places;
    bool some_missing = !best;
    if (best)
      for (const auto& member : best->members) {
        if (!looked.count(member.path)) add_unless_there(places, member.path);
        some_missing = some_missing || !uuids.count(member.uuid);
      }
    if (!some_missing && !options_.adopt_replacements) return places;
    // A member is not where it was: the set may have moved (the user says where to) or have a replacement. A repair asks for
    // replacements also of those that are still there.
    if (const Marker* truth = newest_marker(probes, best ? best->set_id : set_id))
      for (const MarkerMember& member : truth->members)
        if (!looked.count(member.path) && !uuids.count(member.uuid)) add_unless_there(places, member.path);
    for (const std::string& target : settings_.targets)
      if (const std::string path = absolute_target(target); !looked.count(path)) add_unless_there(places, path);
    return places;
  }

  Status nothing_found(const Trail& trail, const std::vector<Probe>& probes) const {
    std::string reasons;
    for (const Probe& probe : probes) {
      const Status& why = probe.reachable() ? probe.manifest_status : probe.status;
      const bool foreign = why.ok();
      reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", foreign ? probe.path + " holds another file" : why.sentence());
    }
    return Status(Kind::lost,
                  fmt::format("{} is a protected file, and none of its {} known targets has its manifest ({}); make a target reachable, or name "
                              "their new places with --targets",
                              full_, trail.targets.size(), reasons));
  }

  // ---- members

  // Directories of pools know no set: jobs may have made them in different pools.
  static const Probe* find_uuid(const std::vector<Probe>& probes, const layout::Manifest& manifest, const std::string& uuid) {
    if (uuid.empty()) return nullptr;
    for (const Probe& probe : probes) {
      if (!probe.reachable() || probe.uuid() != uuid) continue;
      if (manifest.pool ? probe.pool.has_value() : probe.marker && probe.marker->set_id == manifest.set_id) return &probe;
    }
    return nullptr;
  }

  void match_members(Located& located, const std::vector<Probe>& probes) const {
    layout::Manifest& manifest = located.manifest;
    const Marker* truth = manifest.pool ? nullptr : newest_marker(probes, manifest.set_id);
    for (size_t i = 0; i < manifest.members.size(); ++i) {
      auto& wanted = manifest.members[i];
      const MarkerMember* now = truth && i < truth->members.size() ? &truth->members[i] : nullptr;
      // The target that the manifest names serves as long as it answers, also where the set names another one by now.
      const Probe* found = find_uuid(probes, manifest, wanted.uuid);
      Member member;
      member.index = int(i);
      member.path = wanted.path;
      if (found) {
        member = member_at(*found, int(i));
        wanted.path = found->path;
      } else {
        member.lost = why_lost(manifest, wanted, now, probes);
      }
      const bool sidecar_knows = sidecar_ && i < sidecar_->members.size() && sidecar_->members[i].uuid == wanted.uuid;
      const bool others_know = manifest.pool ? !sidecar_ : !now || now->uuid == wanted.uuid;
      member.untold = found && !others_know && !sidecar_knows;
      located.members.push_back(std::move(member));
      const bool set_is_behind = found && found->marker && found->marker->epoch == 0;  // it is still to be told of this one
      const bool replaced = now && now->uuid != wanted.uuid && !set_is_behind;
      const Probe* replacement = replaced && options_.adopt_replacements ? find_uuid(probes, manifest, now->uuid) : nullptr;
      if (replacement) located.replacements.push_back(member_at(*replacement, int(i)));
    }
  }

  static Member member_at(const Probe& probe, int index) {
    Member member;
    member.index = index;
    member.uuid = probe.uuid();
    member.path = probe.path;
    member.target = probe.target;
    member.lane = probe.lane;
    return member;
  }

  Status why_lost(const layout::Manifest& manifest, const layout::ManifestMember& wanted, const MarkerMember* now,
                  const std::vector<Probe>& probes) const {
    if (now && now->uuid != wanted.uuid)
      return Status(Kind::lost, fmt::format("target {} was replaced{}; run: holdfast repair {}", wanted.path,
                                            now->path == wanted.path ? "" : " by " + now->path, shell_word(full_)));
    for (const Probe& probe : probes)
      if (probe.path == wanted.path) {
        const Kind kind = probe.status.kind() == Kind::timed_out ? Kind::timed_out : Kind::lost;
        return Status(kind, why_not_member(probe, manifest.set_id));
      }
    return Status(Kind::lost, wanted.path + " was not looked at");
  }

  // ---- the user's path

  // The manifest may name another path: the stub (or its whole directory) was moved, or copied.
  Status notice_move(Located& located, KeeperPlace& place) const {
    layout::Manifest& manifest = located.manifest;
    if (manifest.path == full_) return {};
    place.former_path = manifest.path;
    const Entry there = look_at_entry(manifest.path);
    const bool same_file = (there.kind == EntryKind::stub && there.stub.file_id == manifest.file_id) ||
                           (there.kind == EntryKind::own_link && there.link_directory == manifest.directory);
    const bool same_entry = there.state.inode == entry_.state.inode && there.state.device == entry_.state.device;
    if (same_file && same_entry) {
      place.former_path.clear();
    } else if (same_file) {
      if (entry_has_changed()) return Status(Kind::stale, full_ + " was renamed while it was looked for; try again");
      place.read_only =
          Status(Kind::read_only,
                 fmt::format("{} is a copy of the stub of {} and can only be read; write to {}, or make a separate file: holdfast export {} OUT",
                             full_, manifest.path, manifest.path, full_),
                 EROFS);
      return {};
    }
    manifest.path = full_;
    return {};
  }

  Result<Located> finish(Located located, KeeperPlace place) {
    if (!options_.ignore_edits) HF_TRY(check_entry(located));
    if (located.manifest.geometry.single_directory) located.manifest.path = full_;
    located.read_only = place.read_only;
    located.by_search = !has_sidecar() && !located.manifest.geometry.single_directory && (entry_.kind == EntryKind::absent || holds_nothing(entry_));
    place.replace_torn = holds_nothing(entry_);
    place.torn_directory = torn_directory_;
    located.single_directory_name = name_of(full_);
    place.path = full_;
    place.deadline_ms = settings_.deadline_ms;
    place.replace_foreign = options_.ignore_edits;
    for (const Member& member : located.members) place.member_lost.push_back(!member.usable());
    located.path_keeper = make_path_keeper(std::move(place));
    return located;
  }

  Status check_entry(const Located& located) const {
    const layout::Manifest& manifest = located.manifest;
    const WantedEntry wanted = wanted_entry(manifest, {});
    if (manifest.never_synced() && holds_nothing(entry_)) return {};
    if (wanted.plain) {
      if (entry_.kind == EntryKind::absent) return {};  // data object 0 is lost: the layer above sees to it
      const bool file = entry_.kind == EntryKind::regular || entry_.kind == EntryKind::stub || holds_nothing(entry_);
      return file ? check_state(located, 0, entry_.state.path_state()) : edited();
    }
    switch (entry_.kind) {
      case EntryKind::absent: return {};
      case EntryKind::stub:  // whose it is was checked before
        if (entry_.stub.appended > 0) return appended();
        if (entry_.stub_status.kind() == Kind::version) return stub_failure();
        return entry_.stub_status.ok() || (sidecar_ && has_rotted(entry_, sidecar_->path_state, full_)) ? Status() : written_over();
      case EntryKind::empty:
      case EntryKind::zeros: return is_torn_stub(manifest) ? Status() : edited();
      case EntryKind::own_link:
        if (entry_.link_directory != manifest.directory) return edited();
        // Of another copy than the one that was linked last nothing is remembered.
        return wanted.leads_to == entry_.leads_to ? check_whole_copy(located) : Status();
      default: return edited();
    }
  }

  // The sidecar's manifest can be kept by a power cut and what stands at the path not. Zeros are nobody's text; whoever has emptied the
  // stub himself has changed it after we did.
  bool is_torn_stub(const layout::Manifest& manifest) const {
    if (!has_sidecar()) return false;
    if (entry_.kind == EntryKind::zeros || !is_settled(manifest)) return true;
    return entry_.kind == EntryKind::empty && entry_.state.change_ns <= sidecar_->path_state.change_ns;
  }

  Status check_whole_copy(const Located& located) const {
    for (const Member& member : located.members) {
      if (!member.usable() || member.path != entry_.link_target) continue;
      auto state = std::make_shared<layout::PathState>();
      Status status = member.lane->run([state, to = entry_.leads_to] {
        auto found = look(to, false);
        if (found) *state = found->path_state();
        return Status();
      });
      if (status.ok() && state->known()) return check_state(located, member.index, *state);
    }
    return {};
  }

  // Only the sidecar's own copy of the manifest knows how Holdfast left the path. While somebody writes, or after a crash of somebody who did, the
  // path changes by right.
  bool is_settled(const layout::Manifest& manifest) const {
    const bool current = sidecar_ && sidecar_->epoch == manifest.epoch;
    return current && sidecar_->path_state.known() && manifest.open_generations.empty() && manifest.journals.empty();
  }

  Status check_state(const Located& located, int member, const layout::PathState& now) const {
    const layout::Manifest& manifest = located.manifest;
    if (!is_settled(manifest)) return {};
    const layout::PathState& left = sidecar_->path_state;
    const bool other_file = is_another_file(left, now, full_);
    if (now.size == left.size && now.change_ns == left.change_ns && !other_file) return {};
    if (!other_file && may_be_left_by_a_crash(manifest, left, now)) return {};
    return holds_its_checksums(located, member, now) ? Status() : edited();
  }

  // A file system that lost power may have forgotten what it was not told to keep. The time goes back to an earlier change of ours. The cut that took
  // the padding of the last block may be missing, or be there where the one of the record is. Whoever edits a file sets its time forward. What the
  // copy holds then is decided by its checksums as it is read; an empty file has none.
  static bool may_be_left_by_a_crash(const layout::Manifest& manifest, const layout::PathState& left, const layout::PathState& now) {
    if (manifest.size == 0 || now.inode != left.inode) return false;
    const bool cut_since = left.size == padded_size(manifest) && now.size == manifest.size;
    return cut_since || now.change_ns < left.change_ns;
  }

  const std::string full_;
  const Settings& settings_;
  const LocateOptions options_;
  Entry entry_;
  std::string torn_directory_;  // of a file to which the path leads, and which never was
  std::optional<layout::Manifest> sidecar_;
  Status sidecar_status_;
};

// None, or a damaged one beside which there is no data: a file that was ever written is damaged otherwise.
bool lacks_manifest(target::Target& target, const std::string& name, const std::string& directory) {
  auto text = target.get(name, layout::max_manifest_bytes);
  if (!text) return text.status().kind() == Kind::not_found;
  if (layout::decode(*text).status().kind() != Kind::corrupt) return false;
  auto none = holds_no_data(target, directory);
  return none && *none;
}

bool some_lack_manifests(const Located& located) {
  auto lacking = std::make_shared<std::atomic<int>>(0);
  const std::string directory = located.single() ? name_of(sidecar_of(located.manifest.path)) : located.manifest.directory;
  for (const Member& member : located.members) {
    if (!member.usable()) continue;
    (void)member.lane->run([lacking, directory, target = member.target, name = located.meta_name(member.index, "manifest")] {
      *lacking += lacks_manifest(*target, name, directory);
      return Status();
    });
  }
  return *lacking > 0;
}

// Epoch 1 is what a creator leaves, and it holds the sidecar's lock until everything is in its place. Whoever finds the file before waits for
// that. Where the lock is free and some members have nothing, the creator died, or power was lost. Whoever opens the file to write goes on
// without what is missing (engine/manifest_store.hpp). In one directory all of it is under that lock, and is finished here.
Result<Located> after_its_creation(Located located, const std::function<Result<Located>()>& find, uint64_t deadline_ms) {
  if (!some_lack_manifests(located)) return located;
  const auto give_up = environment().now() + std::chrono::milliseconds(deadline_ms);
  for (;;) {
    auto lock = located.path_keeper->try_lock(false);
    if (lock) {
      auto again = find();
      if (again && again->single() && again->manifest.epoch == 1 && some_lack_manifests(*again)) HF_TRY(finish_creation(*again));
      return again;
    }
    if (lock.status().kind() == Kind::not_found) return find();  // it was removed meanwhile
    // Who may not lock sees what there is.
    if (lock.status().kind() != Kind::busy || environment().now() > give_up) return located;
    environment().wait(std::chrono::milliseconds(2));
  }
}

// A link of the user's own leads to the path that counts.
std::string follow_user_links(std::string path) {
  for (int i = 0; i < longest_link_chain; ++i) {
    const Entry entry = look_at_entry(path);
    if (!is_second_name(entry, path)) break;
    const bool relative = entry.leads_to.front() != '/';
    path = absolute_path(relative ? parent_of(path) + "/" + entry.leads_to : entry.leads_to);
  }
  return path;
}

}  // namespace

Result<Located> locate(const std::string& path, const Settings& settings, LocateOptions options) {
  const std::string full = follow_user_links(absolute_path(path));
  HF_TRY(keep_descriptors(full, settings.targets.size()));
  Finder first(full, settings, options);
  Result<Located> located = first.find();
  // Removed by somebody, and perhaps made anew, since its entry was looked at.
  if (located.status().kind() == Kind::lost && first.entry_has_changed()) located = Finder(full, settings, options).find();
  // A writer that opened or closed between our look at the manifest and at the path looks like an edit. Look again.
  for (int again = 0; again < looks_again && !located && located.status().kind() == Kind::stale; ++again) {
    environment().wait(look_again_after);
    located = Finder(full, settings, options).find();
  }
  if (!located) return located;
  HF_TRY(keep_descriptors(full, located->members.size()));
  if (located->manifest.epoch != 1 || !located->read_only.ok()) return located;
  const auto find = [&] { return Finder(full, settings, options).find(); };
  return after_its_creation(std::move(*located), find, settings.deadline_ms);
}

}  // namespace holdfast::catalog
