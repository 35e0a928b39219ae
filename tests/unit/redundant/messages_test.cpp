// Which message came first is the leader's to say, for all replicas of a rank.
#include <gtest/gtest.h>

#include "unit/redundant/fake_ranks.hpp"

namespace holdfast::redundant::test {
namespace {

// All ranks of all teams that live have seen the same.
void check_messages(int count, uint64_t seed, const std::vector<std::pair<uint64_t, int>>& deaths, Program program = by_messages) {
  Teams teams(count, seed, program);
  ASSERT_TRUE(teams.run(deaths)) << "hangs: seed " << seed << " of " << count << " teams, death at " << (deaths.empty() ? 0 : deaths[0].first);
  for (int rank = 0; rank < ranks; ++rank) {
    const Rank* first = nullptr;
    for (int team = 0; team < count; ++team) {
      if (!teams.lives(team)) continue;
      const Rank& member = teams.member(team, rank);
      ASSERT_FALSE(member.is_torn());
      if (first) {
        ASSERT_EQ(first->log(), member.log()) << "rank " << rank << ", seed " << seed << " of " << count << " teams";
      }
      first = &member;
    }
  }
}

class MessagesOfTeams : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Teams, MessagesOfTeams, testing::Values(1, 2, 3, 4));

TEST_P(MessagesOfTeams, are_the_same_in_all) {
  for (uint64_t seed = 1; seed <= 200; ++seed) check_messages(GetParam(), seed, {});
}

TEST_P(MessagesOfTeams, are_the_same_after_the_leader_has_died_at_any_step) {
  if (GetParam() < 2) return;
  for (uint64_t seed = 1; seed <= 4; ++seed)
    for (uint64_t step = 0; step < 1500; step += 5) check_messages(GetParam(), seed, {{step, 0}});
}

TEST_P(MessagesOfTeams, are_the_same_after_two_deaths) {
  if (GetParam() < 3) return;
  std::mt19937_64 random(11);
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    const uint64_t first = random() % 1500, second = first + random() % 200;
    check_messages(GetParam(), seed, {{first, int(random() % uint64_t(GetParam()))}, {second, int(random() % uint64_t(GetParam()))}});
  }
}

// A clock says who sends; the leader that has asked it dies before its answer has come to its twins.
TEST_P(MessagesOfTeams, that_follow_from_clocks_are_the_same_after_the_leader_has_died_at_any_step) {
  for (uint64_t seed = 1; seed <= 3; ++seed)
    for (uint64_t step = 0; step < 800; step += 3) check_messages(GetParam(), seed, {{step, 0}}, by_clock);
}

TEST_P(MessagesOfTeams, that_follow_from_clocks_are_the_same_after_two_deaths) {
  if (GetParam() < 3) return;
  std::mt19937_64 random(17);
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const uint64_t first = random() % 1200, second = first + random() % 200;
    check_messages(GetParam(), seed, {{first, int(random() % uint64_t(GetParam()))}, {second, int(random() % uint64_t(GetParam()))}}, by_clock);
  }
}

