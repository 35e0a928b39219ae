// Two slots in turn, and a rank whose last files are not protected yet, or cannot be: its old file of a slot and the new ones of other ranks counted as a whole
// checkpoint, for nobody disagreed on the order. The one before was dropped for it, and a restart began with files of two rounds. Found by the simulator,
// seeds 317 and 2357. What a rank had written after the checkpoint that stays was dropped with an older file of that slot, and nothing said any more that the rank
// had gone round: seeds 4478 and 4952. Of a rank that had gone round all but its new file was lost with nodes: seed 13632. The other slot was just being written
// anew by that rank, file by file, and the turn of its newest file there was taken for one that all had in common: seed 1159 of Checkpoints.renamed_*.
#include <gtest/gtest.h>

#include "checkpoint/choice.hpp"

namespace holdfast::checkpoint {
namespace {

constexpr const char* run = "0123456789abcdef";

// What one rank of two has written on its node, in this order.
std::vector<Protected> written(uint32_t rank, const std::vector<uint64_t>& slots) {
  std::vector<Protected> all;
  std::map<uint64_t, uint32_t> numbers;
  uint32_t turn = 0;
  for (const uint64_t slot : slots) {
    Protected one;
    turn += all.empty() || all.back().version.step != slot;
    one.version = {run, 1, slot, rank, 2, ++numbers[slot], "/ck." + std::to_string(slot) + "." + std::to_string(rank), all.size() + 1, turn};
    one.file_id = std::to_string(all.size()) + std::string(catalog::node_digits, char('0' + rank));
    all.push_back(one);
  }
  return all;
}

std::vector<uint64_t> whole(std::vector<Protected> of_one, const std::vector<Protected>& of_other) {
  of_one.insert(of_one.end(), of_other.begin(), of_other.end());
  std::vector<uint64_t> slots;
  for (const Checkpoint& one : checkpoints_of(of_one))
    if (one.whole()) slots.push_back(one.step);
  return slots;
}

TEST(Slots, of_which_a_rank_has_but_the_first_are_mixed) {
  EXPECT_EQ(whole(written(0, {1}), written(1, {1, 2, 1})), std::vector<uint64_t>());
  EXPECT_EQ(whole(written(0, {1, 2}), written(1, {1, 2, 1, 2})), std::vector<uint64_t>());
}

TEST(Slots, that_all_ranks_wrote_anew_are_whole) {
  EXPECT_EQ(whole(written(0, {1, 2, 1}), written(1, {1, 2, 1})), (std::vector<uint64_t>{2, 1}));
  EXPECT_EQ(whole(written(0, {1, 2}), written(1, {1, 2, 1})), std::vector<uint64_t>{2});
}

TEST(Slots, of_which_one_file_is_written_twice_each_time_are_whole) {
  EXPECT_EQ(whole(written(0, {1, 2, 1}), written(1, {1, 1, 2, 2, 1, 1})), (std::vector<uint64_t>{2, 1}));
}

// How often a file was closed goes with it to another name, and its number there counts renames.
TEST(Slots, that_some_ranks_have_renamed_to_are_mixed) {
  auto of_one = written(0, {1, 2, 1}), of_other = written(1, {1, 2});
  for (auto* const files : {&of_one, &of_other})
    for (Protected& one : *files) one.version.times = 2;
  EXPECT_EQ(whole(of_one, of_other), std::vector<uint64_t>{2});
}

TEST(Slots, that_a_rank_has_written_anew_are_mixed_whatever_else_of_it_is_lost) {
  EXPECT_EQ(whole({written(0, {1, 2, 1}).back()}, written(1, {1, 2})), std::vector<uint64_t>());
  EXPECT_EQ(whole({written(0, {1, 2, 1}).back()}, written(1, {1, 2, 1})), std::vector<uint64_t>{1});
}

// A full disk, say: the second rank could not begin its first file of a slot.
TEST(Slots, of_which_a_rank_was_left_out_once_are_whole_when_all_have_written_them_anew) {
  EXPECT_EQ(whole(written(0, {1, 2, 1}), written(1, {1, 1})), std::vector<uint64_t>{1}) << "turns alone say nothing";
  EXPECT_EQ(whole(written(0, {1, 2, 1, 2}), written(1, {1, 1, 2})), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(whole(written(0, {1, 2, 1, 2, 1}), written(1, {1, 1, 2})), std::vector<uint64_t>()) << "nobody can say which one is";
}

// Of a rank that may write several files of a step, in that turn, as its count of that file and as its count of all.
Protected listed(uint64_t slot, uint32_t rank, const std::string& name, uint32_t turn, uint32_t number, uint64_t count) {
  Protected one;
  one.version = {run, 1, slot, 0, 0, number, "/ck." + std::to_string(slot) + "." + name, count, turn, 2, rank, name};
  one.file_id = std::to_string(count) + std::string(catalog::node_digits, char('0' + rank));
  return one;
}

Protected roll_of(const Protected& file) {
  Protected one = file;
  one.version.file = "/roll." + std::to_string(file.version.step), one.version.stem = "", one.version.turn = 0;
  one.version.roll = layout::Roll{false, {{file.version.file, file.version.number, file.version.written}}};
  one.file_id = "r" + file.file_id;
  return one;
}

TEST(Slots, of_which_another_is_just_written_anew_are_mixed) {
  const Protected first = listed(1, 0, "a.0", 1, 1, 1), second = listed(2, 0, "a.0", 2, 1, 2);
  const Protected third = listed(1, 1, "a.1", 3, 2, 5), left = listed(2, 1, "a-new.1", 2, 1, 3), last = listed(2, 1, "a.1", 4, 2, 6);
  const auto of_slot_2 = listed(2, 1, "a.1", 2, 1, 4);  // which its roll lists, and `last` has replaced
  const std::vector<Protected> of_one{first, roll_of(first), second, roll_of(second)},
      of_other{third, roll_of(third), left, roll_of(of_slot_2), last};
  EXPECT_EQ(whole(of_one, of_other), std::vector<uint64_t>());
}

// The first rank's third file is not protected yet, or never will be.
TEST(Slots, that_some_ranks_have_begun_after_what_stays_are_not_dropped) {
  auto found = written(0, {1, 2});
  const auto of_other = written(1, {1, 2, 1, 2});
  found.insert(found.end(), of_other.begin(), of_other.end() - 1);
  std::vector<uint64_t> dropped;  // when they were written
  for (const Protected& old : to_drop(checkpoints_of(found), run, 1)) {
    dropped.push_back(old.version.written);
    std::erase_if(found, [&](const Protected& one) { return one.file_id == old.file_id; });
  }
  EXPECT_EQ(dropped, (std::vector<uint64_t>{1, 1}));
  EXPECT_EQ(whole(found, {}), std::vector<uint64_t>{2});
  EXPECT_EQ(whole(found, {of_other.back()}), std::vector<uint64_t>()) << "the second rank has written slot 2 anew";
}

}  // namespace
}  // namespace holdfast::checkpoint
