#include <algorithm>
#include <map>

#include "engine/inspector.hpp"
#include "engine/waiting.hpp"
#include "target/address.hpp"

namespace holdfast::engine {

using layout::Manifest;

namespace {

std::string lost_state(const Inspector& look, int member) { return target::is_unreached(look.located.members[member].path) ? "unreached" : "lost"; }

std::string member_state(const Inspector& look, int member) {
  if (look.members.available(member)) return look.located.members[member].untold ? "unfinished" : "ok";
  if (!look.located.members[member].usable()) return lost_state(look, member);
  if (look.reading.manifest.members[member].stale) return "stale";
  return look.reading.answers[member].ok() ? "stale" : "damaged";
}

}  // namespace

void judge(FileStatus& status) {
  const auto bad = std::count_if(status.members.begin(), status.members.end(), [](const MemberReport& m) { return m.state != "ok"; });
  const auto unreached = std::count_if(status.members.begin(), status.members.end(), [](const MemberReport& m) { return m.state == "unreached"; });
  const int m = status.manifest.geometry.scheme.m;
  status.health = bad == 0 ? Health::healthy : bad <= m ? Health::degraded : bad - unreached <= m ? Health::unknown : Health::lost;
  status.tolerates_more = std::max(0, m - int(bad));
}

FileStatus describe(Inspector& look) {
  FileStatus status;
  status.manifest = look.located.manifest;
  for (int member = 0; member < look.members.count(); ++member) {
    MemberReport report;
    report.member = member;
    report.path = look.located.members[member].path;
    report.state = member_state(look, member);
    if (report.state == "unfinished")
      report.why = "its replacement was cut short: if the other targets were lost nothing would lead to it; run repair";
    else if (report.state != "ok") report.why = look.members.why(member);
    status.members.push_back(std::move(report));
  }
  judge(status);
  return status;
}

FileStatus describe_lost(const Inspector& look) {
  FileStatus status;
  status.manifest = look.located.manifest;
  status.health = Health::lost;
  for (int member = 0; member < look.members.count(); ++member) {
    MemberReport report{member, look.located.members[member].path, "ok", "", 0, 0};
    if (!look.members.available(member)) report.state = lost_state(look, member), report.why = look.members.why(member);
    else report.state = "damaged", report.why = look.status.sentence();
    status.members.push_back(std::move(report));
  }
  // What can be reached does not go together, for it is too little.
  const auto unreached = std::count_if(status.members.begin(), status.members.end(), [](const MemberReport& m) { return m.state == "unreached"; });
  if (unreached > 0 && look.members.lost_count() - int(unreached) <= look.located.manifest.geometry.scheme.m) status.health = Health::unknown;
  return status;
}

namespace {

// Whether the member's object reaches as far as this unit needs it. Zeros at an object's end need not be there.
Status look_for_unit(Inspector& look, const layout::RowRecord& record, int unit) {
  const Manifest& manifest = look.located.manifest;
  const auto place = layout::place(manifest.geometry, record.row, unit);
  const uint64_t needed = needed_bytes(manifest.geometry, record, unit, manifest.size);
  if (!look.members.available(place.member) || needed == 0) return Status();
  const Status there = look.members
                           .submit(place.member,
                                   [name = look.located.data_name(place.object), end = place.offset + needed](MemberHandle& handle) {
                                     auto object = handle.object(name, target::OpenMode::read);
                                     if (!object.ok()) return object.status();
                                     auto size = (*object)->size();
                                     if (!size.ok()) return size.status();
                                     return *size < end ? Status(Kind::corrupt, name + " is cut short") : Status();
                                   })
                           ->wait();
  if (there.kind() != Kind::corrupt) return there;
  const UnitReads reads = look.rows.read_units(record, 0, manifest.geometry.blocks_per_unit(), MemberSet::of(place.member));
  return reads[size_t(unit)]->whole() ? Status() : there;
}

// First and last row are looked at for objects that are gone or cut: cheap, and enough for what `status` promises.
void look_at_objects(Inspector& look, FileStatus& status) {
  const Manifest& manifest = look.located.manifest;
  if (manifest.rows == 0) return;
  std::map<int, std::string> damage;
  for (uint64_t row : {uint64_t(0), manifest.rows - 1}) {
    std::vector<Bytes> slots = look.slots(row, look.members.available() & usable_in(look.located));
    auto record = look.rows.record(row);
    if (!record.ok()) return;
    for (int member = 0; member < look.members.count(); ++member)
      if (look.members.available(member) && slots[member].empty() && row == manifest.rows - 1)
        damage[member] = "its checksums (sums) are missing or cut short";
    // What waits in a journal, or is not synced, need not be in its place.
    if (record->hole() || look.journals.holds(row) || !manifest.is_synced(record->generation)) continue;
    for (int unit = 0; unit < manifest.geometry.scheme.width(); ++unit)
      if (const Status there = look_for_unit(look, *record, unit); !there.ok())
        damage[layout::place(manifest.geometry, row, unit).member] = there.sentence();
  }
  for (auto& [member, why] : damage) {
    status.members[member].state = "damaged";
    status.members[member].why = why;
  }
  judge(status);
}

// A running job may have cut the objects since, or left a member behind.
bool is_of_before(Inspector& look, const FileStatus& status, const Settings& settings) {
  if (status.health == Health::healthy) return false;
  auto reading = read_manifest(look.members, look.located, settings);
  return reading.ok() && reading->manifest.epoch != status.manifest.epoch;
}

}  // namespace

const char* health_name(Health health) {
  switch (health) {
    case Health::healthy: return "healthy";
    case Health::degraded: return "degraded";
    case Health::lost: return "lost";
    case Health::unknown: return "unknown";
  }
  return "";
}

Result<FileStatus> file_status(const catalog::Located& located, const Settings& settings) {
  for (int again = 0;; ++again) {
    Inspector look(located, settings);
    if (look.status.kind() == Kind::lost || look.status.kind() == Kind::stale) return describe_lost(look);
    if (!look.status.ok()) return look.status;
    FileStatus status = describe(look);
    look_at_objects(look, status);
    if (again == most_looks_again || !is_of_before(look, status, settings)) return status;
  }
}

}  // namespace holdfast::engine
