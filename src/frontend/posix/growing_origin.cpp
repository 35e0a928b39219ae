#include "frontend/posix/growing_origin.hpp"

#include <cerrno>

#include "catalog/lock_file.hpp"
#include "checkpoint/shared.hpp"

namespace holdfast::frontend::posix {

namespace {

constexpr std::string_view id_begins = "growing.";

}  // namespace

std::string GrowingOrigin::id_of(const std::string& file_id) { return std::string(id_begins) + file_id; }
bool GrowingOrigin::is_id(const std::string& id) { return id.starts_with(id_begins); }

GrowingOrigin::GrowingOrigin(const std::string& id, std::string path, const Settings& settings)
    : file_id_(id.substr(id_begins.size())), path_(std::move(path)), settings_(settings), alone_(exchange::make_solo()) {
  settings_.fast_close = false;  // a version is durable before its manifest says that it is there
}

Status GrowingOrigin::find() {
  if (shared_) return {};
  Checkpoints* const all = Checkpoints::of_process(settings_);
  const auto file = all ? all->match(path_) : std::nullopt;
  auto shared = file ? all->find_shared(*file, file_id_) : Result<std::optional<Checkpoints::Shared>>(std::optional<Checkpoints::Shared>());
  if (!shared) return shared.status();
  if (!*shared) return Status(Kind::stale, path_ + ": was closed by all who wrote it, and has become a version of its checkpoint", ESTALE);
  shared_ = std::move(*shared);
  return {};
}

Status GrowingOrigin::is_written(bool anew) {
  HF_TRY(find());
  Checkpoints* const all = Checkpoints::of_process(settings_);
  if (!all) return {};
  auto name = all->shared_written(*shared_, Checkpoints::By::number, anew);
  if (!name) return name.status();
  shared_->name = std::move(*name);
  return {};
}

Result<file::Bottom> GrowingOrigin::reach(Writing writing) {
  HF_TRY(find());
  if (writing.now) HF_TRY(is_written(false));
  auto file = file::open_together({checkpoint::locate_shared(shared_->manifest, settings_), false}, {.write = writing.now}, settings_, *alone_);
  if (!file) return file.status();
  file::Bottom bottom;
  bottom.protected_file = file->get();
  bottom.is_protected = true;
  bottom.row_bytes = (*file)->located().manifest.geometry.row_bytes();
  bottom.writes = writing.now;
  bottom.file = std::move(*file);
  return bottom;
}

Result<raw::Fd> GrowingOrigin::lock_descriptor(int inherited) {
  if (inherited >= 0 && catalog::is_lock_file_of_growing(inherited, path_, file_id_)) return raw::Fd(inherited);
  auto own = catalog::open_lock_file_of_growing(path_, file_id_);
  if (!own) return own.status();
  return raw::Fd(*own);
}

void GrowingOrigin::left(bool arrived, bool last, bool alone) {
  Checkpoints* const all = Checkpoints::of_process(settings_);
  if (all && find()) all->shared_closed(*shared_, arrived, last, alone);
}

}  // namespace holdfast::frontend::posix
