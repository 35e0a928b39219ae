// Messages of all replicas of a rank, compared on a link of the test's own, at all paces.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>

#include "redundant/compare/sent.hpp"

namespace holdfast::redundant::test {
namespace {

constexpr SentBy by_send("MPI_Send"), by_bcast("MPI_Bcast");

// What message `number` is in all replicas.
SentMessage message(uint64_t number) {
  SentMessage one;
  one.by = number % 5 == 4 ? &by_bcast : &by_send;
  one.communicator = 1;
  one.peer = int(number % 3);
  if (one.by == &by_send) one.tag = int(number % 7);
  one.bytes = 8 * number;
  one.sum = number * 77;
  return one;
}

class Ranks {
 public:
  Ranks(int teams, uint64_t seed) : random_(seed), teams_(teams), living_(first_teams(teams)) {
    for (int team = 0; team < teams; ++team) all_.push_back({std::make_unique<Meetings>(team, teams), std::make_unique<SentMessages>(team)});
  }

  // In `team` the message `number` is another one.
  void flip(int team, uint64_t number) { flips_[team] = number; }

  void send(int team, uint64_t count = 1) {
    One& one = all_[size_t(team)];
    for (; count > 0; --count) {
      const uint64_t number = one.sent->count();
      SentMessage now = message(number);
      if (const auto flip = flips_.find(team); flip != flips_.end() && flip->second == number) now.sum ^= 1;
      if (one.sent->record(now)) call(team, [](SentMessages& sent, const Meetings& twins, Outbox& out) { sent.attend(twins, out); });
    }
  }
  void tick(int team) {
    call(team, [](SentMessages& sent, const Meetings& twins, Outbox& out) { sent.tick(twins, out); });
  }
  // One frame, of any that is under way; or all.
  bool deliver() {
    std::vector<std::pair<int, int>> full;
    for (const auto& [way, frames] : ways_)
      if (!frames.empty()) full.push_back(way);
    if (full.empty()) return false;
    const auto way = full[random_() % full.size()];
    const Frame frame = ways_[way].front();
    ways_[way].pop_front();
    call(way.second, [&](SentMessages& sent, const Meetings& twins, Outbox& out) { sent.take(frame, twins, out); });
    return true;
  }
  void deliver_all() {
    while (deliver()) {
    }
  }
  void lose(int team) {
    living_ &= ~team_bit(team);
    ++epoch_;
    for (int other = 0; other < teams_; ++other) {
      if (!(living_ & team_bit(other))) continue;
      Outbox none;
      all_[size_t(other)].twins->live(epoch_, living_, none);
      all_[size_t(other)].sent->live(*all_[size_t(other)].twins);
    }
  }
  // At random paces, until each has sent so many.
  void run(uint64_t count) {
    for (;;) {
      bool all = true;
      for (int team = 0; team < teams_; ++team) all &= sent(team).count() >= count;
      if (all) break;
      const int team = int(random_() % uint64_t(teams_));
      switch (random_() % 8) {
        case 0: tick(team); break;
        case 1: (void)deliver(); break;
        default: send(team, std::min(1 + random_() % 40, count - sent(team).count()));
      }
    }
    for (int round = 0; round < 4; ++round) {
      for (int team = 0; team < teams_; ++team) tick(team), send(team);
      deliver_all();
    }
  }
  SentMessages& sent(int team) { return *all_[size_t(team)].sent; }
  const Meetings& twins(int team) { return *all_[size_t(team)].twins; }
  void ask(int team, const std::vector<std::pair<int, Claim>>& claims, const std::string& before) {
    call(team, [&](SentMessages& sent, const Meetings& twins, Outbox& out) { sent.ask(claims, before, twins, out); });
  }
  const std::optional<SentMessages::Difference>& found() const { return found_; }

 private:
  struct One {
    std::unique_ptr<Meetings> twins;
    std::unique_ptr<SentMessages> sent;
  };
  template <class Call>
  void call(int team, Call what) {
    One& one = all_[size_t(team)];
    Outbox out;
    what(*one.sent, *one.twins, out);
    if (auto difference = one.sent->found()) {
      EXPECT_TRUE(one.twins->leads());
      EXPECT_FALSE(found_) << "said once";
      found_ = std::move(difference);
    }
    for (auto& [to, frame] : out) ways_[{team, to}].push_back(std::move(frame));
  }

  std::mt19937_64 random_;
  const int teams_;
  std::vector<One> all_;
  std::map<std::pair<int, int>, std::deque<Frame>> ways_;
  std::map<int, uint64_t> flips_;
  std::optional<SentMessages::Difference> found_;
  uint64_t living_;
  uint32_t epoch_ = 0;
};

// Which team is of another mind than the majority: with two, either.
std::vector<int> alone_in(const SentMessages::Difference& difference) {
  std::vector<int> alone;
  for (const auto& [team, claim] : difference.claims) {
    const Claim& mine = claim;
    const auto same = std::count_if(difference.claims.begin(), difference.claims.end(), [&](const auto& one) { return one.second == mine; });
    if (same == 1) alone.push_back(team);
  }
  return alone;
}

class Sent : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Teams, Sent, testing::Values(2, 3, 4));

TEST_P(Sent, what_is_the_same_differs_at_no_pace) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Ranks ranks(GetParam(), seed);
    ranks.run(2000);
    ASSERT_FALSE(ranks.found()) << ranks.found()->what << ", seed " << seed;
  }
}

