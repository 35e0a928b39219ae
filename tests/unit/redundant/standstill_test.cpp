// Replicas that wait for each other at different places, as their leader judges it.
#include "redundant/compare/standstill.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include "redundant/map.hpp"
#include "redundant/twins/kernel_waits.hpp"

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

// A leader hears last that an earlier file is closed, and then says so to all: while it waits at the next one.
TEST(Standstill, stays_said_while_an_earlier_call_is_over) {
  Standstill two;
  two.said(1, told_epoch, standing_at(other_place, 2));
  two.is_past(1, one_place);
  EXPECT_TRUE(two.judge(standing_at(one_place, 5), facts_of(2, 1)));
  two.is_past(1, other_place);
  EXPECT_FALSE(two.judge(standing_at(one_place, 5), facts_of(2, 1)));
}

std::string call_of(long number, const char* arguments) { return std::to_string(number) + " " + arguments + " 0x0 0x0 0x0 0x7ffe 0x7f01\n"; }

TEST(Locks, are_waited_for_in_calls_of_the_kernel) {
  EXPECT_EQ(descriptor_of_awaited_lock(call_of(SYS_flock, "0x208 0x2 0x2")), 0x208);
  EXPECT_EQ(descriptor_of_awaited_lock(call_of(SYS_fcntl, ("0x9 0x" + std::to_string(F_SETLKW) + " 0x7ff0").c_str())), 9);
  EXPECT_FALSE(descriptor_of_awaited_lock(call_of(SYS_fcntl, ("0x9 0x" + std::to_string(F_GETLK) + " 0x7ff0").c_str())));
  EXPECT_FALSE(descriptor_of_awaited_lock(call_of(SYS_read, "0x9 0x7 0x26")));
  EXPECT_FALSE(descriptor_of_awaited_lock(""));
}

}  // namespace
}  // namespace holdfast::redundant
