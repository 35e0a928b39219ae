// Replicas that wait for each other at different places, as their leader judges it.
#include "redundant/compare/standstill.hpp"

#include <gtest/gtest.h>

#include "redundant/map.hpp"
#include "redundant/twins/children.hpp"

namespace holdfast::redundant {
namespace {

constexpr uint64_t one_place = 7, other_place = 8;
constexpr uint32_t told_epoch = 3;

Standing standing_at(uint64_t subject, uint64_t number, bool is_question = false) {
  return {subject, number, is_question, "place " + std::to_string(subject)};
}

// Of a leader in team 0 that has begun `begun` calls on the other place, and whose call the teams of `come` make, too.
Standstill::Facts facts_of(int teams, uint64_t begun = 0, uint64_t come = 0) {
  return {0, first_teams(teams), told_epoch,
          [come](int team) { return come & team_bit(team) ? std::optional<uint64_t>(Claim::proven) : std::nullopt; },
          [begun](const Standing& there) { return there.subject == other_place ? begun : 100; }};
}

TEST(Standstill, is_where_each_waits_at_a_call_that_the_other_has_not_begun) {
  Standstill two;
  EXPECT_FALSE(two.judge(standing_at(one_place, 5), facts_of(2))) << "it may still come";
  two.said(1, told_epoch, standing_at(other_place, 2));
  const auto found = two.judge(standing_at(one_place, 5), facts_of(2, 1));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->what, "place 8 (team 0 waits at place 7)");
  ASSERT_EQ(found->claims.size(), 2u);
  EXPECT_FALSE(found->claims[0].second == found->claims[1].second);
}

TEST(Standstill, is_not_where_an_outcome_is_on_its_way) {
  Standstill two;
  two.said(1, told_epoch, standing_at(other_place, 2));
  EXPECT_FALSE(two.judge(standing_at(one_place, 5), facts_of(2, 2)));
  EXPECT_FALSE(two.judge(standing_at(one_place, 5), facts_of(2, 1, team_bit(1)))) << "it has come since then";
}

// Numbers of a subject that all have forgotten begin anew, so they do not tell that a call there is over.
TEST(Standstill, is_not_said_by_whoever_has_gone_on_since) {
  Standstill two;
  two.said(1, told_epoch, standing_at(other_place, 2));
  two.goes_on(1);
  EXPECT_FALSE(two.judge(standing_at(one_place, 5), facts_of(2, 0)));
}

TEST(Standstill, is_not_said_by_what_another_leader_was_told) {
  Standstill two;
  two.said(1, told_epoch - 1, standing_at(other_place, 2));
  EXPECT_FALSE(two.judge(standing_at(one_place, 5), facts_of(2, 1)));
}

TEST(Standstill, is_also_before_a_question_that_the_leader_does_not_ask) {
  Standstill two;
  two.said(1, told_epoch, standing_at(other_place, 2, true));
  const auto found = two.judge(standing_at(other_place, 2), facts_of(2, 1));
  ASSERT_TRUE(found) << "a question is not a call of that number";
  EXPECT_FALSE(found->claims[0].second == found->claims[1].second);
}

TEST(Standstill, of_three_waits_for_each_and_names_the_one_that_is_elsewhere) {
  Standstill three;
  three.said(2, told_epoch, standing_at(other_place, 2));
  EXPECT_FALSE(three.judge(standing_at(one_place, 5), facts_of(3, 1))) << "team 1 is on its way";
  const auto found = three.judge(standing_at(one_place, 5), facts_of(3, 1, team_bit(1)));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->claims[0].second == found->claims[1].second);
  EXPECT_FALSE(found->claims[0].second == found->claims[2].second);
  three.said(1, told_epoch, standing_at(one_place, 5));
  EXPECT_TRUE(three.judge(standing_at(one_place, 5), facts_of(3, 1))) << "it waits for a piece of that call";
}

TEST(Standstill, keeps_that_nothing_speaks_for_one_that_has_resumed) {
  Standstill two;
  Standing there = standing_at(other_place, 2);
  there.proof = Claim::unproven;
  two.said(1, told_epoch, there);
  EXPECT_EQ(two.judge(standing_at(one_place, 5), facts_of(2, 1))->claims[1].second.proof, Claim::unproven);
}

TEST(Standstill, knows_who_waits_for_a_call_that_is_not_begun) {
  Standstill two;
  const auto number = facts_of(2, 1).number;
  EXPECT_EQ(two.waiting_for(number, first_teams(2), told_epoch), -1);
  two.said(1, told_epoch, standing_at(other_place, 2));
  EXPECT_EQ(two.waiting_for(number, first_teams(2), told_epoch), 1);
  EXPECT_EQ(two.waiting_for(facts_of(2, 2).number, first_teams(2), told_epoch), -1) << "it is in that call";
  EXPECT_EQ(two.waiting_for(number, team_bit(0), told_epoch), -1) << "it is lost";
}

TEST(Locks, are_read_as_the_kernel_shows_them) {
  const auto all = locks_in(
      "1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF\n"
      "1: -> FLOCK  ADVISORY  WRITE 4712 08:01:131 0 EOF\n"
      "2: POSIX  ADVISORY  READ  4713 00:2a:7 0 9\n");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].process, 4711);
  EXPECT_EQ(all[0].file, "08:01:131");
  EXPECT_FALSE(all[0].waits);
  EXPECT_TRUE(all[1].waits);
  EXPECT_EQ(all[1].process, 4712);
  EXPECT_EQ(all[2].file, "00:2a:7");
  EXPECT_EQ(locks_in("lock:\t1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF\n").at(0).file, "08:01:131") << "in fdinfo";
}

}  // namespace
}  // namespace holdfast::redundant
