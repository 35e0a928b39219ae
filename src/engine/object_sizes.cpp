#include "engine/object_sizes.hpp"

#include <tuple>

namespace holdfast::engine {

using layout::Geometry;
using layout::Placement;

bool is_plain(const Geometry& g, int object) {
  return g.placement == Placement::separate && (g.scheme.k == 1 || (g.single_directory && object == 0));
}

uint64_t object_bytes(const Geometry& g, int object, uint64_t size) {
  if (is_plain(g, object)) return size;
  const uint64_t rows = divide_up(size, g.row_bytes());
  if (g.placement == Placement::separate) return rows * (g.single_directory ? g.row_bytes() : g.unit_bytes);
  const uint64_t units = rows * uint64_t(g.scheme.width());
  return (g.single_directory ? units : divide_up(units, uint64_t(g.members))) * g.unit_bytes;
}

MemberCall cut_call(const catalog::Located& located, int member, uint64_t size, size_t slot_bytes) {
  const Geometry& g = located.manifest.geometry;
  std::vector<std::tuple<std::string, uint64_t, bool>> sizes;
  sizes.emplace_back(located.meta_name(member, "sums"), divide_up(size, g.row_bytes()) * slot_bytes, false);
  for (int object = 0; object < layout::object_count(g); ++object)
    if (layout::holds(g, member, object)) sizes.emplace_back(located.data_name(object), object_bytes(g, object, size), is_plain(g, object));
  return [sizes = std::move(sizes)](MemberHandle& handle) {
    for (const auto& [name, bytes, exact] : sizes) HF_TRY(handle.resize(name, bytes, exact));
    return Status();
  };
}

void cut_objects(Members& members, const catalog::Located& located, uint64_t size, size_t slot_bytes) {
  members.each([&](int member) { return cut_call(located, member, size, slot_bytes); });
}

namespace {

MemberCall cut_under_call(const catalog::Located& located, int member, uint64_t size, uint64_t later_size, size_t slot_bytes) {
  const uint64_t row_bytes = located.manifest.geometry.row_bytes();
  const uint64_t records = divide_up(size, row_bytes) * slot_bytes, later = divide_up(later_size, row_bytes) * slot_bytes;
  return [cut = cut_call(located, member, size, slot_bytes), sums = located.meta_name(member, "sums"), records, later](MemberHandle& handle) {
    HF_TRY(cut(handle));
    if (later <= records) return Status();
    if (records > 0) {
      auto object = handle.object(sums, target::OpenMode::read);
      if (object.status().kind() == Kind::not_found) return Status();
      if (!object.ok()) return object.status();
      auto now = (*object)->size();
      if (!now.ok() || *now < records) return now.status();  // what is missing before the cut is no hole
    }
    return handle.grow(sums, later);
  };
}

}  // namespace

void cut_under(Members& members, const catalog::Located& located, uint64_t size, uint64_t later_size, size_t slot_bytes) {
  members.each([&](int member) { return cut_under_call(located, member, size, later_size, slot_bytes); });
}

namespace {
std::vector<std::string> plain_objects(const catalog::Located& located, int member) {
  const Geometry& g = located.manifest.geometry;
  std::vector<std::string> names;
  for (int object = 0; object < layout::object_count(g); ++object)
    if (layout::holds(g, member, object) && is_plain(g, object)) names.push_back(located.data_name(object));
  return names;
}
}  // namespace

MemberCall is_longer_call(const catalog::Located& located, int member, uint64_t size) {
  return [names = plain_objects(located, member), most = round_up(size, located.manifest.geometry.block_bytes)](MemberHandle& handle) {
    for (const std::string& name : names) {
      auto object = handle.object(name, target::OpenMode::read);
      if (object.status().kind() == Kind::not_found) continue;
      if (!object.ok()) return object.status();
      auto now = (*object)->size();
      if (!now.ok()) return now.status();
      if (*now > most) return Status(Kind::corrupt, name + " is longer than the file");
    }
    return Status();
  };
}

MemberCall lengthen_call(const catalog::Located& located, int member, uint64_t size) {
  return [names = plain_objects(located, member), size](MemberHandle& handle) {
    for (const std::string& name : names) HF_TRY(handle.grow(name, size));
    return Status();
  };
}

MemberCall trim_call(const catalog::Located& located, int member, uint64_t size) {
  const Geometry& g = located.manifest.geometry;
  return [names = plain_objects(located, member), size, padded = round_up(size, g.block_bytes)](MemberHandle& handle) {
    for (const std::string& name : names) {
      auto object = handle.object(name, target::OpenMode::write);
      if (object.status().kind() == Kind::not_found) {
        HF_TRY(handle.target().check_identity());
        continue;
      }
      if (!object.ok()) return object.status();
      auto now = (*object)->size();
      if (!now.ok()) return now.status();
      if (*now > size && *now <= padded) HF_TRY(handle.resize(name, size, false));
    }
    return Status();
  };
}

}  // namespace holdfast::engine
