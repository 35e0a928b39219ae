// Two slots in turn, of which nobody knows how many files they have. A program removed a file of a slot, wrote the other one, and died when it had written that file of the
// first slot anew. What rolls say of the first slot is as it was: whole, without that file. But it counted as the newest, for of all that lay in it that file
// was written last. A restart went back a checkpoint. Found by the simulator, seeds 2761 and 3581.
#include <gtest/gtest.h>

#include "checkpoint/choice.hpp"

namespace holdfast::checkpoint {
namespace {

constexpr const char* run = "0123456789abcdef";

// Of the one rank, in this place of its order.
Protected file(uint64_t step, const std::string& name, uint64_t written, uint32_t number = 1) {
  Protected one;
  one.version.run = run;
  one.version.attempt = 1;
  one.version.rank = one.version.ranks = 0;
  one.version.step = step;
  one.version.file = "/ck/" + std::to_string(step) + "." + name;
  one.version.stem = "/ck/{step}." + name;
  one.version.number = number;
  one.version.written = written;
  one.version.writers = 1;
  one.file_id = std::to_string(written) + std::string(catalog::node_digits, '0');
  return one;
}

Protected roll_of(const std::vector<Protected>& files) {
  Protected one = file(files.back().version.step, "roll", files.back().version.written);
  one.file_id = "roll." + one.file_id;
  one.version.stem.clear();
  one.version.roll.emplace();
  for (const Protected& of : files) one.version.roll->files.push_back({of.version.file, of.version.number, of.version.written});
  return one;
}

// Slot 1 (of which "a" is removed), slot 2, and "a" of slot 1 anew.
class BegunAnew : public testing::Test {
 protected:
  const Protected kept_ = file(1, "b", 2), second_ = file(2, "a", 3), begun_ = file(1, "a", 4, 2);
  const std::vector<Protected> found_{file(1, "a", 1), kept_, roll_of({kept_}), second_, roll_of({second_}), begun_};
};

TEST_F(BegunAnew, a_slot_is_no_newer_for_what_it_does_not_have) {
  const auto all = checkpoints_of(found_);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(all[0].whole() && all[1].whole());
  EXPECT_EQ(newest_whole(all, run)->step, 2u);
}

TEST_F(BegunAnew, what_was_written_since_stays_when_the_slot_goes) {
  std::vector<std::string> gone;
  for (const Protected& old : to_drop(checkpoints_of(found_), run, 1)) gone.push_back(old.file_id);
  EXPECT_EQ(gone.size(), 3u);
  EXPECT_EQ(std::count(gone.begin(), gone.end(), begun_.file_id), 0);
  EXPECT_EQ(std::count(gone.begin(), gone.end(), second_.file_id), 0);
}

// With steps that count down: a rank that has removed its only file of one lists nothing of it. Nobody knew any more that this one was the older, and it stayed.
TEST_F(BegunAnew, one_of_which_all_is_removed_is_as_old_as_what_lies_beside_it) {
  Protected nothing = roll_of({file(20, "a", 1)});
  nothing.version.roll->files.clear();
  const Protected second = file(10, "b", 2);
  const auto all = checkpoints_of({file(20, "a", 1), nothing, second, roll_of({second})});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all.back().step, 10u);
  EXPECT_EQ(to_drop(all, run, 1).size(), 2u);
}

TEST_F(BegunAnew, it_is_the_newest_when_it_is_said_to_be_whole) {
  auto found = found_;
  found.push_back(file(1, "b", 5, 2));
  Protected roll = roll_of({begun_, found.back()});
  roll.version.number = 2;
  found.push_back(roll);
  EXPECT_EQ(newest_whole(checkpoints_of(found), run)->step, 1u);
}

}  // namespace
}  // namespace holdfast::checkpoint
