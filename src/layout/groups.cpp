#include "layout/groups.hpp"

namespace holdfast::layout {

std::vector<int> group_sizes(int nodes, int width) {
  if (width < 1 || nodes < width) return {};
  const int groups = nodes / width;
  std::vector<int> sizes(std::size_t(groups), nodes / groups);
  for (int i = 0; i < nodes % groups; ++i) ++sizes[std::size_t(groups - 1 - i)];
  return sizes;
}

}  // namespace holdfast::layout
