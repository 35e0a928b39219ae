// The hub judges twins that do not reach each other when the deadline has passed, and not where they have come through by then.
#include <gtest/gtest.h>

#include "redundant/membership/complaints.hpp"

namespace holdfast::redundant::test {
namespace {

constexpr int64_t deadline_ms = 10000, ripe_ms = deadline_ms + Complaints::grace_ms;

TEST(Complaints, are_judged_once_after_the_deadline) {
  Complaints all;
  all.add({1, 4, 0, "refused", 100});
  all.add({2, 4, 0, "refused", 200});
  EXPECT_TRUE(all.ripe(99 + ripe_ms, deadline_ms).empty());
  const auto first = all.ripe(100 + ripe_ms, deadline_ms);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].team, 1);
  EXPECT_EQ(all.ripe(200 + ripe_ms, deadline_ms).size(), 1u);
  EXPECT_TRUE(all.ripe(900 + ripe_ms, deadline_ms).empty());
}

TEST(Complaints, are_taken_back_by_who_has_made_them) {
  Complaints all;
  all.add({1, 4, 0, "refused", 100});
  all.add({2, 4, 0, "refused", 100});
  all.add({2, 4, 1, "refused", 100});
  all.add({1, 5, 0, "refused", 100});
  all.take_back(2, 4, 0);
  all.forget(5);
  const auto rest = all.ripe(100 + ripe_ms, deadline_ms);
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_EQ(rest[0].team, 1);
  EXPECT_EQ(rest[1].other, 1);
}

}  // namespace
}  // namespace holdfast::redundant::test
