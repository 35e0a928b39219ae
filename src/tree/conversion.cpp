#include "tree/conversion.hpp"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/raw_syscalls.hpp"
#include "catalog/catalog.hpp"
#include "catalog/environment.hpp"
#include "engine/copy_whole.hpp"
#include "exchange/exchange.hpp"
#include "layers/plain/plain_file.hpp"

namespace holdfast::tree {

namespace {

bool is_unchanged(int source, const struct stat& before) {
  struct stat now;
  return raw::fstat(source, &now) == 0 && now.st_size == before.st_size && std::memcmp(&now.st_mtim, &before.st_mtim, sizeof now.st_mtim) == 0;
}

Status changed(const std::string& path) { return Status(Kind::busy, path + " was written while it was renamed; try again", EBUSY); }

Status fill(int source, const std::string& source_path, catalog::Located located, const Settings& settings) {
  struct stat before;
  if (raw::fstat(source, &before) != 0) return Status::from_errno(errno, source_path);
  const auto alone = exchange::make_solo();
  auto file = engine::ProtectedFile::open(std::move(located), {.read = true, .write = true, .fresh = true}, settings, *alone);
  if (!file) return file.status();
  const auto from = layers::plain_file(source, source_path);
  Status status = engine::copy_whole(*from, uint64_t(before.st_size), **file, source_path);
  if (status.ok() && !is_unchanged(source, before)) status = changed(source_path);
  const Status closed = (*file)->close();
  return status.ok() ? closed : status;
}

}  // namespace

bool is_leased_to_writers(int source) { return catalog::environment().has_writers(source); }

Status protect_copy(int source, const std::string& source_path, const std::string& path, mode_t mode, const Settings& settings) {
  auto located = catalog::create(path, settings, mode, true);
  if (!located) return located.status();
  const Status status = fill(source, source_path, std::move(*located), settings);
  if (!status.ok()) (void)catalog::remove(path, settings);
  return status;
}

Settings made_like(const std::string& path, const Settings& settings, bool heed_user) {
  Settings like = settings;
  const auto located = catalog::locate(path, settings, {.ignore_edits = true});
  if (!located) return like;
  const layout::Geometry& geometry = located->manifest.geometry;
  like.protect = geometry.scheme.name();
  if (!heed_user || !like.placement) like.placement = layout::placement_name(geometry.placement);
  if (!heed_user || !like.striping_unit) like.striping_unit = geometry.unit_bytes;
  if (!heed_user) like.targets.clear(), like.local.clear();
  // In one directory it was accepted when the file was made, unless it was not needed.
  if (geometry.single_directory) like.allow_shared_target = located->manifest.members[0].nodes.empty();
  else if (like.targets.empty() && like.local.empty())
    for (const catalog::Member& member : located->members) (located->manifest.pool ? like.local : like.targets).push_back(member.path);
  return like;
}

}  // namespace holdfast::tree
