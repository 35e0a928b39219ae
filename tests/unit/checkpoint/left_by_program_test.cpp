#include "checkpoint/left_by_program.hpp"

#include <gtest/gtest.h>

namespace holdfast::checkpoint {
namespace {

const std::string of_run = "0123456789abcdef";

Protected state_of(uint32_t rank, uint32_t attempt, uint64_t step = 1) {
  Protected one;
  one.version = {of_run, attempt, step, rank, 2, 1, "/state." + std::to_string(rank)};
  one.file_id = std::to_string(attempt) + "." + std::to_string(step) + "." + std::to_string(rank);
  one.bytes = 10 * attempt;
  return one;
}

checkpoint::Run second_attempt() {
  checkpoint::Run run;
  run.id = of_run;
  run.attempt = 2;
  run.from = checkpoint::Run::From{1, 1};
  return run;
}

std::vector<std::string> ids_of(const std::optional<Checkpoint>& one) {
  std::vector<std::string> ids;
  if (one)
    for (const auto& [place, file] : one->files) ids.push_back(file.file_id);
  return ids;
}

std::vector<std::string> left(std::vector<Checkpoint> all) { return ids_of(left_by_program(all, second_attempt(), all.front())); }

TEST(LeftByProgram, has_what_was_written_again_and_the_rest_as_it_was) {
  const auto all = checkpoints_of({state_of(0, 1), state_of(1, 1), state_of(1, 2)});
  const auto found = left_by_program(all, second_attempt(), all.front());
  EXPECT_EQ(ids_of(found), (std::vector<std::string>{"1.1.0", "2.1.1"}));
  EXPECT_EQ(found->attempt, layout::Attempt(2));
  EXPECT_EQ(found->bytes, 30u);
}

TEST(LeftByProgram, has_the_last_of_what_one_rank_has_written_again_and_again) {
  EXPECT_EQ(left(checkpoints_of({state_of(0, 1), state_of(1, 1), state_of(1, 2, 1), state_of(1, 2, 2)})),
            (std::vector<std::string>{"1.1.0", "2.2.1"}));
}

TEST(LeftByProgram, is_nothing_where_nothing_was_written_again) {
  auto other = state_of(1, 2);
  other.version.file = "/of-another-step.1";
  EXPECT_TRUE(left(checkpoints_of({state_of(0, 1), state_of(1, 1)})).empty());
  EXPECT_TRUE(left(checkpoints_of({state_of(0, 1), state_of(1, 1), other})).empty());
}

TEST(LeftByProgram, is_nothing_where_that_is_not_known_to_be_all) {
  const auto with = [](auto change) {
    auto all = checkpoints_of({state_of(0, 1), state_of(1, 1), state_of(1, 2)});
    change(all.back());
    return left(all);
  };
  EXPECT_TRUE(with([](Checkpoint& one) { one.files.begin()->second.readable = false; }).empty());
  EXPECT_TRUE(with([](Checkpoint& one) { one.torn_update = "/state.1"; }).empty());
  EXPECT_TRUE(with([](Checkpoint& one) { one.rivals.push_back(state_of(1, 2)); }).empty());
}

TEST(LeftByProgram, goes_by_what_the_attempt_has_begun_with) {
  const auto all = checkpoints_of({state_of(0, 1), state_of(1, 1), state_of(1, 2)});
  auto run = second_attempt();
  run.from->step = 7;
  EXPECT_FALSE(left_by_program(all, run, all.front()));
  run.from = {};
  EXPECT_FALSE(left_by_program(all, run, all.front()));
}

}  // namespace
}  // namespace holdfast::checkpoint
