#include "catalog/single_directory.hpp"

#include <gtest/gtest.h>

namespace holdfast::catalog {
namespace {

using target::Stripes;

layout::Geometry geometry(const char* scheme, layout::Placement placement) {
  layout::Geometry g;
  g.scheme = layout::Scheme::parse(scheme).value();
  g.placement = placement;
  g.single_directory = true;
  g.members = g.scheme.width();
  g.unit_bytes = 65536;
  return g;
}
Stripes on(std::vector<uint32_t> nodes, uint64_t unit = 65536) {
  const int count = int(nodes.size());
  return {unit, count, false, std::move(nodes)};
}

TEST(NodesOfMembers, SeparateUnitsEachHaveTheirOwn) {
  const auto g = geometry("rs:2+1", layout::Placement::separate);
  EXPECT_EQ(nodes_of_members(g, {on({4, 5}), on({0})}), (MemberNodes{{4}, {5}, {0}}));
  EXPECT_EQ(nodes_of_members(g, {on({4, 5, 6, 7}), on({0, 1}, 2 * 65536)}), (MemberNodes{{4, 6}, {5, 7}, {0, 1}}));
}

TEST(NodesOfMembers, InterleavedUnitsRotateOverWhatIsNoMultipleOfARow) {
  const auto g = geometry("mirror:2", layout::Placement::interleaved);
  EXPECT_EQ(nodes_of_members(g, {on({3, 1})}), (MemberNodes{{3}, {1}}));
  const auto three = nodes_of_members(g, {on({0, 1, 2})});
  EXPECT_EQ(three, (MemberNodes{{0, 1, 2}, {0, 1, 2}}));
  EXPECT_FALSE(are_apart(three));
}

TEST(NodesOfMembers, LargerAndSmallerStripesThanTheUnitAreCountedWhole) {
  const auto g = geometry("rs:2+1", layout::Placement::separate);
  EXPECT_EQ(nodes_of_members(g, {on({4, 5}, 4 * 65536), on({0})}), (MemberNodes{{4, 5}, {4, 5}, {0}}));
  EXPECT_EQ(nodes_of_members(g, {on({1, 2, 3, 4}, 32768), on({0})}), (MemberNodes{{1, 2}, {3, 4}, {0}}));
}

TEST(NodesOfMembers, WhatIsNotSaidIsNotKnown) {
  const auto g = geometry("rs:2+1", layout::Placement::separate);
  const auto nodes = nodes_of_members(g, {on({4, 5})});
  EXPECT_TRUE(nodes[2].empty());
  EXPECT_FALSE(are_apart(nodes));
  EXPECT_FALSE(are_apart(nodes_of_members(g, {Stripes{}, Stripes{}})));
}

TEST(NodesOfMembers, ApartMeansThatNoTwoShareANode) {
  EXPECT_TRUE(are_apart({{1}, {2}, {3, 4}}));
  EXPECT_FALSE(are_apart({{1}, {2}, {3, 1}}));
  EXPECT_FALSE(are_apart({{1}, {1}}));
}

}  // namespace
}  // namespace holdfast::catalog
