// All ranks of an opener write in its commits, under a lock that rank 0 alone holds. When rank 0 died, the next committer went on beside the
// writes of the others.
#include <gtest/gtest.h>

#include "engine/exclusion.hpp"
#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

class WithoutRank0 : public testing::Test {
 protected:
  void SetUp() override {
    auto file = world.open(*solo, true);
    ASSERT_TRUE(file.ok()) << file.status().sentence();
    located = (*file)->located();
    ASSERT_TRUE((*file)->close().ok());
  }
  engine::Others others(uint64_t own = 0) {
    engine::Members members(located);
    return engine::other_openers(members, located, 77, own);
  }
  World world{"rs:2+1"};
  std::unique_ptr<exchange::Exchange> solo = exchange::make_solo();
  catalog::Located located;
};

TEST_F(WithoutRank0, an_opener_is_told_from_one_that_has_it_and_from_one_process) {
  engine::Members members(located);
  auto rank_0 = engine::announce_opener(members, located, 77), rank_1 = engine::announce_opener(members, located, 77);
  EXPECT_FALSE(others().without_leader);  // one process: it has no other rank
  auto leader = engine::announce_leader(members, located, 77);
  ASSERT_TRUE(rank_0.ok() && rank_1.ok() && leader.ok());
  EXPECT_TRUE(others().alive && others().lone_alive);
  EXPECT_FALSE(others().without_leader);
  rank_0->clear();
  leader->clear();
  EXPECT_TRUE(others().alive && others().without_leader);
  EXPECT_FALSE(others(77).alive);  // one's own
  rank_1->clear();
  EXPECT_FALSE(others().alive || others().without_leader);
}

// Another one gets the lock while the first waits for its turn: ranks without their rank 0 may need it to come to their end.
TEST_F(WithoutRank0, the_lock_is_let_go_until_it_is_ones_turn) {
  std::vector<std::string> turns;
  Schedule schedule(1);
  schedule.add([&] {
    engine::Members members(located);
    auto locks = engine::lock_file(members, located, [&]() -> Result<bool> {
      turns.push_back("looks");
      return std::find(turns.begin(), turns.end(), "other") != turns.end();
    });
    EXPECT_TRUE(locks.ok());
    turns.push_back("first");
  });
  schedule.add([&] {
    while (turns.empty()) Schedule::yield(true);
    engine::Members members(located);
    EXPECT_TRUE(engine::lock_file(members, located).ok());
    turns.push_back("other");
  });
  schedule.run();
  ASSERT_GE(turns.size(), 4u);
  EXPECT_EQ(turns.front(), "looks");
  EXPECT_EQ(turns.back(), "first");
}

}  // namespace
}  // namespace holdfast::sim
