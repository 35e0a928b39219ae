#include "catalog/path_keeper.hpp"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "catalog/entry.hpp"
#include "catalog/environment.hpp"
#include "catalog/followed_directory.hpp"
#include "catalog/hidden_names.hpp"
#include "catalog/probe.hpp"
#include "catalog/sidecar.hpp"

namespace holdfast::catalog {

namespace {

constexpr int most_looks = 100;  // for a sidecar that is being moved

class DirectoryKeeper final : public PathKeeper {
 public:
  explicit DirectoryKeeper(KeeperPlace place)
      : place_(std::move(place)), sidecar_(sidecar_of(place_.path)), parent_(parent_of(place_.path)), own_(sidecar_, O_NOFOLLOW) {}

  std::string path(const layout::Manifest& newest, const std::string&) override {
    if (!own_.is_at(sidecar_)) follow();
    // Another node has renamed it, or a program by itself its note; whoever noticed that has taken our sidecar away.
    const bool elsewhere = newest.path != place_.path && place_.read_only.ok() && !place_.replace_foreign && leads_to(newest.path, newest);
    if (elsewhere && read_sidecar_manifest(sidecar_).status().kind() == Kind::not_found) {
      (void)Sidecar::remove(sidecar_);  // one that was made for our lock
      move_to(newest.path);
    }
    return place_.path;
  }

  Result<layout::Manifest> sidecar() override {
    follow();
    return read_sidecar_manifest(sidecar_);
  }

  Status publish(layout::Manifest& manifest, bool durable) override {
    if (!place_.read_only.ok()) return place_.read_only;
    follow();
    if (!left_.empty()) go_back_to_entry(manifest);
    manifest.path = place_.path;
    if (place_.replace_foreign) HF_TRY(unlink_foreign_sidecar());
    auto sidecar = own_sidecar();
    if (!sidecar) return sidecar.status();
    HF_TRY(put_entry(*sidecar, manifest, durable));
    HF_TRY(put_manifest(*sidecar, layout::encode(manifest), durable));
    if (!own_) own_ = FollowedDirectory(sidecar_, O_NOFOLLOW);
    forget_former(manifest);
    return {};
  }

  // Not where something would have to be put at the path first, for that follows the members.
  void prepare(layout::Manifest next) override {
    if (!place_.read_only.ok() || place_.replace_foreign) return;
    follow();
    next.path = place_.path;
    const WantedEntry wanted = wanted_entry(next, place_.member_lost);
    const auto sidecar = Sidecar::open(sidecar_);
    if (sidecar && stands_as_wanted(wanted, next)) stage_manifest(*sidecar, wanted, next);
  }

  Status publish_with_mode(layout::Manifest& manifest, uint32_t mode) override {
    new_mode_ = mode & 07777;
    const Status published = publish(manifest, false);
    new_mode_.reset();
    return published;
  }

  Result<std::unique_ptr<target::Lock>> try_lock(bool make = true) override {
    follow();
    auto sidecar = !place_.read_only.ok() ? Sidecar::open(sidecar_of(place_.former_path)) : make ? own_sidecar() : Sidecar::open(sidecar_);
    if (!sidecar) return sidecar.status();
    return sidecar->lock("lock");
  }

 private:
  Status put_manifest(const Sidecar& sidecar, const std::string& text, bool durable) {
    if (const std::string scratch = std::exchange(staged_, ""); !scratch.empty()) {
      if (durable && text == staged_text_ && sidecar.put_staged("manifest", scratch).ok()) return {};
      (void)sidecar.remove_file(scratch);
    }
    return sidecar.put("manifest", text, durable);
  }

  bool stands_as_wanted(const WantedEntry& wanted, const layout::Manifest& manifest) const {
    if (wanted.plain) return true;
    const Entry now = look_at_entry(place_.path);
    if (!check_ours(now, manifest).ok()) return false;
    if (!wanted.leads_to.empty()) return now.kind == EntryKind::own_link && now.leads_to == wanted.leads_to;
    return now.kind == EntryKind::stub && next_stub(now, manifest).text.empty();
  }

