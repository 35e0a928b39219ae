// Teams on nodes of their own that stand still, or are cut off, for a while: at every step, and two at once. Who wakes after it was declared lost does nothing
// any more, and the others are of one mind.
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/redundant/fake_link.hpp"

namespace holdfast::redundant::test {
namespace {

struct Came {
  uint64_t lost = 0, woken_late = 0, all_lost = 0;
};

void check(int teams, uint64_t seed, const std::vector<Trouble>& troubles, Came& came) {
  const std::vector<Step> program = some_program(seed, 12);
  Link link(teams, seed, program);
  link.have_nodes(troubles);
  ASSERT_TRUE(link.run({})) << "hangs: seed " << seed << " of " << teams << " teams";
  ASSERT_FALSE(link.acted_late()) << "seed " << seed << " of " << teams << " teams";
  const FakeReplica* first = nullptr;
  for (int team = 0; team < teams; ++team) {
    came.lost += !link.lives(team);
    if (!link.lives(team)) continue;
    ASSERT_FALSE(link.replica(team).is_torn()) << "seed " << seed;
    ASSERT_EQ(link.replica(team).seen().size(), program.size());
    if (first) {
      ASSERT_EQ(first->seen(), link.replica(team).seen()) << "seed " << seed << " of " << teams << " teams";
    }
    first = &link.replica(team);
  }
  came.woken_late += link.woken_late() > 0;
  came.all_lost += !first;
}

constexpr Trouble::What all_troubles[] = {Trouble::asleep, Trouble::cut_from_the_hub, Trouble::cut_off};

class Leases : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Teams, Leases, testing::Values(2, 3, 4));

TEST_P(Leases, a_team_that_stands_still_or_is_cut_off_at_any_step_does_nothing_after_it_was_lost) {
  for (const Trouble::What what : all_troubles) {
    Came came;
    for (uint64_t seed = 1; seed <= 4; ++seed)
      for (uint64_t step = 0; step < 500; step += 7)
        for (int team = 0; team < GetParam(); ++team)
          check(GetParam(), seed, {{what, team, step, Link::deadline + Link::margin + 40 + step % 90}}, came);
    EXPECT_GT(came.lost, 100u);
    EXPECT_GT(came.woken_late, 0u);
  }
}

TEST_P(Leases, a_team_that_is_slow_for_less_than_the_deadline_is_not_lost) {
  Came came;
  for (const Trouble::What what : all_troubles)
    for (uint64_t seed = 1; seed <= 40; ++seed)
      for (int team = 0; team < GetParam(); ++team) check(GetParam(), seed, {{what, team, seed * 10, Link::deadline / 2}}, came);
  EXPECT_EQ(came.lost, 0u);
}

// Where no team is left that reaches the hub, all have ended.
TEST_P(Leases, two_troubles_at_once_leave_the_others_of_one_mind) {
  std::mt19937_64 random(11);
  Came came;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    const auto one = [&](uint64_t from, uint64_t within) {
      const auto team = int(random() % uint64_t(GetParam()));
      return Trouble{all_troubles[random() % 3], team, from + random() % within, Link::deadline / 2 + random() % (2 * Link::deadline)};
    };
    const Trouble first = one(0, 400);
    check(GetParam(), seed, {first, one(first.step, 150)}, came);
  }
  EXPECT_GT(came.lost, 500u);
  EXPECT_EQ(came.all_lost > 0, GetParam() == 2);
}

// Or these tests would show nothing.
TEST_P(Leases, a_process_that_does_not_look_at_its_lease_acts_after_it_was_lost) {
  bool any = false;
  for (uint64_t seed = 1; seed <= 60 && !any; ++seed) {
    const std::vector<Step> program = some_program(seed, 12);
    Link link(GetParam(), seed, program);
    link.have_nodes({{Trouble::asleep, 0, 5 * seed, Link::deadline + Link::margin + 40}}, false);
    (void)link.run({});
    any |= link.acted_late();
  }
  EXPECT_TRUE(any);
}

}  // namespace
}  // namespace holdfast::redundant::test
