#include "engine/plausible.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "engine/manifest_store.hpp"
#include "engine/object_sizes.hpp"
#include "layout/row_record.hpp"

namespace holdfast::engine {

using layout::Manifest;

namespace {

// An object of a member, and how long it is where it reaches the last row.
struct Reach {
  std::string name;
  uint64_t least_bytes = 0;
};

// What is read in a moment is not worth a refusal, and a power cut after a non-durable close may take the end of what was written.
constexpr uint64_t always_believed_bytes = uint64_t{1} << 30;

uint64_t rows_said(const Manifest& manifest) { return std::max(manifest.rows, divide_up(manifest.size, manifest.geometry.row_bytes())); }

// What has to be there of the rows that a manifest says: half of those that are not believed anyway.
uint64_t rows_wanted(const Manifest& manifest) {
  const uint64_t said = rows_said(manifest), believed = always_believed_bytes / manifest.geometry.row_bytes();
  return said > believed ? divide_up(said - believed, 2) : 0;
}

std::vector<Reach> reaches_of(const catalog::Located& located, const Manifest& manifest, int member) {
  const layout::Geometry& g = manifest.geometry;
  const uint64_t rows = rows_wanted(manifest);
  std::vector<Reach> reaches{{located.meta_name(member, "sums"), rows * layout::record_slot_bytes(g)}};
  for (int object = 0; object < layout::object_count(g); ++object)
    if (layout::holds(g, member, object)) reaches.push_back({located.data_name(object), object_bytes(g, object, (rows - 1) * g.row_bytes()) + 1});
  return reaches;
}

// Of one member; an object that is not there has no bytes.
Result<bool> any_reaches(MemberHandle& handle, const std::vector<Reach>& reaches) {
  for (const Reach& reach : reaches) {
    auto object = handle.object(reach.name, target::OpenMode::read);
    if (object.status().kind() == Kind::not_found || object.status().kind() == Kind::invalid) continue;
    if (!object.ok()) return object.status();
    auto bytes = (*object)->size();
    if (!bytes.ok()) return bytes.status();
    if (*bytes >= reach.least_bytes) return true;
  }
  return false;
}

}  // namespace

Status check_plausible(Members& members, const catalog::Located& located, const Manifest& manifest) {
  if (rows_wanted(manifest) == 0) return Status();
  auto reached = std::make_shared<std::vector<char>>(members.count());
  const std::vector<Status> answers = members.ask_each([&](int member) -> MemberCall {
    return [reached, member, reaches = reaches_of(located, manifest, member)](MemberHandle& handle) {
      auto any = any_reaches(handle, reaches);
      if (any.ok()) (*reached)[size_t(member)] = *any;
      return any.status();
    };
  });
  bool judged = false;
  for (int member = 0; member < members.count(); ++member) {
    if (!members.available(member)) continue;
    if (!answers[size_t(member)].ok() || (*reached)[size_t(member)]) return Status();  // who does not answer may have it
    judged = true;
  }
  if (!judged) return Status();
  return Status(Kind::corrupt,
                fmt::format("{}: its manifest is forged or damaged: it says {} bytes in {} rows, and no target has checksums or data for half of "
                            "that; bring missing targets back, or restore the file's directories on them",
                            manifest.path, manifest.size, rows_said(manifest)));
}

Status check_plausible(const catalog::Located& located, const Settings& settings) {
  Members members(located);
  Status status;
  uint64_t epoch = 0;
  // A job that cuts the file between our two looks makes the first manifest look forged.
  for (;;) {
    auto reading = read_manifest(members, located, settings);
    if (!reading.ok()) return Status();
    if (!status.ok() && reading->manifest.epoch == epoch) return status;
    epoch = reading->manifest.epoch;
    status = check_plausible(members, located, reading->manifest);
    if (status.ok()) return status;
  }
}

}  // namespace holdfast::engine
