#include "engine/object_limit.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>

#include "layout/manifest.hpp"

namespace holdfast::engine {

using layout::Geometry;
using layout::Placement;

namespace {

// Half of what ext4 holds; no file system that many processes share holds less.
constexpr uint64_t always_held_object_bytes = uint64_t{8} << 40;
constexpr uint64_t largest_offset = uint64_t(std::numeric_limits<int64_t>::max());

bool says_too_large(const Status& status) { return status.sys_errno() == EFBIG || status.sys_errno() == EINVAL || status.sys_errno() == EOVERFLOW; }

// The largest size that the object takes.
Result<uint64_t> largest(target::Object& object) {
  uint64_t taken = always_held_object_bytes, refused = largest_offset;
  for (uint64_t size = largest_offset; refused - taken > 1; size = taken + (refused - taken) / 2) {
    const Status status = object.truncate(size);
    if (!status.ok() && !says_too_large(status)) return status;
    if (status.ok()) taken = size;
    else refused = size;
    if (taken == largest_offset) break;
  }
  return taken;
}

Result<uint64_t> ask(target::Target& target, const std::string& scratch) {
  auto object = target.open(scratch, target::OpenMode::create);
  if (!object) return object.status();
  auto found = largest(**object);
  (void)target.remove(scratch);
  return found;
}

}  // namespace

bool fits(const Geometry& g, uint64_t size, uint64_t object_bytes) {
  const uint64_t rows = divide_up(size, g.row_bytes()), most_units = object_bytes / g.unit_bytes;
  if (g.placement == Placement::separate) return g.single_directory || g.scheme.k == 1 ? size <= object_bytes : rows <= most_units;
  const uint64_t units = rows * uint64_t(g.scheme.width());
  return (g.single_directory ? units : divide_up(units, uint64_t(g.members))) <= most_units;
}

uint64_t always_held_bytes(const Geometry& g) { return always_held_object_bytes * uint64_t(g.scheme.k); }

uint64_t largest_object_bytes(Members& members, const catalog::Located& located) {
  auto found = std::make_shared<std::vector<uint64_t>>(size_t(members.count()), largest_offset);
  const std::string what = "probe." + layout::random_id();
  (void)members.ask_each([&](int member) -> MemberCall {
    return [found, member, scratch = located.meta_name(member, what)](MemberHandle& handle) {
      auto bytes = ask(handle.target(), scratch);
      if (bytes) (*found)[size_t(member)] = *bytes;
      return bytes.status();
    };
  });
  return *std::min_element(found->begin(), found->end());
}

}  // namespace holdfast::engine
