#include "catalog/single_directory.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "catalog/environment.hpp"

namespace holdfast::catalog {

using layout::Geometry;
using target::Stripes;
using target::StripeWish;

namespace {

constexpr uint64_t small_object_unit = 1 << 20;  // one node: what matters is only that every file system takes it
constexpr uint64_t most_stripes_looked_at = 1 << 20;
constexpr int most_tries = 64;  // for nodes that are free

// Object 0 holds the data units (interleaved: all units), side by side; each further one a single redundancy unit of each row, K units apart.
StripeWish wish_for(const Geometry& g, int object, int nodes_per_unit, int start) {
  if (object > 0) return {nodes_per_unit > 1 ? g.row_bytes() : g.unit_bytes, nodes_per_unit, start};
  const int units = g.placement == layout::Placement::interleaved ? g.scheme.width() : g.scheme.k;
  return {g.unit_bytes, units * nodes_per_unit, start};
}

// The nodes of one unit of every row: rows repeat after a round of the object's stripes.
std::vector<uint32_t> nodes_of_unit(const Geometry& g, int unit, const Stripes& stripes) {
  if (stripes.nodes.empty() || stripes.unit_bytes == 0) return {};
  const uint64_t first = layout::place(g, 0, unit).offset, step = layout::place(g, 1, unit).offset - first;
  const uint64_t round = stripes.unit_bytes * stripes.nodes.size(), rows = round / std::gcd(round, step);
  if (rows > most_stripes_looked_at / (g.unit_bytes / stripes.unit_bytes + 2)) return {};
  std::set<uint32_t> found;
  for (uint64_t row = 0; row < rows; ++row) {
    const uint64_t begin = first + row * step, last = begin + g.unit_bytes - 1;
    for (uint64_t stripe = begin / stripes.unit_bytes; stripe <= last / stripes.unit_bytes; ++stripe)
      found.insert(stripes.nodes[stripe % stripes.nodes.size()]);
  }
  return {found.begin(), found.end()};
}

class Placer {
 public:
  Placer(target::Target& target, std::string directory, const Geometry& g, int nodes_per_unit, PlacedObjects& made)
      : target_(target), directory_(std::move(directory)), g_(g), nodes_per_unit_(nodes_per_unit), made_(made) {}

  Status place(int start) {
    auto data = target_.make_striped(directory_ + "/data", wish_for(g_, 0, nodes_per_unit_, start));
    if (!data) return data.status();
    take(*data);
    if (!data->nodes.empty() && g_.placement == layout::Placement::separate)
      for (int j = 0; j < g_.scheme.m; ++j) HF_TRY(place_redundancy(j));
    made_.distinct_nodes = used_.empty() ? data->distinct_nodes() : int(used_.size());
    if (int(made_.objects.size()) < layout::object_count(g_)) return {};
    const MemberNodes nodes = nodes_of_members(g_, made_.objects);
    if (!are_apart(nodes)) return {};
    HF_TRY(place_records(nodes));
    if (made_.obedient) made_.nodes = nodes;
    return {};
  }

 private:
  void take(const Stripes& stripes) {
    made_.objects.push_back(stripes);
    used_.insert(stripes.nodes.begin(), stripes.nodes.end());
  }

  // The nodes after the data's. How many there are nobody says. A start that the file system refuses is beyond the last, and the
  // free ones are looked for from node 0 on.
  Status place_redundancy(int j) {
    const auto after_data = int64_t(made_.objects[0].nodes.front()) + int64_t(g_.scheme.k + j) * nodes_per_unit_;
    HF_TRY(try_start(j, after_data));
    int tries = 1;
    for (int64_t start = 0; made_.obedient && int(made_.objects.size()) == 1 + j && tries < most_tries; ++start) {
      if (used_.count(uint32_t(start)) || start == after_data) continue;
      HF_TRY(try_start(j, start));
      ++tries;
    }
    return {};
  }

  // Keeps the object where it lies on nodes that nothing else has.
  Status try_start(int j, int64_t start) {
    if (int(made_.objects.size()) != 1 + j || start > layout::max_start) return {};
    const std::string name = fmt::format("{}/redundancy{}", directory_, j);
    auto stripes = target_.make_striped(name, wish_for(g_, 1 + j, nodes_per_unit_, int(start)));
    if (!stripes) return stripes.status();
    const auto& nodes = stripes->nodes;
    if (!nodes.empty() && nodes.front() != uint32_t(start)) made_.obedient = false;
    const bool free = !nodes.empty() && std::none_of(nodes.begin(), nodes.end(), [&](uint32_t node) { return used_.count(node); });
    if (!free || !made_.obedient) return target_.remove(name);
    take(*stripes);
    return {};
  }

