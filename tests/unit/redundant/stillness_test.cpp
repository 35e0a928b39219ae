// Whether any rank of a job goes on, as the hub judges what all processes say of themselves.
#include <gtest/gtest.h>

#include "redundant/membership/stillness.hpp"

namespace holdfast::redundant {
namespace {

constexpr int64_t deadline_ms = 10000, long_ms = Stillness::deadlines * deadline_ms;
const std::vector<std::pair<int, int>> two_ranks{{1, 0}, {0, 1}, {1, 1}, {0, 0}};

// Of two ranks each has one replica at a file, and the other one at a message.
Stillness crosswise(int64_t stood_ms = long_ms) {
  Stillness all;
  all.stands(0, 0, {true, stood_ms, "write of a"});
  all.stands(1, 0, {false, stood_ms, "MPI_Recv"});
  all.stands(0, 1, {false, stood_ms, "MPI_Wait"});
  all.stands(1, 1, {true, stood_ms, "write of b"});
  return all;
}

TEST(Stillness, of_all_is_told_once_with_where_each_one_stands) {
  Stillness all = crosswise();
  const auto lines = all.judge(two_ranks, deadline_ms);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_NE(lines[0].find("no rank has gone on for 30 s"), std::string::npos) << lines[0];
  EXPECT_EQ(lines[1], "rank 0: team 0 waits for its twins at write of a; team 1 is in MPI_Recv");
  EXPECT_EQ(lines[2], "rank 1: team 0 is in MPI_Wait; team 1 waits for its twins at write of b");
  EXPECT_TRUE(all.judge(two_ranks, deadline_ms).empty());
}

TEST(Stillness, is_none_where_one_goes_on_or_has_not_stood_for_long) {
  EXPECT_TRUE(crosswise(long_ms - 1).judge(two_ranks, deadline_ms).empty());
  Stillness all = crosswise();
  all.stands(1, 1, {});
  EXPECT_TRUE(all.judge(two_ranks, deadline_ms).empty());
  all = crosswise();
  EXPECT_TRUE(all.judge({{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}}, deadline_ms).empty()) << "of rank 2 nothing is known";
}

TEST(Stillness, where_nobody_waits_for_twins_is_the_programs_matter) {
  Stillness all;
  for (const auto& [rank, team] : two_ranks) all.stands(team, rank, {false, long_ms, "MPI_Recv"});
  EXPECT_TRUE(all.judge(two_ranks, deadline_ms).empty());
}

TEST(Stillness, that_comes_again_is_told_again) {
  Stillness all = crosswise();
  EXPECT_FALSE(all.judge(two_ranks, deadline_ms).empty());
  all.stands(1, 1, {});
  EXPECT_TRUE(all.judge(two_ranks, deadline_ms).empty());
  all.stands(1, 1, {true, long_ms, "write of b"});
  EXPECT_FALSE(all.judge(two_ranks, deadline_ms).empty());
}

TEST(Stillness, is_no_time_in_which_the_job_was_stopped) {
  Stood stood;
  int64_t now = 5000000;
  EXPECT_EQ(stood.look(false, now), 0);
  for (int look = 1; look <= 20; ++look) EXPECT_EQ(stood.look(true, now += Stood::look_ms), look * Stood::look_ms);
  EXPECT_EQ(stood.look(true, now += 3600 * 1000), 22 * Stood::look_ms);
  EXPECT_EQ(stood.look(false, now += Stood::look_ms), 0);
  EXPECT_EQ(stood.look(true, now += Stood::look_ms), Stood::look_ms);
}

TEST(Stillness, of_many_ranks_names_the_first_four) {
  Stillness all;
  std::vector<std::pair<int, int>> living;
  for (int rank = 0; rank < 9; ++rank)
    for (int team = 0; team < 2; ++team) {
      living.emplace_back(rank, team);
      all.stands(team, rank, {team == 0, long_ms, team == 0 ? "write of a" : "MPI_Recv"});
    }
  const auto lines = all.judge(living, deadline_ms);
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[5], "5 more ranks stand so");
}

}  // namespace
}  // namespace holdfast::redundant
