#include "file/protected_origin.hpp"

#include <cerrno>

#include "base/own_numbers.hpp"
#include "catalog/catalog.hpp"
#include "catalog/hidden_names.hpp"
#include "catalog/lock_file.hpp"
#include "catalog/path_keeper.hpp"
#include "catalog/user_files.hpp"
#include "file/coordinated/names.hpp"
#include "file/plain_origin.hpp"
#include "layers/plain/plain_file.hpp"

namespace holdfast::file {

ProtectedOrigin::ProtectedOrigin(std::string id, std::string path, const Settings& settings)
    : id_(std::move(id)), path_(std::move(path)), settings_(settings), alone_(exchange::make_solo()) {}

const std::string& ProtectedOrigin::path() {
  if (!directory_) directory_ = catalog::FollowedDirectory(catalog::parent_of(path_));
  return path_ = directory_.path_of(path_);
}

Result<Bottom> ProtectedOrigin::use(Found found, bool to_write) {
  if (redundant::Replica::now() && to_write) [[unlikely]]
    return use_as_replica(std::move(found));
  auto file = open_together(std::move(found), {.write = to_write}, settings_, *alone_);
  if (file.status().kind() == Kind::lost && catalog::kind_of(path_) == catalog::PathKind::absent)
    return Status(Kind::not_found, path_ + " was removed while it was opened", ENOENT);
  if (!file) return file.status();
  Bottom bottom;
  bottom.protected_file = file->get();
  bottom.is_protected = true;
  bottom.row_bytes = (*file)->located().manifest.geometry.row_bytes();
  bottom.writes = to_write;
  bottom.file = std::move(*file);
  return bottom;
}

// The leader writes it for all replicas. Each of them has found it; the others open it when they lead.
Result<Bottom> ProtectedOrigin::use_as_replica(Found found) {
  Bottom bottom;
  bottom.is_protected = bottom.writes = true;
  bottom.row_bytes = found.located.manifest.geometry.row_bytes();
  bottom.name = path();
  bottom.led = std::make_shared<Led>();
  bottom.led->open = [this, kept = std::make_shared<Found>(std::move(found))](bool first) -> Result<std::unique_ptr<FileLayer>> {
    Found there = std::move(*kept);
    if (!first) {
      auto located = locate();
      HF_TRY(located.status());
      HF_TRY(located->read_only);
      there = {std::move(*located), false};
    }
    auto file = open_together(std::move(there), {.write = true}, settings_, *alone_);
    HF_TRY(file.status());
    return std::unique_ptr<FileLayer>(std::move(*file));
  };
  bottom.led->committed_end = [this]() -> Result<uint64_t> {
    auto located = locate();
    HF_TRY(located.status());
    return located->manifest.size;
  };
  return bottom;
}

Result<catalog::Located> ProtectedOrigin::locate() {
  (void)path();
  auto located = catalog::locate(path_, settings_);
  const auto elsewhere = [&] { return located ? located->manifest.file_id != id_ : located.status().kind() == Kind::not_found; };
  if (elsewhere()) {  // another process may have renamed it
    const std::string now = catalog::path_by_id(catalog::parent_of(path_), id_);
    if (!now.empty()) located = catalog::locate(path_ = now, settings_);
  }
  if (located && elsewhere())
    return Status(Kind::stale, path_ + ": another file has taken its place while it was open; close it and open it again", ESTALE);
  return located;
}

Result<Bottom> ProtectedOrigin::reach(Writing writing) {
  auto located = locate();
  const bool is_another = located.status().kind() == Kind::stale && located.status().sys_errno() == ESTALE;
  if (!located && !is_another && catalog::was_made_from(path_, id_)) return reach_plain(writing);
  if (!located) return located.status();
  if (writing.now) HF_TRY(located->read_only);
  return use({std::move(*located), false}, writing.now);
}

bool ProtectedOrigin::was_made_plain() { return catalog::was_made_from(path(), id_); }

Result<Bottom> ProtectedOrigin::reach_plain(Writing writing) {
  plain_ = raw::out_of_the_way(layers::open_again(path_, writing.now || writing.later));
  if (!plain_) return Status::from_errno(errno, path_);
  Bottom bottom;
  bottom.name = path_;
  bottom.file = layers::plain_file(plain_.get(), path_);
  bottom.reads = allows(plain_.get(), O_RDONLY);
  bottom.writes = allows(plain_.get(), O_WRONLY);
  return bottom;
}

Result<raw::Fd> ProtectedOrigin::lock_descriptor(int inherited) {
  (void)path();
  if (inherited >= 0 && catalog::is_lock_file(inherited, path_)) return raw::Fd(inherited);
  auto own = catalog::open_lock_file(path_);
  if (!own) return own.status();
  return raw::Fd(*own);
}

void ProtectedOrigin::stored() {
  if (changed_) catalog::show_change(path_);
  changed_ = false;
}

Status ProtectedOrigin::move(const std::string& to) {
  const std::string from = path();
  const auto rename = [&](bool again) {
    const Status renamed = catalog::rename(from, to, settings_);
    return Outcome{again && renamed.kind() == Kind::not_found ? Status() : renamed};
  };
  redundant::Replica* const replica = redundant::Replica::now();
  HF_TRY((replica ? once(*replica, Call::rename, from, to, rename) : rename(false)).status);
  take_path(to);
  return Status();
}

void ProtectedOrigin::take_path(const std::string& to) {
  path_ = catalog::absolute_path(to);
  directory_ = {};
  (void)path();
}

Status ProtectedOrigin::rename(const std::string& to) {
  HF_TRY(move(to));
  has_name();
  return Status();
}

void ProtectedOrigin::follow_rename(const std::string& to) {
  take_path(to);
  has_name();
}

void ProtectedOrigin::has_name() {
  unlinked_ = false;
  held_.reset();
}

std::string ProtectedOrigin::hide_in(const std::string& directory) const { return directory + "/" + catalog::removed_name(id_); }

Status ProtectedOrigin::unlink() {
  HF_TRY(move(hide_in(catalog::parent_of(path()))));
  has_no_name();
  return Status();
}

void ProtectedOrigin::follow_removal() {
  take_path(hide_in(catalog::parent_of(path())));
  has_no_name();
}

void ProtectedOrigin::has_no_name() {
  held_ = raw::out_of_the_way(raw::Fd(catalog::hold_removed(path_)));
  unlinked_ = true;
}

void ProtectedOrigin::remove_if_unlinked() {
  const std::string at = unlinked_ ? path() : "";
  const auto remove = [&](bool) { return Outcome{catalog::remove(at, settings_)}; };
  redundant::Replica* const replica = unlinked_ ? redundant::Replica::now() : nullptr;
  if (replica) held_.reset();
  if (replica) (void)once(*replica, Call::unlink, at, "protected", remove);
  else if (unlinked_) (void)remove(false);
  unlinked_ = false;
}

void ProtectedOrigin::leave_directory(const std::string& absolute) {
  if (catalog::parent_of(path()) == absolute) (void)move(hide_in(catalog::parent_of(absolute)));  // else rmdir's error stands
}

tree::Identity ProtectedOrigin::identity_of_copy(const engine::ProtectedFile* file) {
  if (copy_) return *copy_;
  if (!file) return {};
  const catalog::Located& located = file->located();
  std::vector<bool> lost(located.members.size());
  for (const int member : file->lost_members()) lost[size_t(member)] = true;
  const auto state = catalog::look_at_copy(located.manifest, lost, settings_.deadline_ms);
  copy_ = state ? tree::Identity{state->device, state->inode} : tree::Identity();  // a target that hangs is waited for once
  return *copy_;
}

}  // namespace holdfast::file
