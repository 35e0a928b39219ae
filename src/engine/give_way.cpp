#include "engine/give_way.hpp"

#include <functional>

#include "catalog/catalog.hpp"
#include "catalog/give_way.hpp"
#include "engine/exclusion.hpp"
#include "engine/manifest_store.hpp"

namespace holdfast::engine {

namespace {

// Under the file's lock.
Status where_nobody_writes(const std::string& path, uint64_t epoch, const Settings& settings,
                           const std::function<Status(const catalog::Located&)>& change) {
  auto located = catalog::locate(path, settings);
  if (!located) return located.status();
  Members members(*located, settings);
  auto locks = lock_file(members, *located);
  if (!locks) return locks.status();
  const auto reading = read_manifest(members, *located, settings);
  if (!reading) return reading.status();
  if (reading->manifest.epoch != epoch || other_openers(members, *located, 0, 0).alive)
    return Status(Kind::busy, path + " is being written; try again when that program has closed it", EBUSY);
  return change(*located);
}

}  // namespace

Status give_way_to_plain(const std::string& path, const std::string& copy, uint64_t epoch, const Settings& settings) {
  return where_nobody_writes(path, epoch, settings,
                             [&](const catalog::Located& located) { return catalog::give_way_to_plain(located, copy, settings); });
}

Status give_way_to_another(const std::string& path, catalog::Located& by, uint64_t epoch, const Settings& settings) {
  return where_nobody_writes(path, epoch, settings,
                             [&](const catalog::Located& located) { return catalog::give_way_to_another(located, by, settings); });
}

Status could_give_way(const std::string& path, uint64_t epoch, const Settings& settings) {
  return where_nobody_writes(path, epoch, settings, catalog::check_can_give_way);
}

}  // namespace holdfast::engine