  // What stands at the path and the sidecar's next manifest are made durable side by side; only then the manifest may say what is there.
  void stage_manifest(const Sidecar& sidecar, const WantedEntry& wanted, layout::Manifest& next) {
    if (!staged_.empty()) (void)sidecar.remove_file(std::exchange(staged_, ""));
    const auto to_sync = entry_to_sync(sidecar);
    if (!to_sync) return;
    next.path_state = wanted.leads_to.empty() ? state_of_entry() : state_of_copy(next, wanted, true);
    if (!wanted.leads_to.empty()) durable_copy_ = next.path_state;
    staged_text_ = layout::encode(next);
    auto staged = sidecar.stage(staged_text_);
    if (!staged) return;
    std::vector<Descriptor> files;
    if (to_sync->entry) files.push_back(open_to_sync(place_.path));
    if (to_sync->names) files.push_back(sidecar.parent());
    files.push_back(std::move(staged->file));
    std::vector<int> all;
    for (const Descriptor& file : files) all.push_back(file.get());  // one that could not be opened fails: then publish does it
    if (environment().fsync_all(all) != 0) {
      (void)sidecar.remove_file(staged->scratch);
      return;
    }
    staged_ = std::move(staged->scratch);
    note_durable(*to_sync);
  }

  // The sidecar goes where the file goes: somebody may have renamed it since, or a directory above it.
  void follow() {
    const auto sidecar = own_.where();
    if (!sidecar) own_ = FollowedDirectory();
    const std::string last = sidecar ? name_of(*sidecar) : "";
    const auto name = file_of_sidecar(last);
    if (!name) place_.path = parent_.path_of(place_.path);
    else if (*sidecar != sidecar_) {
      left_ = place_.path;
      place_.path = parent_of(*sidecar) + "/" + std::string(*name);
      if (place_.path.starts_with("//")) place_.path.erase(0, 1);
      parent_ = FollowedDirectory(parent_of(place_.path));
    }
    sidecar_ = sidecar_of(place_.path);
  }

  // Under the file's lock, so no rename is under way: somebody has moved the sidecar away by hand, and the file is where it was.
  void go_back_to_entry(const layout::Manifest& manifest) {
    const std::string left = std::exchange(left_, "");
    if (left == place_.path || !leads_to(left, manifest) || leads_to(place_.path, manifest)) return;
    move_to(left);
  }

  void move_to(const std::string& path) {
    place_.path = path;
    sidecar_ = sidecar_of(path);
    parent_ = FollowedDirectory(parent_of(path));
    own_ = FollowedDirectory(sidecar_, O_NOFOLLOW);
  }

  static bool leads_to(const std::string& path, const layout::Manifest& manifest) {
    const Entry entry = look_at_entry(path);
    if (entry.kind == EntryKind::own_link) return entry.link_directory == manifest.directory;
    return entry.kind == EntryKind::stub && entry.stub_status.ok() && entry.stub.file_id == manifest.file_id;
  }

  // One that the file has is never made again: who renames the file at this moment takes it along.
  Result<Sidecar> own_sidecar() {
    for (int look = 0; own_ && look < most_looks; ++look) {
      auto sidecar = Sidecar::open(sidecar_);
      if (sidecar.status().kind() != Kind::not_found) return sidecar;
      follow();
    }
    return own_ ? Sidecar::open(sidecar_) : Sidecar::open_or_make(sidecar_);
  }

  // A link alone: what else somebody has put there is left to him.
  Status unlink_foreign_sidecar() const {
    const auto state = look(sidecar_, false);
    return state && state->link() ? unlink_file(sidecar_) : Status();
  }

  // With `durable` what stands at the path is so before the sidecar's manifest says what it looks like.
  Status put_entry(const Sidecar& sidecar, layout::Manifest& manifest, bool durable) {
    const WantedEntry wanted = wanted_entry(manifest, place_.member_lost);
    if (!wanted.plain) HF_TRY(put_link_or_stub(sidecar, manifest, wanted, durable));
    if (durable) HF_TRY(make_entry_durable(sidecar));
    manifest.path_state = wanted.leads_to.empty() ? state_of_entry() : state_of_copy(manifest, wanted, durable);
    return {};
  }

  // Whoever cannot give a new stub the owner of the one before would become the owner himself.
  static bool may_keep_owner(const FileState& state) { return geteuid() == 0 || geteuid() == state.owner; }

  // Whether the stub that is there leads to the same file in the same places as this text.
  static bool leads_as(const Entry& now, const std::string& text) {
    const auto next = decode_stub(text);
    return next && now.stub_status.ok() && now.stub.file_id == next->file_id && now.stub.set_id == next->set_id &&
           now.stub.directory == next->directory && now.stub.targets == next->targets;
  }