TEST(MessageDecisions, noes_are_counted) {
  Decisions leader(0, 2), follower(1, 2);
  Outbox out;
  EXPECT_TRUE(leader.decided_no(9));
  for (int i = 1; i < 100000; ++i) EXPECT_FALSE(leader.decided_no(9));
  (void)leader.decided_message(9, bytes_of("here"));
  leader.send_batch(out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_LT(out[0].second.payload.size(), 100u);
  Outbox answers;
  follower.take(out[0].second, answers);
  Bytes answer;
  for (int i = 0; i < 100000; ++i) ASSERT_EQ(follower.next_message(9, answer), Decisions::Known::no);
  EXPECT_EQ(follower.next_message(9, answer), Decisions::Known::yes);
  EXPECT_EQ(text_of(answer), "here");
  EXPECT_EQ(follower.next_message(9, answer), Decisions::Known::nothing);
}

TEST(MessageDecisions, noes_are_counted_without_a_lock_where_one_waits_to_be_sent) {
  Decisions leader(0, 2), follower(1, 2);
  Outbox out, answers;
  ASSERT_TRUE(leader.decides(9));
  Decisions::Noes& said = leader.noes(9);
  EXPECT_TRUE(said.is_asked());
  for (int batch = 0; batch < 3; ++batch) {
    EXPECT_FALSE(said.adds());  // nobody would send it
    EXPECT_TRUE(leader.decided_no(9));
    for (int i = 1; i < 100; ++i) ASSERT_TRUE(said.adds());
    EXPECT_FALSE(leader.has_arrived());
    leader.send_batch(out);
    follower.take(out[0].second, answers);
    leader.take(answers[0].second, out);
    EXPECT_TRUE(leader.has_arrived());
    out.clear(), answers.clear();
  }
  Decisions::Noes& told = follower.noes(9);
  EXPECT_FALSE(told.is_asked());
  Bytes answer;
  for (int batch = 0; batch < 3; ++batch) {
    EXPECT_FALSE(told.repeats());
    EXPECT_EQ(follower.next_message(9, answer), Decisions::Known::no);
    for (int i = 1; i < 100; ++i) ASSERT_TRUE(told.repeats());
  }
  EXPECT_FALSE(told.repeats());
  EXPECT_EQ(follower.next_message(9, answer), Decisions::Known::nothing);
}

// Else it would ask the world what all the others have been told.
TEST(MessageDecisions, a_new_leader_asks_when_it_has_repeated_what_was_said) {
  Decisions leader(0, 2), heir(1, 2);
  Outbox out, answers;
  for (int i = 0; i < 3; ++i) (void)leader.decided_no(9);
  leader.send_batch(out);
  heir.take(out[0].second, answers);
  Bytes answer;
  EXPECT_EQ(heir.next_message(9, answer), Decisions::Known::no);
  Decisions::Noes& noes = heir.noes(9);
  heir.live(1, 2, 1, out);
  EXPECT_FALSE(heir.noes(9).is_asked());
  EXPECT_TRUE(noes.repeats());
  EXPECT_TRUE(noes.repeats());
  EXPECT_FALSE(noes.repeats());
  EXPECT_TRUE(heir.noes(9).is_asked());
  heir.learn(9, 2, bytes_of("it comes late"));
  EXPECT_FALSE(noes.is_asked());
}

TEST(MessageDecisions, have_arrived_when_all_who_live_have_said_so) {
  Decisions leader(0, 3), one(1, 3), two(2, 3);
  EXPECT_TRUE(leader.has_arrived());
  (void)leader.decided(3, bytes_of("a clock"));
  EXPECT_TRUE(leader.has_arrived());
  (void)leader.decided_message(9, bytes_of("here"));
  EXPECT_FALSE(leader.has_arrived());
  Outbox out, answers;
  leader.send_batch(out);
  one.take(out[0].second, answers);
  leader.take(answers[0].second, out);
  EXPECT_FALSE(leader.has_arrived());
  leader.live(1, 3, 0, out);  // the third one is lost
  EXPECT_TRUE(leader.has_arrived());
}

TEST(Receives, one_that_is_open_holds_back_what_could_take_its_message) {
  Receives receives;
  const auto open = receives.begin({anybody, 5}), same = receives.begin({2, 5}), other = receives.begin({2, 6});
  EXPECT_EQ(receives.next_ready(), other);
  receives.posted(other);
  EXPECT_EQ(receives.next_ready(), std::nullopt);
  EXPECT_TRUE(receives.holds_back({3, 5}));
  EXPECT_FALSE(receives.holds_back({3, 6}));
  receives.decided(1, Envelope{3, 5});
  EXPECT_EQ(receives.next_ready(), open);
  receives.posted(open);
  EXPECT_EQ(receives.next_ready(), same);
}

TEST(Receives, a_decided_one_waits_for_an_open_one_before_it) {
  Receives receives;
  const auto first = receives.begin({}), second = receives.begin({});
  receives.decided(2, Envelope{1, 5});
  EXPECT_EQ(receives.next_ready(), std::nullopt);
  receives.decided(1, Envelope{1, 5});
  EXPECT_EQ(receives.next_ready(), first);
  receives.posted(first);
  EXPECT_EQ(receives.next_ready(), second);
}

TEST(Receives, a_cancelled_one_holds_nothing_back) {
  Receives receives;
  const auto open = receives.begin({}), after = receives.begin({1, 5});
  receives.decided(1, std::nullopt);
  EXPECT_TRUE(receives.is_cancelled(open));
  EXPECT_EQ(receives.next_ready(), after);
}

TEST(Receives, what_is_decided_before_a_receive_is_posted_is_kept_for_it) {
  Receives receives;
  receives.decided(1, Envelope{4, 2});
  const auto open = receives.begin({});
  EXPECT_FALSE(receives.is_open(open));
  EXPECT_EQ(receives.envelope(open), (Envelope{4, 2}));
}

TEST(Receives, a_leader_tells_first_of_those_before_that_could_have_taken_it) {
  Receives receives;
  receives.lead();
  const auto first = receives.begin({anybody, 5}), second = receives.begin({2, anybody}), third = receives.begin({});
  for (const auto name : {first, second, third}) {
    EXPECT_EQ(receives.next_ready(), name);
    receives.posted(name);
  }
  EXPECT_EQ(receives.before(third, {1, 5}), std::vector{first});
  EXPECT_EQ(receives.before(third, {2, 5}), (std::vector{first, second}));
  EXPECT_TRUE(receives.before(first, {2, 5}).empty());
}

}  // namespace
}  // namespace holdfast::redundant::test
