// A program writes each checkpoint's file by two opens. The job died between the two, and the newest checkpoint was taken as it stood: whole by its names, and
// half of what its program would have written. Every restart chose it again.
#include <gtest/gtest.h>

#include "checkpoint/attempt.hpp"
#include "checkpoint/updates.hpp"

namespace holdfast::checkpoint {
namespace {

constexpr const char* run = "0123456789abcdef";

std::string path(uint64_t step, uint32_t rank) { return "/data/ck." + std::to_string(step) + "." + std::to_string(rank); }

// By rank: how often it has closed its file. `turn`: of the step.
void add(std::vector<Protected>& found, const layout::Attempt& attempt, uint64_t step, uint32_t turn, const std::vector<uint32_t>& times) {
  for (uint32_t rank = 0; rank < times.size(); ++rank) {
    Protected one;
    one.version = {run, attempt, step, rank, uint32_t(times.size()), times[rank], path(step, rank), turn, turn};
    one.version.times = times[rank];
    one.file_id =
        layout::text_of(attempt) + "." + std::to_string(step) + "." + std::to_string(rank) + "." + std::to_string(times[rank]) + ".00000000";
    found.push_back(one);
  }
}

uint64_t newest(const std::vector<Protected>& found) {
  const auto all = checkpoints_of(found);
  const Checkpoint* const one = newest_whole(all, run);
  return one ? one->step : 0;
}

TEST(SeveralOpens, one_that_some_ranks_have_closed_too_few_times_gives_way_to_the_one_before) {
  for (const std::vector<uint32_t>& times : {std::vector<uint32_t>{1, 2}, {2, 1}, {1, 1}}) {
    std::vector<Protected> found;
    add(found, 1, 10, 1, {2, 2});
    add(found, 1, 20, 2, times);
    EXPECT_EQ(newest(found), 10u);
    const auto all = checkpoints_of(found);
    EXPECT_EQ(all[1].half_written.usual, 2u);
    EXPECT_EQ(why_half_written(all[1]), all[1].half_written.file + " was closed 1 time, and those before it 2 times: it may be written in part");
  }
}

TEST(SeveralOpens, one_that_all_have_closed_as_often_as_before_is_whole) {
  std::vector<Protected> found;
  add(found, 1, 10, 1, {2, 1});
  add(found, 1, 20, 2, {2, 1});
  EXPECT_EQ(newest(found), 20u);
  add(found, 1, 30, 3, {3, 1});
  EXPECT_EQ(newest(found), 30u);
}

TEST(SeveralOpens, one_that_its_ranks_have_gone_past_is_whole) {
  std::vector<Protected> found;
  add(found, 1, 10, 1, {2, 2});
  add(found, 1, 20, 2, {1, 1});
  add(found, 1, 30, 3, {2, 2});
  std::erase_if(found, [](const Protected& one) { return one.version.step == 30 && one.version.rank == 1; });
  EXPECT_EQ(newest(found), 10u) << "rank 1 has not";
  add(found, 1, 30, 3, {2, 2});
  EXPECT_EQ(newest(found), 30u);
  for (Protected& one : found)
    if (one.version.step == 30) one.readable = false;
  EXPECT_EQ(newest(found), 20u);
}

TEST(SeveralOpens, where_nothing_older_is_whole_it_is_taken) {
  std::vector<Protected> found;
  add(found, 1, 10, 1, {2, 2});
  add(found, 1, 20, 2, {1, 1});
  for (Protected& one : found)
    if (one.version.step == 10) one.readable = false;
  EXPECT_EQ(newest(found), 20u);
}

TEST(SeveralOpens, the_next_attempts_first_one_is_compared_with_what_was_there_before) {
  std::vector<Protected> found;
  add(found, 1, 10, 1, {2, 2});
  add(found, 1, 20, 2, {1, 1});  // which was passed over
  add(found, 2, 20, 1, {1, 2});
  EXPECT_EQ(checkpoints_of(found)[2].half_written.usual, 2u);
  EXPECT_EQ(newest(found), 10u);
  add(found, 3, 20, 1, {2, 2});
  EXPECT_EQ(newest(found), 20u);
}

TEST(SeveralOpens, versions_of_writers_that_did_not_count_are_not_judged) {
  std::vector<Protected> found;
  add(found, 1, 10, 1, {2, 2});
  add(found, 1, 20, 2, {1, 1});
  for (Protected& one : found) one.version.times = 0;
  EXPECT_EQ(newest(found), 20u);
}

TEST(SeveralOpens, a_program_that_has_ended_well_has_closed_its_files_as_often_as_it_meant_to) {
  std::vector<Protected> found;
  add(found, 1, 10, 1, {2, 2});
  add(found, 1, 20, 2, {1, 1});
  auto all = checkpoints_of(found);
  unmark_ended_well(all, {{run, {2}}});
  EXPECT_EQ(newest_whole(all, run)->step, 10u);
  unmark_ended_well(all, {{run, {1}}});
  EXPECT_EQ(newest_whole(all, run)->step, 20u);
}

TEST(SeveralOpens, one_may_be_half_does_not_count_among_those_that_are_kept) {
  std::vector<Protected> found;
  add(found, 1, 10, 1, {2, 2});
  add(found, 1, 20, 2, {1, 1});
  EXPECT_TRUE(to_drop(checkpoints_of(found), run, 1).empty());
  add(found, 1, 20, 2, {2, 2});
  EXPECT_EQ(to_drop(checkpoints_of(found), run, 1).size(), 4u) << "all of the first, and what was replaced";
}

TEST(SeveralOpens, a_drain_of_the_half_is_not_begun_with) {
  std::vector<Protected> found;
  add(found, 1, 10, 1, {2, 2});
  add(found, 1, 20, 2, {1, 1});
  Survey survey;
  survey.checkpoints = checkpoints_of(found);
  DrainedCheckpoint plain{run, 1, 20, {}};
  for (const auto& [place, file] : survey.checkpoints[1].files)
    plain.files.push_back({file.version.rank, {}, file.version.file, version_drained(file.version)});
  plain.written = {{0, {2, ""}}};
  survey.drained = {plain};
  const auto begun = beginning_of(survey, run);
  ASSERT_TRUE(begun.from.has_value());
  EXPECT_EQ(begun.from->step, 10u);
}

TEST(SeveralOpens, names_and_manifests_say_how_often_a_file_was_closed) {
  LocalName name{30, 2, 6, 2, "/me/ck.30.2", 17, 3};
  name.times = 2;
  const auto text = encode(name);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "30.2of6.2.17.3.2~|me|ck.30.2");
  EXPECT_EQ(decode_local_name(*text), name);
  name.writer = 1, name.writers = 6;
  EXPECT_EQ(decode_local_name(*encode(name)), name);
  checkpoint::Run of;
  of.id = run, of.attempt = 1;
  EXPECT_EQ(name.version_in(of).times, 2u);
}

}  // namespace
}  // namespace holdfast::checkpoint
