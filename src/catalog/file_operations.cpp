// What a file manager does with a protected file as a whole: remove, rename, list.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include <fmt/format.h>

#include "base/text_bytes.hpp"
#include "catalog/catalog.hpp"
#include "catalog/entry.hpp"
#include "catalog/give_way.hpp"
#include "catalog/hidden_names.hpp"
#include "catalog/path_keeper.hpp"
#include "catalog/probe.hpp"
#include "catalog/sidecar.hpp"
#include "catalog/user_files.hpp"

namespace holdfast::catalog {

namespace {

constexpr std::chrono::milliseconds ask_again_after(2);

using Tickets = std::vector<std::shared_ptr<target::Ticket>>;

Status first_failure(Tickets& tickets) {
  Status failure;
  for (auto& ticket : tickets) {
    Status status = ticket->wait();
    if (!status.ok() && failure.ok()) failure = status;
  }
  return failure;
}

bool is_our_entry(const Entry& entry, const layout::Manifest& manifest) {
  if (entry.kind == EntryKind::stub) return !entry.stub_status.ok() || entry.stub.file_id == manifest.file_id;
  if (holds_nothing(entry)) return true;
  return entry.kind == EntryKind::own_link && entry.link_directory == manifest.directory;
}

Status remove_from_targets(const Located& located) {
  Tickets tickets;
  for (const Member& member : located.members)
    if (member.usable())
      tickets.push_back(
          member.lane->submit([target = member.target, directory = located.manifest.directory] { return target->remove_directory(directory); }));
  return first_failure(tickets);
}

Status check_reachable(const Located& located) {
  for (const Member& member : located.members)
    if (member.usable()) return {};
  return Status(Kind::lost, fmt::format("none of the targets of {} can be reached, so nothing was removed; make them "
                                        "reachable and try again",
                                        located.manifest.path));
}

// Takes away what leads to the file, for good, before anything of it goes. What is cut short after that leaves no file that is half there.
// The sidecar stays in the same directory, under a name as a creator leaves it that died.
Status remove_from_path(const std::string& full, bool entry_too, bool entry_is_data, std::string& sidecar) {
  sidecar = new_sidecar_beside(full);
  const Status moved = move(sidecar_of(full), sidecar, true);
  if (!moved.ok() && moved.kind() != Kind::not_found) return moved;
  // Two names of one directory may go in either order where the power fails.
  if (entry_is_data) HF_TRY(sync_directory(parent_of(full)));
  if (const Status unlinked = entry_too ? unlink_file(full) : Status(); !unlinked.ok()) {
    (void)move(sidecar, sidecar_of(full), true);
    return unlinked;
  }
  return sync_directory(parent_of(full));
}

// The new path on every member's manifest, one epoch on.
Status write_manifests(const Located& located) {
  const std::string text = layout::encode(located.manifest);
  Tickets tickets;
  for (const Member& member : located.members) {
    if (!member.usable() || located.manifest.members[size_t(member.index)].stale) continue;
    const std::string name = located.meta_name(member.index, "manifest");
    tickets.push_back(member.lane->submit([target = member.target, name, text] { return target->put(name, bytes_of_text(text), true); }));
  }
  return first_failure(tickets);
}

// A sidecar of this file, or one that was made for a lock of an opener's that had found the file there before a rename.
bool is_left_at(const std::string& path, const std::string& file_id) {
  if (look_at_entry(path).kind != EntryKind::absent) return false;
  const auto manifest = read_sidecar_manifest(sidecar_of(path));
  return manifest ? manifest->file_id == file_id : manifest.status().kind() == Kind::not_found;
}

Status clear_destination(const std::string& from, const std::string& to, const std::string& file_id, const Settings& settings) {
  if (kind_of(to) != PathKind::protected_file) {
    auto state = look(to, false);
    if (state && state->directory()) return Status(Kind::exists, to + " is a directory; name a file", EISDIR);
    return {};
  }
  LocateOptions options;
  options.ignore_edits = true;
  auto there = locate(to, settings, options);
  // The same file: a rename that was cut short is being finished. Two sidecars and one name: that of the other name is of before.
  if (there && there->manifest.file_id == file_id) {
    const bool both = look(sidecar_of(from), false) && look(from, false);
    return both && is_left_at(to, file_id) ? Sidecar::remove(sidecar_of(to)) : Status();
  }
  return remove(to, settings);
}

// What stands at the path names the file and where it is.
bool leads_by_itself(const std::string& path, const layout::Manifest& manifest) {
  const Entry entry = look_at_entry(path);
  if (!is_our_entry(entry, manifest)) return false;
  return entry.kind == EntryKind::own_link || (entry.kind == EntryKind::stub && entry.stub_status.ok() && !entry.stub.directory.empty());
}

// As long as it lives nobody commits to the file. Whoever is at it comes to an end.
Result<std::unique_ptr<target::Lock>> hold(const Located& located, const std::string& path, const Settings& settings) {
  const auto give_up = environment().now() + std::chrono::milliseconds(settings.deadline_ms);
  for (;;) {
    auto lock = located.path_keeper->try_lock();
    if (lock || lock.status().kind() != Kind::busy) return lock;
    if (environment().now() >= give_up) return Status(Kind::busy, path + " is being changed by another process; try again when it has ended", EBUSY);
    environment().wait(ask_again_after);
  }
}

// What leads there is right already. The copies on the members follow.
Status say_where(const std::string& path, const Settings& settings) {
  LocateOptions options;
  options.ignore_edits = true;
  auto there = locate(path, settings, options);
  if (!there) return there.status();
  there->manifest.path = path;
  ++there->manifest.epoch;
  const Status told = write_manifests(*there);
  HF_TRY(there->path_keeper->publish(there->manifest, true));
  return told;
}

// By one rename; what was there is `aside` then, by its sidecar alone. No loss of power leaves one file's sidecar beside what leads to the other.
Status take_entry(const std::string& from, const std::string& path, const std::string& aside) {
  HF_TRY(move(sidecar_of(path), sidecar_of(aside), true));
  Status entry = sync_directory(parent_of(path));
  if (entry.ok()) entry = move(from, path);
  if (!entry.ok()) (void)move(sidecar_of(aside), sidecar_of(path), true);
  return entry;
}

// The same for a protected file. A sidecar that is missing after the rename is made by the next who writes.
Status take_path(const std::string& from, const std::string& path, const std::string& aside) {
  HF_TRY(take_entry(from, path, aside));
  if (sync_directory(parent_of(path)).ok()) (void)move(sidecar_of(from), sidecar_of(path), true);
  return {};
}

// Owner, lists of permissions and attributes.
Status take_looks(const std::string& from, const std::string& to, const struct stat& state) {
  const Descriptor directory(environment().openat(AT_FDCWD, parent_of(from).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
  const Descriptor note = open_to_read(to);
  if (!directory || !note) return Status::from_errno(errno, to);
  environment().say_as_of(directory.get(), name_of(from).c_str(), note.get(), true);
  (void)environment().fchown(note.get(), state.st_uid, state.st_gid);
  return {};
}

}  // namespace

Status remove(const std::string& path, const Settings& settings) {
  const std::string full = absolute_path(path);
  if (is_second_name(look_at_entry(full), full) && kind_of(full) == PathKind::protected_file) return unlink_file(full);
  LocateOptions options;
  options.ignore_edits = true;
  auto located = locate(path, settings, options);
  if (located.status().kind() == Kind::not_found && is_torn_creation(full)) {
    HF_TRY(unlink_file(full));
    return Sidecar::remove(sidecar_of(full));
  }
  if (!located) return located.status();
  const Entry entry = look_at_entry(full);
  const layout::Manifest& manifest = located->manifest;
  // A copied stub is only a name: the file itself stays.
  if (!located->read_only.ok()) return unlink_file(full);
  const bool single = manifest.geometry.single_directory, plain = wanted_entry(manifest, {}).plain;
  if (!single) HF_TRY(check_reachable(*located));
  std::string sidecar;
  HF_TRY(remove_from_path(full, plain || is_our_entry(entry, manifest), plain, sidecar));
  if (!single) HF_TRY(remove_from_targets(*located));
  return Sidecar::remove(sidecar);
}

Status rename(const std::string& from, const std::string& to, const Settings& settings) {
  auto located = locate(from, settings);
  if (!located) return located.status();
  const std::string old_path = absolute_path(from), new_path = absolute_path(to);
  if (old_path == new_path) return {};
  if (!located->read_only.ok()) return move(old_path, new_path);
  // To the end: what another opener publishes meanwhile would go to the old name.
  const auto held = hold(*located, old_path, settings);
  if (held.status().kind() == Kind::busy) return held.status();
  HF_TRY(clear_destination(old_path, new_path, located->manifest.file_id, settings));
  // The sidecar first: whichever of the two names it lies beside, the other leads to the file by stub or link.
  Status moved = move(sidecar_of(old_path), sidecar_of(new_path), true);
  if (moved.kind() == Kind::exists && is_left_at(new_path, located->manifest.file_id)) {
    HF_TRY(Sidecar::remove(sidecar_of(new_path)));
    moved = move(sidecar_of(old_path), sidecar_of(new_path), true);
  }
  if (!moved.ok() && moved.kind() != Kind::not_found) return moved;
  if (Status entry = move(old_path, new_path); !entry.ok() && entry.kind() != Kind::not_found) {
    (void)move(sidecar_of(new_path), sidecar_of(old_path), true);
    return entry;
  }
  // It has happened: what does not succeed from here on is no failure of it. Whoever was not told where the file is hears of it with its next change.
  (void)say_where(new_path, settings);
  if (const std::string from_directory = parent_of(old_path); from_directory != parent_of(new_path)) (void)sync_directory(from_directory);
  return {};
}

Status replace(const std::string& from, const std::string& to, const std::string& aside, const Settings& settings) {
  LocateOptions options;
  options.ignore_edits = true;
  const auto coming = locate(from, settings), going = locate(to, settings, options);
  if (!coming) return coming.status();
  if (!going) return going.status();
  const std::string from_path = absolute_path(from), to_path = absolute_path(to), aside_path = absolute_path(aside);
  const bool both = leads_by_itself(from_path, coming->manifest) && leads_by_itself(to_path, going->manifest);
  if (!both || !going->read_only.ok()) return Status(Kind::unsupported, to_path + " cannot be replaced at once");
  const auto held = hold(*going, to_path, settings);
  if (held.status().kind() == Kind::busy) return held.status();
  HF_TRY(take_path(from_path, to_path, aside_path));
  (void)say_where(to_path, settings);
  return {};
}

namespace {

// From the rename on there is nothing else that leads to it. A sidecar that is there already was put aside by somebody who was killed before the rename.
Status be_found_by_sidecar(const Located& located, const std::string& aside) {
  layout::Manifest manifest = located.manifest;
  HF_TRY(located.path_keeper->publish(manifest, true));
  return Sidecar::remove(sidecar_of(aside));
}

}  // namespace

Status give_way_to_plain(const Located& located, const std::string& copy, const Settings& settings) {
  const std::string path = absolute_path(located.manifest.path), aside = parent_of(path) + "/" + removed_name(located.manifest.file_id);
  // Until the rename the entry at the path leads to the file, after it the sidecar alone.
  const Entry entry = look_at_entry(path);
  if (!located.read_only.ok() || !is_our_entry(entry, located.manifest) || !leads_by_itself(path, located.manifest))
    return Status(Kind::unsupported, path + " is no entry of its own of the protected file; bring it back first: holdfast repair " + path);
  HF_TRY(be_found_by_sidecar(located, aside));
  HF_TRY(take_entry(copy, path, aside));
  // Which makes it durable before it takes anything from the targets.
  return remove(aside, settings);
}

uint32_t mode_at_path(const layout::Manifest& manifest) {
  const Entry entry = look_at_entry(manifest.path);
  const bool says = entry.kind == EntryKind::stub && entry.stub.file_id == manifest.file_id;
  return (says ? own_mode(entry.state.mode, entry.stub.mode) : manifest.mode) & 0777;
}

namespace {

// What stands at its path, where another file may take that.
Result<struct stat> what_gives_way(const Located& located) {
  const std::string path = absolute_path(located.manifest.path);
  if (!located.read_only.ok()) return located.read_only;
  if (!leads_by_itself(path, located.manifest)) return Status(Kind::unsupported, path + " is no entry of its own of the protected file");
  struct stat state;
  if (environment().fstatat(AT_FDCWD, path.c_str(), &state, AT_SYMLINK_NOFOLLOW) != 0) return Status::from_errno(errno, path);
  if (state.st_nlink > 1) return Status(Kind::unsupported, path + " has other names too, which would lead nowhere; remove those first");
  if (state.st_uid != geteuid()) return Status(Kind::access, path + " belongs to another user, who has to do this", EPERM);
  return state;
}

}  // namespace

Status check_can_give_way(const Located& located) { return what_gives_way(located).status(); }

Status give_way_to_another(const Located& located, Located& by, const Settings& settings) {
  const Result<struct stat> state = what_gives_way(located);
  HF_TRY(state.status());
  const std::string path = absolute_path(located.manifest.path), from = absolute_path(by.manifest.path),
                    aside = parent_of(path) + "/" + removed_name(located.manifest.file_id);
  HF_TRY(take_looks(path, from, *state));
  HF_TRY(be_found_by_sidecar(located, aside));
  HF_TRY(take_path(from, path, aside));
  HF_TRY(sync_directory(parent_of(path)));
  // It is done. To say where it is was no change of the file.
  (void)say_where(path, settings);
  const timespec times[2] = {state->st_atim, state->st_mtim};
  syscall(SYS_utimensat, AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
  auto there = locate(path, settings, {.ignore_edits = true});
  if (!there) return there.status();
  (void)there->path_keeper->publish(there->manifest, true);
  by = std::move(*there);
  (void)remove(aside, settings);  // of a node that has just gone nothing can be removed
  return {};
}

Result<std::vector<layout::Manifest>> list_set(const TargetSet& set) {
  struct Found {
    std::vector<layout::Manifest> manifests;
  };
  std::vector<std::pair<std::shared_ptr<Found>, std::shared_ptr<target::Ticket>>> pending;
  for (const Member& member : set.members) {
    if (!member.usable()) continue;
    auto found = std::make_shared<Found>();
    auto ticket = member.lane->submit([target = member.target, found]() -> Status {
      return target->get_each({"", "manifest", layout::max_manifest_bytes}, [&](const std::string& name, const Result<Bytes>& text) {
        if (!text || !is_file_directory(name)) return;
        auto manifest = layout::decode(*text);
        if (manifest && manifest->directory == name && !manifest->is_final()) found->manifests.push_back(std::move(*manifest));
      });
    });
    pending.emplace_back(std::move(found), std::move(ticket));
  }
  std::map<std::string, layout::Manifest> newest;
  Status failure;
  bool answered = false;
  for (auto& [found, ticket] : pending) {
    Status status = ticket->wait();
    if (!status.ok()) {
      failure = status;
      continue;
    }
    answered = true;
    for (layout::Manifest& manifest : found->manifests) {
      auto [place, fresh] = newest.try_emplace(manifest.file_id, manifest);
      if (!fresh && manifest.epoch > place->second.epoch) place->second = std::move(manifest);
    }
  }
  if (!answered) return failure.ok() ? Status(Kind::lost, "no target of the set can be reached; mend one and try again") : failure;
  std::vector<layout::Manifest> all;
  for (auto& [id, manifest] : newest) all.push_back(std::move(manifest));
  return all;
}

}  // namespace holdfast::catalog