  Status put_link_or_stub(const Sidecar& sidecar, const layout::Manifest& manifest, const WantedEntry& wanted, bool durable) {
    const Entry now = look_at_entry(place_.path);
    HF_TRY(check_ours(now, manifest));
    if (!wanted.leads_to.empty()) {
      if (now.kind == EntryKind::own_link && now.leads_to == wanted.leads_to) return {};
      return sidecar.link_beside(name_of(place_.path), wanted.leads_to);
    }
    const NewStub next = next_stub(now, manifest);
    if (next.text.empty()) return {};
    wrote_stub_ = true;
    return sidecar.put_stub_beside(name_of(place_.path), next, durable);
  }

  // Without text where the stub that is there is as it should be, or has to stay.
  NewStub next_stub(const Entry& now, const layout::Manifest& manifest) const {
    NewStub next{"", manifest.mode, {}, false};
    if (now.kind == EntryKind::stub) {
      // What the user has made of the permissions since the creation stays, and the owner, whoever renews it.
      next.mode = new_mode_.value_or(own_mode(now.state.mode, now.stub_status.ok() ? now.stub.mode : manifest.mode));
      next.before = now.state;
      next.keeps_times = new_mode_.has_value();
    }
    next.text = encode_stub(manifest, next.mode);
    if (now.kind == EntryKind::stub && !may_keep_owner(now.state) && leads_as(now, next.text)) return NewStub();
    // A file system that keeps no permissions is asked once.
    const bool may_stay = wrote_stub_ || (now.state.mode & 07777) == mode_of_stub(next.mode);
    if (now.kind == EntryKind::stub && now.stub_status.ok() && now.stub.file_id == manifest.file_id) {
      const auto content = read_small(place_.path, max_stub_bytes);
      if (content && *content == next.text && may_stay) return NewStub();
      // The permissions alone are others: a list of them was set, which changes the stub's own.
      next.keeps_times |= content && *content == encode_stub(manifest, now.stub.mode.value_or(manifest.mode));
    }
    return next;
  }

  struct ToSync {
    bool entry = false, names = false;  // what stands at the path; the directory that has its name and the sidecar's
    layout::PathState of_sidecar, of_entry;
  };

  // Also what an earlier publish has put there and not made durable, by whichever process. Done once: whoever replaces or changes it
  // since, changes its number or its time.
  Result<ToSync> entry_to_sync(const Sidecar& sidecar) const {
    auto entry = look(place_.path, false);
    auto directory = sidecar.state();
    if (!directory) return directory.status();
    ToSync now{false, false, directory->path_state(), entry ? entry->path_state() : layout::PathState{}};
    auto same_inode = [](const layout::PathState& a, const layout::PathState& b) { return a.inode == b.inode && a.device == b.device; };
    now.names = !same_inode(now.of_sidecar, durable_sidecar_) || !same_inode(now.of_entry, durable_entry_);
    now.entry = (now.names || now.of_entry != durable_entry_) && entry && entry->regular();
    return now;
  }

  void note_durable(const ToSync& now) { durable_sidecar_ = now.of_sidecar, durable_entry_ = now.of_entry; }

  Status make_entry_durable(const Sidecar& sidecar) {
    auto now = entry_to_sync(sidecar);
    if (!now) return now.status();
    if (now->entry) HF_TRY(sync_file(place_.path));
    if (now->names) HF_TRY(sidecar.sync_parent());
    note_durable(*now);
    return {};
  }

  // Only what we put there may be replaced.
  Status check_ours(const Entry& now, const layout::Manifest& manifest) const {
    if (place_.replace_foreign || now.kind == EntryKind::absent || (place_.replace_torn && holds_nothing(now))) return {};
    const std::string& leads_to = now.kind == EntryKind::stub ? now.stub.directory : now.link_directory;
    if (!place_.torn_directory.empty() && leads_to == place_.torn_directory) return {};
    if (now.kind == EntryKind::stub) {
      if (now.stub_status.kind() == Kind::version) return Status(Kind::version, fmt::format("{}: {}", place_.path, now.stub_status.sentence()));
      const bool ours = now.stub_status.ok() && now.stub.file_id == manifest.file_id;
      if ((ours && now.stub.appended == 0) || has_rotted(now, manifest.path_state, place_.path)) return {};
    }
    if (now.kind == EntryKind::own_link && now.link_directory == manifest.directory) return {};
    return Status(Kind::stale,
                  fmt::format("{} was replaced from outside while it was in use, and is left so; to put the protected file back run: holdfast repair "
                              "--revert {}",
                              place_.path, place_.path));
  }

