// A rank closes its file of each step twice, as for a header that is written last, and another rank writes the file that completes the checkpoint. That had one
// version where the other one had two, and its rank had had fewer turns: the checkpoint counted as a slot of two rounds. None was ever whole.
#include <gtest/gtest.h>

#include "checkpoint/choice.hpp"

namespace holdfast::checkpoint {
namespace {

struct ClosedTwice : testing::Test {
  struct Place {
    uint32_t rank, turn, number, times;
    uint64_t count;  // of all that its node has written
  };
  static Protected file(const std::string& name, const Place& of, uint64_t slot = 1) {
    Protected one;
    one.version = {"0123456789abcdef", 1, slot, 0, 0, of.number, "/ck." + std::to_string(slot) + "." + name, of.count, of.turn, 2, of.rank, name};
    one.version.times = of.times;
    one.file_id = std::to_string(of.number) + name + std::string(catalog::node_digits, char('0' + of.rank));
    return one;
  }
  // As the file that completes it makes it. Where the job has ended no file does.
  static Protected roll_of(const std::vector<Protected>& files, const Protected& last, bool has_ended, bool of_all = true) {
    Protected one = last;
    one.version.file = "/roll." + std::to_string(last.version.step) + (of_all ? "" : "." + std::to_string(last.version.writer));
    one.version.stem = "";
    if (has_ended) one.version.turn = 0;
    one.version.roll.emplace().of_all = of_all;
    for (const Protected& of : files) one.version.roll->files.push_back({of.version.file, of.version.number, of.version.written});
    one.file_id = "r" + one.file_id;
    return one;
  }
  static bool is_whole(const std::vector<Protected>& found) { return checkpoints_of(found).at(0).whole(); }
};

TEST_F(ClosedTwice, and_completed_by_another_rank_is_whole_in_each_round) {
  for (uint32_t round = 1; round < 5; ++round) {
    const Protected data = file("data", {0, 2 * round - 1, 2 * round, 2, 4 * round});
    const Protected done = file("done", {1, round > 2 ? 2u : 1u, round, round, 4 * round + 1});
    EXPECT_TRUE(is_whole({data, done, roll_of({data, done}, done, false)})) << round;
  }
}

TEST_F(ClosedTwice, by_a_rank_that_has_had_more_turns_is_whole) {
  const Protected data = file("data", {0, 3, 2, 2, 6}), other = file("other", {1, 2, 1, 1, 5});
  EXPECT_TRUE(is_whole({data, other, roll_of({data}, data, false, false), roll_of({other}, other, false, false)}));
}

TEST_F(ClosedTwice, and_of_two_rounds_is_not_whole) {
  const Protected data = file("data", {0, 3, 4, 2, 8}), other = file("other", {1, 1, 1, 1, 3}), done = file("done", {1, 1, 1, 1, 4});
  EXPECT_FALSE(is_whole({data, other, roll_of({data, other}, data, true)})) << "the job has ended, and that is what there is";
  EXPECT_FALSE(is_whole({data, other, done, roll_of({data, other, done}, done, false)})) << "listed late: data is of after what completes it";
}

}  // namespace
}  // namespace holdfast::checkpoint
