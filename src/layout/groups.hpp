// Nodes in groups, so that the data of one group is lost with nodes of that group only.
#pragma once
#include <cstddef>
#include <vector>

namespace holdfast::layout {

// Sizes of the groups into which `nodes` nodes go in their order, each of at least `width`. What is left over goes one by one to the last groups.
// Empty where there are fewer nodes than `width`.
std::vector<int> group_sizes(int nodes, int width);

}  // namespace holdfast::layout