  // How the stub or the plain file looks now, or below the linked whole copy; a change that is not ours shows against this.
  layout::PathState state_of_entry() const {
    auto state = look(place_.path, false);
    return state ? state->path_state() : layout::PathState{};
  }

  static bool is_as(const std::string& path, const layout::PathState& before) {
    const auto now = before.known() ? look(path, false) : Result<FileState>(Status(Kind::not_found, path));
    return now && now->path_state() == before;
  }

  // fdatasync, which made the copy's content durable, need not have kept its change time. Done once, as above.
  layout::PathState state_of_copy(const layout::Manifest& manifest, const WantedEntry& wanted, bool durable) const {
    auto found = std::make_shared<layout::PathState>();
    const std::string& target = manifest.members[size_t(wanted.member)].path;
    Status status = environment()
                        .lane_for(target, std::chrono::milliseconds(place_.deadline_ms))
                        ->run([found, to = wanted.leads_to, durable, before = durable_copy_]() -> Status {
                          if (durable && !is_as(to, before)) HF_TRY(sync_file(to));
                          auto state = look(to, false);
                          if (state) *found = state->path_state();
                          return state.status();
                        });
    return status.ok() ? *found : layout::PathState{};
  }

  // After a stub was moved, nothing may lead from its old place to the file any more.
  void forget_former(const layout::Manifest& manifest) {
    if (place_.former_path.empty() || look(place_.former_path, false)) return;
    const std::string old = sidecar_of(place_.former_path);
    auto copy = read_sidecar_manifest(old);
    if (!copy) return;
    if (copy->file_id == manifest.file_id) (void)Sidecar::remove(old);
    place_.former_path.clear();
  }

  KeeperPlace place_;
  std::string sidecar_;
  FollowedDirectory parent_;
  FollowedDirectory own_;  // the sidecar, once there was one
  std::string left_;       // where the file was before its sidecar went elsewhere
  std::optional<uint32_t> new_mode_;
  bool wrote_stub_ = false;
  std::string staged_, staged_text_;  // what `prepare` has written: its name in the sidecar, empty where there is none
  layout::PathState durable_sidecar_, durable_entry_, durable_copy_;  // as they looked when they were last made durable
};

}  // namespace

WantedEntry wanted_entry(const layout::Manifest& manifest, const std::vector<bool>& member_lost) {
  const layout::Geometry& g = manifest.geometry;
  WantedEntry wanted;
  if (g.placement != layout::Placement::separate) return wanted;
  wanted.plain = g.single_directory;
  if (g.single_directory || g.scheme.k != 1) return wanted;
  // A link to what an agent serves would lead into another node's directory of that name. One into a pool would name one member alone.
  if (manifest.pool || std::any_of(manifest.members.begin(), manifest.members.end(), [](const auto& member) { return names_a_node(member.path); }))
    return wanted;
  for (int unit = 0; unit < g.scheme.width(); ++unit) {
    const layout::UnitPlace place = layout::place(g, 0, unit);
    const auto& member = manifest.members[size_t(place.member)];
    const bool lost = size_t(place.member) < member_lost.size() && member_lost[size_t(place.member)];
    if (member.stale || lost) continue;
    wanted.member = place.member;
    wanted.leads_to = fmt::format("{}/{}/unit{}", member.path, manifest.directory, place.object);
    break;
  }
  return wanted;
}

Result<FileState> look_at_copy(const layout::Manifest& manifest, const std::vector<bool>& member_lost, uint64_t deadline_ms) {
  const WantedEntry wanted = wanted_entry(manifest, member_lost);
  if (wanted.leads_to.empty()) return Status(Kind::unsupported, manifest.path + ": has no whole copy");
  auto found = std::make_shared<FileState>();
  const std::string& target = manifest.members[size_t(wanted.member)].path;
  HF_TRY(environment().lane_for(target, std::chrono::milliseconds(deadline_ms))->run([found, to = wanted.leads_to]() -> Status {
    auto state = look(to, false);
    if (state) *found = *state;
    return state.status();
  }));
  return *found;
}

std::shared_ptr<PathKeeper> make_path_keeper(KeeperPlace place) { return std::make_shared<DirectoryKeeper>(std::move(place)); }

}  // namespace holdfast::catalog
