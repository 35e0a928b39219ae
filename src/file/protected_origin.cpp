#include "file/protected_origin.hpp"

#include <cerrno>

#include "base/own_numbers.hpp"
#include "catalog/catalog.hpp"
#include "catalog/hidden_names.hpp"
#include "catalog/lock_file.hpp"
#include "catalog/path_keeper.hpp"
#include "catalog/user_files.hpp"
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
  auto file = open_together(std::move(found), {.write = to_write}, settings_, *alone_);
  if (file.status().kind() == Kind::lost && catalog::kind_of(path_) == catalog::PathKind::absent)
    return Status(Kind::not_found, path_ + " was removed while it was opened", ENOENT);
  if (!file) return file.status();
  Bottom bottom;
  bottom.protected_file = file->get();
  bottom.row_bytes = (*file)->located().manifest.geometry.row_bytes();
  bottom.writes = to_write;
  bottom.file = std::move(*file);
  return bottom;
}

Result<Bottom> ProtectedOrigin::reach(Writing writing) {
  (void)path();
  auto located = catalog::locate(path_, settings_);
  const auto elsewhere = [&] { return located ? located->manifest.file_id != id_ : located.status().kind() == Kind::not_found; };
  if (elsewhere()) {  // another process may have renamed it
    const std::string now = catalog::path_by_id(catalog::parent_of(path_), id_);
    if (!now.empty()) located = catalog::locate(path_ = now, settings_);
  }
  if (!located && catalog::was_made_from(path_, id_)) return reach_plain(writing);
  if (!located) return located.status();
  if (elsewhere()) return Status(Kind::stale, path_ + ": another file has taken its place while it was open; close it and open it again", ESTALE);
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
  (void)path();
  HF_TRY(catalog::rename(path_, to, settings_));
  path_ = catalog::absolute_path(to);
  directory_ = {};
  (void)path();
  return Status();
}

Status ProtectedOrigin::rename(const std::string& to) {
  HF_TRY(move(to));
  unlinked_ = false;
  held_.reset();
  return Status();
}

std::string ProtectedOrigin::hide_in(const std::string& directory) const { return directory + "/" + catalog::removed_name(id_); }

Status ProtectedOrigin::unlink() {
  HF_TRY(move(hide_in(catalog::parent_of(path()))));
  held_ = raw::out_of_the_way(raw::Fd(catalog::hold_removed(path_)));
  unlinked_ = true;
  return Status();
}

void ProtectedOrigin::remove_if_unlinked() {
  if (unlinked_) (void)catalog::remove(path(), settings_);
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