  // What belongs to a member has to lie where the member's units do; that it can be put there shows with the first.
  Status place_records(const MemberNodes& nodes) {
    for (int member = 0; member < g_.members; ++member) {
      const uint32_t node = nodes[size_t(member)].front();
      auto stripes = target_.make_striped(fmt::format("{}/m{}.sums", directory_, member), {small_object_unit, 1, int(node)});
      if (!stripes) return stripes.status();
      if (stripes->nodes != std::vector<uint32_t>{node}) made_.obedient = false;
    }
    return {};
  }

  target::Target& target_;
  const std::string directory_;
  const Geometry& g_;
  const int nodes_per_unit_;
  PlacedObjects& made_;
  std::set<uint32_t> used_;
};

std::vector<target::StripeRule> rules_for(const Located& located, int member) {
  const layout::Manifest& manifest = located.manifest;
  const Geometry& g = manifest.geometry;
  const auto& mine = manifest.members[size_t(member)].nodes;
  const int nodes_per_unit = int(mine.size());
  std::vector<target::StripeRule> rules;
  for (int object = 0; object < layout::object_count(g); ++object)
    if (layout::holds(g, member, object)) {
      const uint32_t start = object == 0 ? manifest.members[0].nodes.front() : mine.front();
      rules.push_back({located.data_name(object), wish_for(g, object, nodes_per_unit, int(start))});
    }
  rules.push_back({"", {small_object_unit, 1, int(mine.front())}});
  return rules;
}

bool has_nodes(const layout::Manifest& manifest) {
  MemberNodes nodes;
  for (const auto& member : manifest.members) nodes.push_back(member.nodes);
  return are_apart(nodes);
}

}  // namespace

MemberNodes nodes_of_members(const Geometry& g, const std::vector<Stripes>& objects) {
  MemberNodes nodes(size_t(g.members));
  for (int unit = 0; unit < g.scheme.width(); ++unit) {
    const layout::UnitPlace place = layout::place(g, 0, unit);
    if (size_t(place.object) < objects.size()) nodes[size_t(place.member)] = nodes_of_unit(g, unit, objects[size_t(place.object)]);
  }
  return nodes;
}

bool are_apart(const MemberNodes& nodes) {
  std::set<uint32_t> seen;
  for (const auto& of_member : nodes) {
    if (of_member.empty()) return false;
    for (uint32_t node : of_member)
      if (node > uint32_t(layout::max_start) || !seen.insert(node).second) return false;
  }
  return true;
}

Status place_objects(target::Target& target, const std::string& directory, const Geometry& geometry, int nodes_per_unit, int start,
                     PlacedObjects& made) {
  return Placer(target, directory, geometry, nodes_per_unit, made).place(start);
}

std::vector<Member> members_in_directory(const Located& located, const Probe& probe, uint64_t deadline_ms) {
  const layout::Manifest& manifest = located.manifest;
  const bool on_nodes = has_nodes(manifest);
  std::vector<Member> members;
  for (int i = 0; i < manifest.geometry.members; ++i) {
    const layout::ManifestMember& entry = manifest.members[size_t(i)];
    Member member;
    member.index = i;
    member.uuid = entry.uuid;
    member.path = probe.path;
    member.target = probe.target;
    member.lane = probe.lane;
    if (on_nodes) {
      // A node that hangs must not stop the others' calls.
      member.lane = environment().lane_for(located.place_of(i), std::chrono::milliseconds(deadline_ms));
      target::DirectoryOptions options;
      options.mode = mode_t(manifest.mode);
      options.may_be_renamed = true;
      options.stripes = rules_for(located, i);
      auto opened = std::make_shared<std::shared_ptr<target::Target>>();
      member.lost = member.lane->run([opened, options, path = probe.path] {
        auto target = environment().open_target(path, options);
        if (target) *opened = std::move(*target);
        return target.status();
      });
      member.target = member.lost.ok() ? *opened : nullptr;
    }
    members.push_back(std::move(member));
  }
  return members;
}

}  // namespace holdfast::catalog
