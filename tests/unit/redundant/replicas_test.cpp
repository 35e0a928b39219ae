// Calls and decisions of all replicas of a rank, with losses at every step.
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/redundant/fake_link.hpp"

namespace holdfast::redundant::test {
namespace {

// What all who live to the end have seen is the same.
void check(int teams, uint64_t seed, const std::vector<std::pair<uint64_t, int>>& deaths) {
  const std::vector<Step> program = some_program(seed, 12);
  Link link(teams, seed, program);
  ASSERT_TRUE(link.run(deaths)) << "hangs: seed " << seed << " of " << teams << " teams";
  const FakeReplica* first = nullptr;
  for (int team = 0; team < teams; ++team) {
    if (!link.lives(team)) continue;
    const FakeReplica& replica = link.replica(team);
    ASSERT_FALSE(replica.is_torn()) << "seed " << seed;
    ASSERT_EQ(replica.seen().size(), program.size());
    if (first) {
      ASSERT_EQ(first->seen(), replica.seen()) << "seed " << seed << " of " << teams << " teams";
    }
    first = &replica;
  }
}

class Replicas : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Teams, Replicas, testing::Values(2, 3, 4));

TEST_P(Replicas, without_a_loss_each_call_is_made_once) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const std::vector<Step> program = some_program(seed, 12);
    Link link(GetParam(), seed, program);
    ASSERT_TRUE(link.run({}));
    for (const uint64_t subject : {1, 2}) {
      const auto calls = std::count_if(program.begin(), program.end(), [&](const Step& step) { return step.meets && step.subject == subject; });
      if (calls > 0) {
        ASSERT_EQ(link.acts(subject), uint64_t(calls));
      }
    }
    for (int team = 1; team < GetParam(); ++team) ASSERT_EQ(link.replica(team).seen(), link.replica(0).seen()) << "seed " << seed;
  }
}

TEST_P(Replicas, what_is_over_in_all_is_forgotten) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const std::vector<Step> program = some_program(seed, 12);
    Link link(GetParam(), seed, program);
    link.nobody_leaves();
    ASSERT_TRUE(link.run({}));
    link.drain();
    for (int team = 0; team < GetParam(); ++team) ASSERT_EQ(link.replica(team).remembered(), 0u) << "seed " << seed;
  }
}

TEST_P(Replicas, a_loss_at_any_step_leaves_the_others_of_one_mind) {
  for (uint64_t seed = 1; seed <= 15; ++seed)
    for (uint64_t step = 0; step < 400; step += 3)
      for (int team = 0; team < GetParam(); ++team) check(GetParam(), seed, {{step, team}});
}

TEST_P(Replicas, two_losses_leave_the_others_of_one_mind) {
  if (GetParam() < 3) return;
  std::mt19937_64 random(7);
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    const uint64_t first = random() % 400, second = first + random() % 60;
    check(GetParam(), seed, {{first, int(random() % uint64_t(GetParam()))}, {second, int(random() % uint64_t(GetParam()))}});
  }
}

// The leader's, too.
TEST_P(Replicas, one_that_differs_is_out_before_anything_of_it_is_done) {
  uint64_t out = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed)
    for (int team = 0; team < GetParam(); ++team) {
      const std::vector<Step> program = some_program(seed, 12);
      Link link(GetParam(), seed, program);
      link.flip(team, seed % program.size());
      ASSERT_TRUE(link.run({})) << "hangs: seed " << seed << ", team " << team << " of " << GetParam();
      ASSERT_FALSE(link.acted_wrongly()) << "seed " << seed << ", team " << team << " of " << GetParam();
      ASSERT_FALSE(link.stopped() && GetParam() > 2) << "seed " << seed;
      out += !link.lives(team);
      std::vector<std::vector<std::string>> seen;
      for (int other = 0; other < GetParam(); ++other)
        if (link.lives(other)) seen.push_back(link.replica(other).seen());
      if (!link.stopped()) {
        ASSERT_EQ(std::count(seen.begin(), seen.end(), seen[0]), ptrdiff_t(seen.size())) << "seed " << seed << ", team " << team;
      }
    }
  EXPECT_EQ(out > 0, GetParam() > 2);
}

