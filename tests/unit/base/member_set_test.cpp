#include "base/member_set.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <type_traits>
#include <vector>

namespace holdfast {
namespace {

// A mask of units cannot be taken for a set of members, nor the other way round.
static_assert(!std::is_convertible_v<uint64_t, MemberSet> && !std::is_constructible_v<MemberSet, uint64_t>);
static_assert(!std::is_convertible_v<MemberSet, uint64_t>);
static_assert(std::is_trivially_copyable_v<MemberSet>);

rc::Gen<std::set<int>> any_members() { return rc::gen::container<std::set<int>>(rc::gen::inRange(0, MemberSet::most)); }

MemberSet set_of(const std::set<int>& members) {
  MemberSet set;
  for (const int member : members) set.add(member);
  return set;
}

std::vector<int> list_of(const MemberSet& set) { return {set.begin(), set.end()}; }
std::vector<int> list_of(const std::set<int>& set) { return {set.begin(), set.end()}; }

RC_GTEST_PROP(MemberSets, say_what_was_added_in_its_order, ()) {
  const auto members = *any_members();
  const MemberSet set = set_of(members);
  RC_ASSERT(list_of(set) == list_of(members));
  RC_ASSERT(set.count() == int(members.size()));
  RC_ASSERT(set.any() == !members.empty());
  RC_ASSERT(set.none() == members.empty());
  for (int member = 0; member < MemberSet::most; ++member) RC_ASSERT(set.has(member) == members.contains(member));
}

RC_GTEST_PROP(MemberSets, are_united_cut_and_taken_from_each_other, ()) {
  const auto one = *any_members(), other = *any_members();
  std::set<int> both = one, common, left;
  both.insert(other.begin(), other.end());
  std::set_intersection(one.begin(), one.end(), other.begin(), other.end(), std::inserter(common, common.end()));
  std::set_difference(one.begin(), one.end(), other.begin(), other.end(), std::inserter(left, left.end()));
  RC_ASSERT((set_of(one) | set_of(other)) == set_of(both));
  RC_ASSERT((set_of(one) & set_of(other)) == set_of(common));
  RC_ASSERT((set_of(one) - set_of(other)) == set_of(left));
}

RC_GTEST_PROP(MemberSets, lose_what_is_removed, ()) {
  auto members = *any_members();
  const int gone = *rc::gen::inRange(0, MemberSet::most);
  MemberSet set = set_of(members);
  set.remove(gone);
  members.erase(gone);
  RC_ASSERT(set == set_of(members));
}

TEST(MemberSet, has_the_first_and_the_last_one) {
  for (const int count : {0, 1, 63, 64, 65, 128, MemberSet::most}) {
    const MemberSet set = MemberSet::first(count);
    EXPECT_EQ(set.count(), count);
    std::vector<int> all;
    for (int member = 0; member < count; ++member) all.push_back(member);
    EXPECT_EQ(list_of(set), all);
  }
  EXPECT_EQ(list_of(MemberSet::of(MemberSet::most - 1)), std::vector<int>{MemberSet::most - 1});
  MemberSet set = MemberSet::first(70);
  set.clear();
  EXPECT_TRUE(set.none());
}

}  // namespace
}  // namespace holdfast
