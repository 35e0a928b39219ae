#include "engine/last_manifest.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holdfast::engine {

using layout::Manifest;

void call_lost_stale(const Members& members, Manifest& manifest) {
  for (int member = 0; member < members.count(); ++member)
    if (!members.available(member)) {
      manifest.members[size_t(member)].stale = true;
      manifest.members[size_t(member)].why = members.why(member);
    }
}

Status bears_more(const Members& members, const Manifest& manifest) {
  const layout::Scheme& scheme = manifest.geometry.scheme;
  const int may_lack = std::max(0, scheme.m - 1);
  if (members.lost_count() <= may_lack) return {};
  return Status(members.lost_for_space() ? Kind::no_space : Kind::lost,
                fmt::format("{}: {} of its {} targets are lost, and {} would tolerate no further loss: {}", manifest.path, members.lost_count(),
                            members.count(), scheme.name(), members.describe_lost()));
}

Status write_last_manifest(Members& members, catalog::Located& located, uint64_t bytes) {
  const layout::Geometry& g = located.manifest.geometry;
  Manifest manifest = located.manifest;
  manifest.size = bytes;
  manifest.rows = divide_up(bytes, g.row_bytes());
  manifest.epoch = manifest.settled_epoch = 1;
  manifest.next_generation = only_generation + 1;
  call_lost_stale(members, manifest);
  const int stale = members.lost_count();
  Manifest told = manifest;
  told.path.clear();
  const auto text = std::make_shared<const std::string>(layout::encode(told));
  located.manifest = std::move(manifest);
  members.each([&](int member) -> MemberCall {
    return [text, name = located.meta_name(member, "manifest")](MemberHandle& handle) {
      return handle.target().put(name, std::as_bytes(std::span(*text)), true);
    };
  });
  // One copy is enough to read the file: one is there after as many further losses as the manifest says that it bears.
  const int copies = members.count() - members.lost_count();
  if (copies <= g.scheme.m - stale)
    return Status(members.lost_for_space() ? Kind::no_space : Kind::lost,
                  fmt::format("{}: only {} of its targets took its manifest: {}", located.manifest.path, copies, members.describe_lost()));
  return bears_more(members, located.manifest);
}

}  // namespace holdfast::engine
