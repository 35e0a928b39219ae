#include "engine/restripe.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "catalog/catalog.hpp"
#include "catalog/give_way.hpp"
#include "catalog/nursery.hpp"
#include "catalog/pool.hpp"
#include "engine/copy_whole.hpp"
#include "engine/give_way.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"

namespace holdfast::engine {

namespace {

Settings like(const layout::Geometry& geometry, std::vector<std::string> live, Settings settings) {
  const int nodes = int(std::min<size_t>(catalog::count_nodes(live), layout::max_pool_members));
  settings.protect = geometry.scheme.name();
  settings.placement = layout::placement_name(geometry.placement);
  settings.striping_unit = geometry.unit_bytes;
  settings.striping_factor = std::max(geometry.scheme.width(), std::min(geometry.members, nodes - geometry.scheme.m));
  settings.start_iodevice.reset();
  settings.targets.clear();
  settings.local = std::move(live);
  return settings;
}

class Restripe {
 public:
  Restripe(const std::string& path, std::vector<std::string> live, const Settings& settings, const Progress& progress)
      : path_(path), live_(std::move(live)), settings_(settings), progress_(progress), nursery_(path) {}

  Result<catalog::Located> run() {
    const auto alone = exchange::make_solo();
    auto found = catalog::locate(path_, settings_);
    if (!found) return found.status();
    auto old = ProtectedFile::open(std::move(*found), {.read = true}, settings_, *alone);
    if (!old) return old.status();
    const layout::Manifest before = (*old)->located().manifest;
    HF_TRY(could_give_way(path_, before.epoch, settings_));
    HF_TRY(nursery_.make());
    auto fresh = make(**old, before);
    HF_TRY((*old)->close());
    Status status = fresh ? give_way_to_another(path_, *fresh, before.epoch, settings_) : fresh.status();
    if (!status.ok()) (void)catalog::remove(nursery_.file(), settings_);
    if (!status.ok()) return status;
    return fresh;
  }

 private:
  Result<catalog::Located> make(ProtectedFile& old, const layout::Manifest& before) {
    const auto alone = exchange::make_solo();
    const Settings making = like(before.geometry, live_, settings_);
    auto made = catalog::create(nursery_.file(), making, catalog::mode_at_path(before), true);
    if (!made) return made.status();
    auto file = ProtectedFile::open(std::move(*made), {.read = true, .write = true, .fresh = true}, making, *alone);
    if (!file) return file.status();
    const auto size = old.size();
    Status status = size ? copy_whole(old, *size, **file, path_, progress_) : size.status();
    const size_t lost = (*file)->lost_members().size();
    const Status closed = (*file)->close();
    if (status.ok()) status = closed;
    if (status.ok() && lost > 0)
      status = Status(Kind::lost, fmt::format("{} of the nodes that {} was written anew over were lost meanwhile; repair it again", lost, path_));
    if (!status.ok()) return status;
    return catalog::locate(nursery_.file(), settings_);
  }

  const std::string path_;
  const std::vector<std::string> live_;
  const Settings& settings_;
  const Progress& progress_;
  const catalog::Nursery nursery_;
};

}  // namespace

Result<catalog::Located> restripe(const std::string& path, std::vector<std::string> live, const Settings& settings, const Progress& progress) {
  return Restripe(path, std::move(live), settings, progress).run();
}

}  // namespace holdfast::engine