TEST_P(Sent, the_first_message_that_differs_is_named_with_its_team) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Ranks ranks(GetParam(), seed);
    const int team = int(seed) % GetParam();
    const uint64_t number = seed * 31 % 1500;
    ranks.flip(team, number);
    ranks.run(2000);
    ASSERT_TRUE(ranks.found()) << "seed " << seed;
    const SentMessage sent = message(number);
    const std::string name = sent.by == &by_send ? "MPI_Send to rank " + std::to_string(sent.peer) + " with tag " + std::to_string(sent.tag)
                                                 : "MPI_Bcast with root " + std::to_string(sent.peer);
    EXPECT_EQ(ranks.found()->what, "message " + std::to_string(number + 1) + " of those that it sends is " + name + ", " +
                                       std::to_string(8 * number) + " bytes on communicator 1");
    const std::vector<int> alone = alone_in(*ranks.found());
    if (GetParam() == 2) EXPECT_EQ(alone.size(), 2u);
    else EXPECT_EQ(alone, std::vector<int>{team});
  }
}

TEST_P(Sent, one_that_is_far_behind_is_compared_when_it_comes_there) {
  for (const int late : {0, 1}) {
    for (const bool differs : {false, true}) {
      Ranks ranks(GetParam(), 3);
      if (differs) ranks.flip(late, 5);
      for (int team = 0; team < GetParam(); ++team)
        if (team != late) ranks.send(team, 4 * SentMessages::remembered);
      ranks.deliver_all();
      ASSERT_FALSE(ranks.found());
      ranks.send(late, 4 * SentMessages::remembered);
      for (int round = 0; round < 3; ++round) {
        for (int team = 0; team < GetParam(); ++team) ranks.tick(team), ranks.send(team);
        ranks.deliver_all();
      }
      ASSERT_EQ(ranks.found().has_value(), differs);
      if (!differs) continue;
      EXPECT_NE(ranks.found()->what.find("or one before"), std::string::npos) << "which one is not remembered any more: " << ranks.found()->what;
      EXPECT_EQ(alone_in(*ranks.found()).size(), GetParam() == 2 ? 2u : 1u);
    }
  }
}

TEST_P(Sent, claims_of_a_call_have_what_was_sent_before) {
  Ranks ranks(GetParam(), 1);
  ranks.flip(1, 2);
  std::vector<std::pair<int, Claim>> claims;
  for (int team = 0; team < GetParam(); ++team) {
    ranks.send(team, 3);
    Claim claim{.call = 1};
    ranks.sent(team).fill(claim);
    claims.emplace_back(team, claim);
  }
  EXPECT_FALSE(claims[0].second == claims[1].second);
  EXPECT_TRUE(claims[0].second.same_but_for_messages(claims[1].second));
  EXPECT_TRUE(claims[0].second == Claim{.call = 1}) << "of a thread whose messages are not compared";
  ranks.ask(0, claims, "a write");
  ranks.deliver_all();
  ASSERT_TRUE(ranks.found());
  EXPECT_EQ(ranks.found()->what,
            "message 3 of those that it sends is MPI_Send to rank 2 with tag 2, 16 bytes on communicator 1; seen before a write");
}

TEST_P(Sent, one_message_more_is_named_as_such) {
  Ranks ranks(GetParam(), 1);
  std::vector<std::pair<int, Claim>> claims;
  for (int team = 0; team < GetParam(); ++team) {
    ranks.send(team, team == 1 ? 3 : 2);
    Claim claim{.call = 1};
    ranks.sent(team).fill(claim);
    claims.emplace_back(team, claim);
  }
  EXPECT_FALSE(claims[0].second == claims[1].second);
  ranks.ask(0, claims, "a write");
  ranks.deliver_all();
  ASSERT_TRUE(ranks.found());
  const std::string said =
      GetParam() == 2 ? "is none in team 0 and MPI_Send to rank 2 with tag 2, 16 bytes on communicator 1 in team 1" : "in team 1 and none in team 2";
  EXPECT_NE(ranks.found()->what.find(said), std::string::npos) << ranks.found()->what;
  EXPECT_EQ(ranks.found()->what.find("message 3 of those that it sends"), 0u);
}

TEST_P(Sent, what_differed_in_a_lost_team_is_forgotten) {
  if (GetParam() == 2) return;
  Ranks ranks(GetParam(), 1);
  ranks.flip(0, 5);
  for (int team = 0; team < GetParam(); ++team) ranks.send(team, 10), ranks.tick(team), ranks.send(team);
  ranks.lose(0);
  ranks.deliver_all();
  EXPECT_FALSE(ranks.sent(1).asks());
  for (int team = 1; team < GetParam(); ++team) ranks.tick(team), ranks.send(team);
  ranks.deliver_all();
  EXPECT_FALSE(ranks.found());
}

TEST(SentMessages, envelopes_and_bytes_are_told_apart) {
  const auto sum_of = [](auto change) {
    SentMessages sent(0);
    SentMessage one = message(3);
    change(one);
    (void)sent.record(one);
    Claim claim;
    sent.fill(claim);
    return claim.sent_sum;
  };
  const uint64_t plain = sum_of([](SentMessage&) {});
  EXPECT_EQ(plain, sum_of([](SentMessage&) {}));
  EXPECT_NE(plain, sum_of([](SentMessage& one) { one.sum ^= 1; }));
  EXPECT_NE(plain, sum_of([](SentMessage& one) { one.peer ^= 1; }));
  EXPECT_NE(plain, sum_of([](SentMessage& one) { one.tag ^= 1; }));
  EXPECT_NE(plain, sum_of([](SentMessage& one) { one.signature ^= 1; }));
  EXPECT_NE(plain, sum_of([](SentMessage& one) { one.communicator ^= 1; }));
  EXPECT_NE(plain, sum_of([](SentMessage& one) { one.bytes ^= 1; }));
  EXPECT_NE(plain, sum_of([](SentMessage& one) { one.by = &by_bcast; }));
}

}  // namespace
}  // namespace holdfast::redundant::test
