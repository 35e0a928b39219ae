// How much memory an agent's clients take up together: in turn, bounded, and nobody waits for ever.
#include "agent/credits.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace holdfast::agent {
namespace {

using Holders = std::vector<Credits::Holder>;

TEST(Credits, are_lent_until_there_are_none_and_then_in_turn) {
  Credits credits(10);
  EXPECT_TRUE(credits.take(1, 6));
  EXPECT_FALSE(credits.is_waited_for());
  EXPECT_FALSE(credits.take(2, 5));
  EXPECT_FALSE(credits.take(3, 1)) << "it would fit, and is not let past the one that came first";
  EXPECT_TRUE(credits.is_waited_for());
  EXPECT_FALSE(credits.has(2) || credits.has(3));
  EXPECT_EQ(credits.give_back(1), (Holders{2, 3}));
  EXPECT_TRUE(credits.has(2) && credits.has(3) && !credits.has(1));
  EXPECT_EQ(credits.held(), 6u);
}

TEST(Credits, who_wants_more_than_there_are_is_alone) {
  Credits credits(10);
  EXPECT_TRUE(credits.take(1, 1));
  EXPECT_FALSE(credits.take(2, 1000));
  EXPECT_FALSE(credits.take(3, 1));
  EXPECT_EQ(credits.give_back(1), Holders{2});
  EXPECT_EQ(credits.give_back(2), Holders{3});
}

TEST(Credits, who_gives_up_waiting_lets_the_next_one_in) {
  Credits credits(10);
  EXPECT_TRUE(credits.take(1, 6));
  EXPECT_FALSE(credits.take(2, 5));
  EXPECT_FALSE(credits.take(3, 4));
  EXPECT_EQ(credits.give_back(2), Holders{3});
  EXPECT_EQ(credits.give_back(2), Holders());
  EXPECT_EQ(credits.held(), 10u);
}

TEST(Credits, what_is_known_later_counts_although_there_is_less) {
  Credits credits(10);
  credits.hold(1, 25);
  EXPECT_FALSE(credits.take(2, 1));
  EXPECT_EQ(credits.hold(1, 10), Holders());
  EXPECT_EQ(credits.hold(1, 9), Holders{2}) << "less of it lets others in";
  EXPECT_EQ(credits.held(), 10u);
}

TEST(Credits, none_are_lost_and_everybody_gets_his) {
  constexpr uint64_t all = 100;
  std::mt19937_64 random(3);
  Credits credits(all);
  std::set<Credits::Holder> holding, waiting;
  const auto got_theirs = [&](const Holders& holders) {
    for (const Credits::Holder holder : holders) {
      EXPECT_EQ(waiting.erase(holder), 1u);
      holding.insert(holder);
    }
  };
  for (Credits::Holder next = 1; next < 20000; ++next) {
    (credits.take(next, random() % 130) ? holding : waiting).insert(next);
    while (!holding.empty() && random() % 3) {
      const auto one = std::next(holding.begin(), long(random() % holding.size()));
      got_theirs(credits.give_back(*one));
      holding.erase(one);
    }
    ASSERT_LE(credits.held(), all);
    ASSERT_EQ(credits.is_waited_for(), !waiting.empty());
    ASSERT_FALSE(holding.empty() && !waiting.empty()) << "they would wait for nobody";
  }
  while (!holding.empty()) {
    const auto one = *holding.begin();
    holding.erase(holding.begin());
    got_theirs(credits.give_back(one));
  }
  EXPECT_TRUE(waiting.empty());
  EXPECT_EQ(credits.held(), 0u);
}

}  // namespace
}  // namespace holdfast::agent
