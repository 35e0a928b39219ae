#include "catalog/torn_creation.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "catalog/catalog.hpp"
#include "catalog/entry.hpp"
#include "catalog/environment.hpp"
#include "catalog/sidecar.hpp"
#include "catalog/user_files.hpp"

namespace holdfast::catalog {

namespace {

bool is_manifest_or_lock(std::string name) {
  const size_t dot = name.find('.');
  if (name.size() > 1 && name[0] == 'm' && name.find_first_not_of("0123456789", 1) == dot) name.erase(0, dot + 1);  // of one directory
  return name == "manifest" || name.starts_with("lock") || name.starts_with("writer.") || name.starts_with("new.");
}

bool has_no_manifest(const Probe& probe) {
  return !probe.manifest && (probe.manifest_status.kind() == Kind::not_found || probe.manifest_status.kind() == Kind::corrupt);
}

bool has_no_data(const Probe& probe, const std::string& directory) {
  auto nothing = std::make_shared<bool>(false);
  const Status status = probe.lane->run([nothing, target = probe.target, directory] {
    auto none = holds_no_data(*target, directory);
    *nothing = none && *none;
    return none.status();
  });
  return status.ok() && *nothing;
}

bool holds_nothing_of_it(const Probe& probe, const std::string& directory) { return has_no_manifest(probe) && has_no_data(probe, directory); }

bool was_looked_at(const std::vector<Probe>& probes, const std::string& uuid) {
  return std::any_of(probes.begin(), probes.end(), [&](const Probe& probe) { return !uuid.empty() && probe.uuid() == uuid; });
}

bool is_empty_file(const Sidecar& sidecar, const std::string& name) {
  const auto file = sidecar.open_file(name, O_RDONLY);
  struct stat state;
  return file && environment().fstat(file->get(), &state) == 0 && state.st_size == 0;
}

bool is_blank(const Sidecar& sidecar, const std::string& manifest) {
  auto text = sidecar.read(manifest, layout::max_manifest_bytes);
  return text && text->find_first_not_of('\0') == std::string::npos;
}

}  // namespace

Result<bool> holds_no_data(target::Target& target, const std::string& directory) {
  auto names = target.list(directory);
  if (names.status().kind() == Kind::not_found) return true;
  if (!names) return names.status();
  for (const std::string& name : *names) {
    if (is_manifest_or_lock(name)) continue;
    auto object = target.open(directory + "/" + name, target::OpenMode::read);
    if (!object.ok()) return object.status();
    auto size = (*object)->size();
    if (!size) return size.status();
    if (*size > 0) return false;
  }
  return true;
}

bool all_hold_nothing(const std::vector<Probe>& probes, const std::string& set_id, const std::string& directory) {
  const Marker* set = newest_marker(probes, set_id);
  if (!set) return false;
  for (const MarkerMember& member : set->members)
    if (!was_looked_at(probes, member.uuid)) return false;
  // Beside the members there may be the empty place of a former one.
  return std::all_of(probes.begin(), probes.end(), [&](const Probe& probe) { return probe.reachable() && holds_nothing_of_it(probe, directory); });
}

bool all_hold_nothing(const std::vector<Probe>& probes, const std::vector<std::string>& uuids, const std::string& directory) {
  for (const std::string& uuid : uuids)
    if (!was_looked_at(probes, uuid)) return false;
  return !uuids.empty() &&
         std::all_of(probes.begin(), probes.end(), [&](const Probe& probe) { return probe.reachable() && holds_nothing_of_it(probe, directory); });
}

bool was_never_synced(const std::vector<std::string>& targets, const std::string& directory, uint64_t deadline_ms) {
  const auto probes = probe_directories(targets, {.manifest_name = directory + "/manifest"}, deadline_ms);
  return std::all_of(probes.begin(), probes.end(), [&](const Probe& probe) {
    if (!probe.reachable() || probe.uuid().empty()) return false;
    // A pool's directory that holds nothing may have been wiped and taken anew: what leads to it does not say its uuid.
    const bool nothing_yet = probe.manifest ? probe.manifest->never_synced() : !probe.pool && has_no_manifest(probe);
    return nothing_yet && has_no_data(probe, directory);
  });
}

bool is_dead(const Sidecar& sidecar) {
  auto names = sidecar.names();
  return names && std::all_of(names->begin(), names->end(), [&](const std::string& name) {
           if (name == "manifest" || name.ends_with(".manifest")) return is_blank(sidecar, name);
           return is_manifest_or_lock(name) || is_empty_file(sidecar, name);
         });
}

bool is_torn_creation(const std::string& path) {
  const std::string full = absolute_path(path);
  const Entry entry = look_at_entry(full);
  const bool leads = entry.kind == EntryKind::stub || entry.kind == EntryKind::own_link;
  if (!leads && entry.kind != EntryKind::absent && !holds_nothing(entry)) return false;
  auto sidecar = Sidecar::open(sidecar_of(full));
  if (!sidecar) return leads && sidecar.status().kind() == Kind::not_found;
  return is_dead(*sidecar) && (leads || is_blank(*sidecar, "manifest"));
}

}  // namespace holdfast::catalog
