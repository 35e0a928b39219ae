// A file in one directory. Its members are parts of one directory, and where the file system stripes and says where, each lies on storage
// nodes of its own.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "catalog/located.hpp"
#include "catalog/probe.hpp"
#include "target/stripes.hpp"

namespace holdfast::catalog {

// The nodes of each member, by its number; an empty list where they are not known.
using MemberNodes = std::vector<std::vector<uint32_t>>;

// On which nodes the units of each member lie over all rows, by how the data objects lie.
MemberNodes nodes_of_members(const layout::Geometry& geometry, const std::vector<target::Stripes>& objects);
// Whether the nodes of every member are known and no two members share one.
bool are_apart(const MemberNodes& nodes);

struct PlacedObjects {
  std::vector<target::Stripes> objects;
  MemberNodes nodes;       // empty unless the members are apart, and stay so with what is made later
  bool obedient = true;    // no object was given another start than it was asked for
  int distinct_nodes = 1;  // that the objects have in sum
};
// Makes the data object in `directory` on `target`. Where the file system says on which nodes it lies, also the redundancy objects and the members'
// records on other nodes. `nodes_per_unit`: over how many nodes each unit of the rows is spread. `start`: the first node, or target::any_node.
// Blocks: for a lane.
Status place_objects(target::Target& target, const std::string& directory, const layout::Geometry& geometry, int nodes_per_unit, int start,
                     PlacedObjects& made);

// The members of a file whose directory was probed. By the nodes in the manifest each has a lane of its own and a target that puts what it makes
// there. Without nodes all have the directory's.
std::vector<Member> members_in_directory(const Located& located, const Probe& probe, uint64_t deadline_ms);

}  // namespace holdfast::catalog