TEST_P(Replicas, one_that_differs_while_another_one_is_lost_is_out_or_stops_the_job) {
  if (GetParam() < 3) return;
  std::mt19937_64 random(23);
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    const std::vector<Step> program = some_program(seed, 12);
    Link link(GetParam(), seed, program);
    const int flipped = int(random() % uint64_t(GetParam())), lost = int(random() % uint64_t(GetParam()));
    link.flip(flipped, random() % program.size());
    ASSERT_TRUE(link.run({{random() % 400, lost}})) << "hangs: seed " << seed << ", team " << flipped << " of " << GetParam();
    ASSERT_FALSE(link.acted_wrongly()) << "seed " << seed << ", team " << flipped << " of " << GetParam();
  }
}

// All answers of a leader that asks faster than its batches leave.
Outbox some_batches(Decisions& leader, size_t batches) {
  Outbox out;
  for (uint64_t i = 0; batches > 0; --batches) {
    for (; !leader.is_full(); ++i) (void)leader.decided(7, std::as_bytes(std::span(&i, 1)));
    leader.send_batch(out);
  }
  return out;
}

// Two batches may be with one and not with another.
TEST(Decisions, a_batch_is_small_enough_to_be_remembered) {
  Decisions leader(0, 3), ahead(1, 3), behind(2, 3);
  Outbox out, united;
  for (const auto& [team, frame] : some_batches(leader, 2))
    if (team == 1) ahead.take(frame, out);
  behind.live(1, 0b110, 1, united);
  ahead.live(1, 0b110, 1, out);
  for (const auto& [team, frame] : united) ahead.take(frame, out);
  for (const auto& [team, frame] : out) behind.take(frame, united);
  EXPECT_FALSE(behind.is_torn());
  uint64_t one = 1, other = 2;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(ahead.next(7, std::as_writable_bytes(std::span(&one, 1))));
    ASSERT_TRUE(behind.next(7, std::as_writable_bytes(std::span(&other, 1))));
    ASSERT_EQ(one, other);
  }
}

TEST(Decisions, one_that_lacks_what_nobody_remembers_is_told_nothing_more) {
  Decisions leader(0, 3), ahead(1, 3), behind(2, 3);
  Outbox out, united;
  for (const auto& [team, frame] : some_batches(leader, 6))
    if (team == 1) ahead.take(frame, out);
  behind.live(1, 0b110, 1, united);
  ahead.live(1, 0b110, 1, out);
  for (const auto& [team, frame] : united) ahead.take(frame, out);
  for (const auto& [team, frame] : out) behind.take(frame, united);
  EXPECT_TRUE(behind.is_torn());
  uint64_t answer = 0;
  EXPECT_FALSE(behind.next(7, std::as_writable_bytes(std::span(&answer, 1))));
  EXPECT_FALSE(behind.decides(7));
}

TEST(Meetings, claims_that_differ_stop_the_leader_before_it_acts) {
  Meetings leader(0, 2), follower(1, 2);
  Outbox out;
  leader.begin(5, {.call = 1, .at = 0, .bytes = 10, .sum = 77}, out);
  EXPECT_EQ(leader.state(5), Meetings::State::wait);
  follower.begin(5, {.call = 1, .at = 0, .bytes = 10, .sum = 78}, out);
  ASSERT_EQ(out.size(), 1u);
  leader.take(out[0].second, out);
  EXPECT_EQ(leader.state(5), Meetings::State::differ);
  EXPECT_EQ(leader.claims(5).size(), 2u);
  Outbox none;
  leader.live(1, 1, none);  // the other one was lost meanwhile: its claim means nothing
  EXPECT_EQ(leader.state(5), Meetings::State::act);
}

TEST(Meetings, what_replicas_have_seen_may_differ) {
  Meetings leader(0, 2), follower(1, 2);
  Outbox out;
  leader.begin(5, {.call = 1, .view = 3}, out);
  follower.begin(5, {.call = 1, .view = 4}, out);
  leader.take(out[0].second, out);
  EXPECT_EQ(leader.state(5), Meetings::State::act);
  EXPECT_NE(leader.claims(5)[0].second.view, leader.claims(5)[1].second.view);
}

TEST(Meetings, one_that_is_alone_acts_at_once) {
  Meetings only(0, 1);
  Outbox out;
  only.begin(5, {}, out);
  EXPECT_EQ(only.state(5), Meetings::State::act);
  only.finish(5, bytes_of("done"), out);
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(text_of(only.end(5)), "done");
}

}  // namespace
}  // namespace holdfast::redundant::test
