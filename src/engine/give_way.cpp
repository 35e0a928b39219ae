#include "engine/give_way.hpp"

#include "catalog/catalog.hpp"
#include "engine/exclusion.hpp"
#include "engine/manifest_store.hpp"

namespace holdfast::engine {

Status give_way_to_plain(const std::string& path, const std::string& copy, uint64_t epoch, const Settings& settings) {
  auto located = catalog::locate(path, settings);
  if (!located) return located.status();
  Members members(*located, settings);
  auto locks = lock_file(members, *located);
  if (!locks) return locks.status();
  const auto reading = read_manifest(members, *located, settings);
  if (!reading) return reading.status();
  if (reading->manifest.epoch != epoch || other_openers(members, *located, 0, 0).alive)
    return Status(Kind::busy, path + " is being written; try again when that program has closed it", EBUSY);
  return catalog::give_way_to_plain(*located, copy, settings);
}

}  // namespace holdfast::engine
