#include "catalog/located.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/node_path.hpp"

namespace holdfast::catalog {

std::string Located::data_name(int object) const {
  const bool interleaved = manifest.geometry.placement == layout::Placement::interleaved;
  if (!single()) return interleaved ? manifest.directory + "/data" : fmt::format("{}/unit{}", manifest.directory, object);
  if (interleaved) return fmt::format(".{}.holdfast/data", single_directory_name);
  if (object == 0) return single_directory_name;  // the plain file at the user's path
  return fmt::format(".{}.holdfast/redundancy{}", single_directory_name, object - 1);
}

bool Located::locks_may_end() const {
  return std::any_of(members.begin(), members.end(), [](const Member& member) { return member.usable() && member.target->is_far(); }) ||
         std::any_of(manifest.members.begin(), manifest.members.end(), [](const auto& member) { return names_a_node(member.path); });
}

std::string Located::place_of(int member) const {
  const layout::ManifestMember& entry = manifest.members[size_t(member)];
  const std::string nodes = layout::name_of_nodes(entry.nodes);
  return nodes.empty() ? entry.path : fmt::format("{} ({})", entry.path, nodes);
}

std::string Located::meta_name(int member, const std::string& what) const {
  if (single()) return fmt::format(".{}.holdfast/m{}.{}", single_directory_name, member, what);
  return manifest.directory + "/" + what;
}

}  // namespace holdfast::catalog
