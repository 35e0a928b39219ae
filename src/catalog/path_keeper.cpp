#include "catalog/path_keeper.hpp"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "catalog/entry.hpp"
#include "catalog/environment.hpp"
#include "catalog/followed_directory.hpp"
#include "catalog/probe.hpp"
#include "catalog/sidecar.hpp"

namespace holdfast::catalog {

namespace {

class DirectoryKeeper final : public PathKeeper {
 public:
  explicit DirectoryKeeper(KeeperPlace place) : place_(std::move(place)), sidecar_(sidecar_of(place_.path)), parent_(parent_of(place_.path)) {}

  Result<layout::Manifest> sidecar() override {
    follow_parent();
    return read_sidecar_manifest(sidecar_);
  }

  Status publish(layout::Manifest& manifest, bool durable) override {
    if (!place_.read_only.ok()) return place_.read_only;
    follow_parent();
    manifest.path = place_.path;
    if (place_.replace_foreign) HF_TRY(unlink_foreign_sidecar());
    auto sidecar = Sidecar::open_or_make(sidecar_);
    if (!sidecar) return sidecar.status();
    HF_TRY(put_entry(*sidecar, manifest, durable));
    HF_TRY(sidecar->put("manifest", layout::encode(manifest), durable));
    forget_former(manifest);
    return {};
  }

  Status publish_with_mode(layout::Manifest& manifest, uint32_t mode) override {
    new_mode_ = mode & 07777;
    const Status published = publish(manifest, false);
    new_mode_.reset();
    return published;
  }

  Result<std::unique_ptr<target::Lock>> try_lock(bool make = true) override {
    follow_parent();
    const std::string path = place_.read_only.ok() ? sidecar_ : sidecar_of(place_.former_path);
    auto sidecar = make ? Sidecar::open_or_make(path) : Sidecar::open(path);
    if (!sidecar) return sidecar.status();
    return sidecar->lock("lock");
  }

 private:
  // A directory above the file may have been renamed since.
  void follow_parent() {
    place_.path = parent_.path_of(place_.path);
    sidecar_ = sidecar_of(place_.path);
  }

  // A link alone: what else somebody has put there is left to him.
  Status unlink_foreign_sidecar() const {
    const auto state = look(sidecar_, false);
    return state && state->link() ? unlink_file(sidecar_) : Status();
  }

  // With `durable` what stands at the path is so before the sidecar's manifest says what it looks like.
  Status put_entry(const Sidecar& sidecar, layout::Manifest& manifest, bool durable) {
    const WantedEntry wanted = wanted_entry(manifest, place_.member_lost);
    if (!wanted.plain) HF_TRY(put_link_or_stub(sidecar, manifest, wanted));
    if (durable) HF_TRY(settle_entry(sidecar));
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

  Status put_link_or_stub(const Sidecar& sidecar, const layout::Manifest& manifest, const WantedEntry& wanted) {
    const Entry now = look_at_entry(place_.path);
    HF_TRY(check_ours(now, manifest));
    if (!wanted.leads_to.empty()) {
      if (now.kind == EntryKind::own_link && now.leads_to == wanted.leads_to) return {};
      return sidecar.link_beside(name_of(place_.path), wanted.leads_to);
    }
    NewStub next{"", manifest.mode, {}, false};
    if (now.kind == EntryKind::stub) {
      // What the user has made of the permissions since the creation stays, and the owner, whoever renews it.
      next.mode = new_mode_.value_or(own_mode(now.state.mode, now.stub_status.ok() ? now.stub.mode : manifest.mode));
      next.before = now.state;
      next.keeps_times = new_mode_.has_value();
    }
    next.text = encode_stub(manifest, next.mode);
    if (now.kind == EntryKind::stub && !may_keep_owner(now.state) && leads_as(now, next.text)) return {};
    // A file system that keeps no permissions is asked once.
    const bool may_stay = wrote_stub_ || (now.state.mode & 07777) == mode_of_stub(next.mode);
    if (now.kind == EntryKind::stub && may_stay && now.state.size == next.text.size() && now.stub.file_id == manifest.file_id) {
      auto content = read_small(place_.path, max_stub_bytes);
      if (content && *content == next.text) return {};
    }
    wrote_stub_ = true;
    return sidecar.put_stub_beside(name_of(place_.path), next);
  }

  // Also what an earlier publish has put there and not made durable, by whichever process. Done once: whoever replaces or changes it
  // since, changes its number or its time.
  Status settle_entry(const Sidecar& sidecar) {
    auto entry = look(place_.path, false);
    auto directory = sidecar.state();
    if (!directory) return directory.status();
    const layout::PathState of_entry = entry ? entry->path_state() : layout::PathState{};
    auto same_inode = [](const layout::PathState& a, const layout::PathState& b) { return a.inode == b.inode && a.device == b.device; };
    const bool same_names = same_inode(directory->path_state(), settled_sidecar_) && same_inode(of_entry, settled_entry_);
    if (same_names && of_entry == settled_entry_) return {};
    if (entry && entry->regular()) HF_TRY(sync_file(place_.path));
    if (!same_names) HF_TRY(sidecar.sync_parent());
    settled_sidecar_ = directory->path_state();
    settled_entry_ = of_entry;
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
    return Status(Kind::stale, fmt::format("{} was replaced from outside while it was in use and is left as it is; run: "
                                           "holdfast repair --revert {} to get the protected file back there",
                                           place_.path, place_.path));
  }

  // How the stub or the plain file looks now, or below the linked whole copy; a change that is not ours shows against this.
  layout::PathState state_of_entry() const {
    auto state = look(place_.path, false);
    return state ? state->path_state() : layout::PathState{};
  }

  // fdatasync, which made the copy's content durable, need not have kept its change time.
  layout::PathState state_of_copy(const layout::Manifest& manifest, const WantedEntry& wanted, bool durable) const {
    auto found = std::make_shared<layout::PathState>();
    const std::string& target = manifest.members[size_t(wanted.member)].path;
    Status status =
        environment().lane_for(target, std::chrono::milliseconds(place_.deadline_ms))->run([found, to = wanted.leads_to, durable]() -> Status {
          if (durable) HF_TRY(sync_file(to));
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
  const FollowedDirectory parent_;
  std::optional<uint32_t> new_mode_;
  bool wrote_stub_ = false;
  layout::PathState settled_sidecar_, settled_entry_;  // as they looked when they were last made durable
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
