// A checkpoint was drained while one rank had gone on with its file and the other one had not. That rank died in it. The versions were passed over then, and the
// plain files were not: the next attempt began with files of two times, and nobody said so.
#include <gtest/gtest.h>

#include "checkpoint/attempt.hpp"
#include "checkpoint/updates.hpp"

namespace holdfast::checkpoint {
namespace {

constexpr const char* run = "0123456789abcdef";

std::string path(uint64_t step, uint32_t rank) { return "/data/ck." + std::to_string(step) + "." + std::to_string(rank); }

Checkpoint checkpoint(uint64_t step, const std::vector<uint32_t>& numbers) {
  Checkpoint one;
  one.run = run, one.attempt = 1, one.step = step, one.ranks = uint32_t(numbers.size());
  for (uint32_t rank = 0; rank < one.ranks; ++rank) {
    Protected file;
    file.version = layout::Version{run, 1, step, rank, one.ranks, numbers[rank], path(step, rank), step};
    file.file_id = std::to_string(step) + "." + std::to_string(rank) + ".00000000";
    one.files.emplace(FilePlace(rank), file);
  }
  return one;
}

DrainedCheckpoint drained(uint64_t step, const std::vector<uint32_t>& numbers) {
  DrainedCheckpoint plain{run, 1, step, {}};
  for (const auto& [place, file] : checkpoint(step, numbers).files)
    plain.files.push_back({file.version.rank, {}, file.version.file, version_drained(file.version)});
  plain.written = {{0, {step, ""}}};
  return plain;
}

// Checkpoint 1 is whole; of 2 rank 0's file was written again, and rank 1's not to its end.
Survey survey(const std::vector<uint32_t>& of_plain) {
  Survey found;
  found.checkpoints = {checkpoint(1, {1, 1}), checkpoint(2, {2, 1})};
  found.drained = {drained(2, of_plain)};
  LocalEntry torn;
  torn.run = run, torn.attempt = 1, torn.state = State::torn, torn.name = LocalName{2, 1, 2, 2, path(2, 1)};
  found.local = {torn};
  mark_torn_updates(found.checkpoints, found.local, found.drained);
  return found;
}

TEST(DrainedMixture, gives_way_to_an_older_checkpoint) {
  const Survey mixed = survey({2, 1});
  ASSERT_EQ(mixed.checkpoints[1].torn_update, path(2, 1));
  const Beginning begun = beginning_of(mixed, run);
  ASSERT_TRUE(begun.from.has_value());
  EXPECT_EQ(begun.from->step, 1u);
  EXPECT_FALSE(begun.from->drained);
}

TEST(DrainedMixture, is_begun_with_where_nothing_else_is_there) {
  Survey mixed = survey({2, 1});
  mixed.checkpoints = {checkpoint(2, {2, 1})};
  mark_torn_updates(mixed.checkpoints, mixed.local, mixed.drained);
  const Beginning begun = beginning_of(mixed, run);
  ASSERT_TRUE(begun.from.has_value());
  EXPECT_EQ(begun.from->step, 2u);
}

TEST(DrainedMixture, is_none_where_it_was_drained_before_anybody_went_on) {
  const Beginning begun = beginning_of(survey({1, 1}), run);
  ASSERT_TRUE(begun.from.has_value());
  EXPECT_EQ(begun.from->step, 2u);
  EXPECT_TRUE(begun.from->drained);
}

}  // namespace
}  // namespace holdfast::checkpoint
