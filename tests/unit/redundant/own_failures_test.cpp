// Calls on files that each replica has for itself, of which some fail: as the hub judges them.
#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <random>

#include "redundant/map.hpp"
#include "redundant/membership/own_failures.hpp"

namespace holdfast::redundant {
namespace {

using Report = OwnFailures::Report;
constexpr int64_t long_ago = -OwnFailures::patience_ms;

TEST(OwnFailures, of_all_have_one_answer) {
  OwnFailures failures;
  failures.add({.team = 1, .rank = 0, .place = 7, .answer = -EDQUOT});
  EXPECT_TRUE(failures.judge(0, 0b11, 0).told.empty()) << "the other one may come";
  failures.add({.team = 0, .rank = 0, .place = 7, .answer = -ENOSPC});
  const auto judged = failures.judge(0, 0b11, 0);
  EXPECT_TRUE(judged.lost.empty());
  ASSERT_EQ(judged.told.size(), 2u);
  for (const Report& one : judged.told) EXPECT_EQ(one.answer, -ENOSPC);
  EXPECT_TRUE(failures.ranks().empty());
}

TEST(OwnFailures, of_one_alone_end_it) {
  OwnFailures failures;
  failures.add({.team = 1, .rank = 0, .place = 7, .answer = -ENOSPC, .at_ms = long_ago});
  const auto judged = failures.judge(0, 0b111, 0);
  ASSERT_EQ(judged.lost.size(), 1u);
  EXPECT_EQ(judged.lost[0].team, 1);
  EXPECT_TRUE(failures.ranks().empty());
}

TEST(OwnFailures, of_the_last_one_are_the_programs_matter) {
  OwnFailures failures;
  failures.add({.team = 1, .rank = 0, .place = 7, .answer = -ENOSPC});
  EXPECT_EQ(failures.judge(0, 0b10, 0).told.size(), 1u);
}

// The fuller of two disks takes less of one call.
TEST(OwnFailures, short_counts_that_differ_leave_one) {
  OwnFailures failures;
  failures.add({.team = 0, .rank = 3, .place = 7, .answer = 100});
  failures.add({.team = 1, .rank = 3, .place = 7, .answer = 50});
  const auto judged = failures.judge(3, 0b11, 0);
  ASSERT_EQ(judged.lost.size(), 1u);
  EXPECT_EQ(judged.lost[0].team, 1);
  const auto then = failures.judge(3, 0b01, 0);
  ASSERT_EQ(then.told.size(), 1u);
  EXPECT_EQ(then.told[0].answer, 100);
}

// Replicas of one rank that go through a program's calls at their own pace, on disks of their own.
class Replicas {
 public:
  explicit Replicas(uint64_t seed) : random_(seed), teams_(2 + size_t(random_() % 3)) {
    for (Team& team : teams_)
      for (int64_t& native : team.native) native = random_() % 4 ? 0 : random_() % 2 ? -ENOSPC : int64_t(1 + random_() % 2);
  }
  void run() {
    for (int64_t now = 0; now < 100000 && !is_over(); now += 100) {
      for (size_t at = 0; at < teams_.size(); ++at)
        if (teams_[at].lives && !teams_[at].waits && random_() % 3) step(int(at), now);
      judge(now);
    }
    ASSERT_TRUE(is_over()) << "somebody waits for ever";
  }
  void check() const {
    const Team* first = nullptr;
    for (const Team& team : teams_) {
      if (!team.lives) continue;
      if (!first) first = &team;
      EXPECT_EQ(team.had, first->had);
    }
    ASSERT_TRUE(first) << "all were lost";
    for (const Team& team : teams_) EXPECT_TRUE(team.lives || team.native != first->had) << "lost, and had what the others had";
  }

 private:
  static constexpr size_t calls = 12;
  struct Team {
    std::vector<int64_t> native = std::vector<int64_t>(calls), had = {};  // 0: all was done
    bool lives = true, waits = false;
  };
  uint64_t living() const {
    uint64_t all = 0;
    for (size_t at = 0; at < teams_.size(); ++at)
      if (teams_[at].lives) all |= team_bit(int(at));
    return all;
  }
  bool is_over() const {
    return std::all_of(teams_.begin(), teams_.end(), [](const Team& team) { return !team.lives || team.had.size() == calls; });
  }
  void step(int number, int64_t now) {
    Team& team = teams_[size_t(number)];
    if (team.had.size() == calls) return;
    const int64_t native = team.native[team.had.size()];
    if (native == 0) return team.had.push_back(0);
    failures_.add({.team = number, .place = team.had.size(), .answer = native, .at_ms = now});
    team.waits = true;
  }
  void judge(int64_t now) {
    const auto judged = failures_.judge(0, living(), now);
    for (const Report& one : judged.told) teams_[size_t(one.team)].had.push_back(one.answer), teams_[size_t(one.team)].waits = false;
    for (const Report& one : judged.lost) teams_[size_t(one.team)].lives = false;
  }

  std::mt19937_64 random_;
  std::vector<Team> teams_;
  OwnFailures failures_;
};

TEST(OwnFailures, leave_replicas_that_have_had_the_same) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    Replicas replicas(seed);
    replicas.run();
    replicas.check();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace holdfast::redundant
