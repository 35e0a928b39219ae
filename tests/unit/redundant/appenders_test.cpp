// Whose turn it is to append, as the hub has it.
#include <gtest/gtest.h>

#include "redundant/membership/appenders.hpp"

namespace holdfast::redundant {
namespace {

using Append = Appenders::Append;

TEST(Appenders, have_their_turns_one_after_the_other) {
  Appenders appenders;
  EXPECT_TRUE(appenders.ask(7, {0, 1}));
  EXPECT_FALSE(appenders.ask(7, {1, 1}));
  EXPECT_FALSE(appenders.ask(7, {2, 1}));
  EXPECT_TRUE(appenders.ask(8, {1, 2})) << "another file";
  EXPECT_EQ(appenders.over(7, {0, 1}), (Append{1, 1}));
  EXPECT_EQ(appenders.over(7, {1, 1}), (Append{2, 1}));
  EXPECT_EQ(appenders.over(7, {2, 1}), std::nullopt);
  EXPECT_TRUE(appenders.ask(7, {0, 2}));
}

TEST(Appenders, keep_their_turn_when_their_leader_is_lost) {
  Appenders appenders;
  EXPECT_TRUE(appenders.ask(7, {0, 1}));
  EXPECT_FALSE(appenders.ask(7, {1, 1}));
  EXPECT_TRUE(appenders.ask(7, {0, 1})) << "its next leader";
  EXPECT_FALSE(appenders.ask(7, {1, 1})) << "the other rank's next leader";
  EXPECT_EQ(appenders.over(7, {0, 1}), (Append{1, 1}));
}

// All replicas say so, the slower ones when another turn has begun, perhaps their own rank's.
TEST(Appenders, end_a_turn_once) {
  Appenders appenders;
  EXPECT_TRUE(appenders.ask(7, {0, 1}));
  EXPECT_EQ(appenders.over(7, {0, 1}), std::nullopt);
  EXPECT_EQ(appenders.over(7, {0, 1}), std::nullopt);
  EXPECT_TRUE(appenders.ask(7, {0, 2}));
  EXPECT_FALSE(appenders.ask(7, {1, 1}));
  EXPECT_EQ(appenders.over(7, {0, 1}), std::nullopt);
  EXPECT_FALSE(appenders.ask(7, {1, 1}));
  EXPECT_EQ(appenders.over(7, {0, 2}), (Append{1, 1}));
}

TEST(Appenders, of_a_rank_that_has_ended_hold_nobody_up) {
  Appenders appenders;
  EXPECT_TRUE(appenders.ask(7, {0, 1}));
  EXPECT_FALSE(appenders.ask(7, {1, 1}));
  EXPECT_FALSE(appenders.ask(7, {0, 2}));
  EXPECT_TRUE(appenders.ask(8, {1, 2}));
  EXPECT_FALSE(appenders.ask(8, {0, 3}));
  const auto granted = appenders.gone(0);
  ASSERT_EQ(granted.size(), 1u);
  EXPECT_EQ(granted[0].file, 7u);
  EXPECT_EQ(granted[0].append, (Append{1, 1}));
  EXPECT_EQ(appenders.over(8, {1, 2}), std::nullopt);
}

}  // namespace
}  // namespace holdfast::redundant
