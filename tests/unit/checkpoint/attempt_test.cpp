// What is known of an attempt when it has ended.
#include "checkpoint/attempt.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <set>

namespace holdfast::checkpoint {
namespace {

// Three nodes. The first two have a rank each, which has written its file of step 10 there.
class RanksOnNodes : public ::testing::Test {
 protected:
  RanksOnNodes() {
    for (const uint32_t rank : {0, 1}) written(rank, 10, rank);
  }
  Protected of(uint32_t rank, uint64_t step, size_t node) const {
    Protected one;
    one.version.run = run.id;
    one.version.attempt = run.attempt;
    one.version.step = step;
    one.version.rank = rank, one.version.ranks = 2;
    one.version.file = "/ck." + std::to_string(step) + "." + std::to_string(rank);
    one.file_id = std::to_string(step) + catalog::digits_of_node(run.nodes[node]);
    return one;
  }
  void written(uint32_t rank, uint64_t step, size_t node) { add(of(rank, step, node)); }
  void add(const Protected& one) {
    found.push_back(one);
    layout::Manifest manifest;
    manifest.version = one.version;
    manifest.file_id = one.file_id;
    survey.versions.push_back({manifest, {}, 0, 0});
  }
  bool may_have(size_t node, const std::string& pattern = "/ck.{step}.{rank}") {
    const auto all = checkpoints_of(found);
    return may_have_ranks(run.nodes[node], survey, run, all.front(), *Patterns::parse({pattern}));
  }
  const checkpoint::Run run{.id = "0123456789abcdef", .attempt = 2, .from = {}, .nodes = {"n1:/d", "n2:/d", "n3:/d"}};
  Survey survey;
  std::vector<Protected> found;
};

TEST_F(RanksOnNodes, are_where_they_have_written) {
  EXPECT_TRUE(may_have(0));
  EXPECT_TRUE(may_have(1));
  EXPECT_FALSE(may_have(2));
}

TEST_F(RanksOnNodes, may_be_anywhere_where_files_do_not_show_it) {
  EXPECT_TRUE(may_have(2, "/ck.{step}")) << "any rank writes such a file";
  EXPECT_TRUE(may_have(2, "/ck.{step}.*.{rank}")) << "a rank may have written none";
  found.pop_back();
  EXPECT_TRUE(may_have(2)) << "it is not whole";
}

TEST_F(RanksOnNodes, may_be_anywhere_where_one_writes_the_files_of_others) {
  found.back().version.writer = 1;
  EXPECT_TRUE(may_have(2)) << "rank 0 has written it";
}

TEST_F(RanksOnNodes, have_moved_there_since_the_attempt_before) {
  for (Protected& one : found) one.version.attempt = 1;
  EXPECT_TRUE(may_have(2));
}

// One that is not whole says that, too.
TEST_F(RanksOnNodes, are_where_they_have_written_anything) {
  written(1, 20, 2);
  EXPECT_TRUE(may_have(2));
}

TEST_F(RanksOnNodes, are_where_their_rolls_were_written) {
  for (Protected& one : found) one.version.writers = 2, one.version.writer = one.version.rank, one.version.stem = one.version.file;
  for (Protected& one : found) one.version.rank = one.version.ranks = 0;
  for (const uint32_t rank : {0, 1}) {
    Protected roll = of(rank, 10, rank);
    roll.version.rank = roll.version.ranks = 0;
    roll.version.writers = 2, roll.version.writer = rank;
    roll.version.roll.emplace().files.push_back({found[rank].version.file, found[rank].version.number, found[rank].version.written});
    add(roll);
  }
  EXPECT_FALSE(may_have(2, "/ck.{step}.*.{rank}"));
  found.back().version.roll->of_all = true;
  EXPECT_TRUE(may_have(2, "/ck.{step}.*.{rank}")) << "nobody knows where the first one is";
}

constexpr int drawn_bits = drawn_bits_of_attempt;

std::chrono::system_clock::time_point at_ms(int64_t ms) { return std::chrono::system_clock::time_point(std::chrono::milliseconds(ms)); }

TEST(AttemptId, begins_with_the_time_and_is_drawn) {
  const int64_t now = 1'795'651'200'000;  // of 2026
  const uint64_t id = new_attempt_id(at_ms(now));
  EXPECT_EQ(id >> drawn_bits, uint64_t(now));
  std::set<uint64_t> of_one_moment;
  for (int time = 0; time < 8; ++time) of_one_moment.insert(new_attempt_id(at_ms(now)));
  EXPECT_GT(of_one_moment.size(), 1u);
  EXPECT_LT(id, new_attempt_id(at_ms(now + 1)));
}

TEST(LatestRun, is_of_a_checkpoint_on_the_nodes_or_a_plain_one) {
  const auto run = [](char last) { return std::string(15, '0') + last; };
  Survey survey;
  EXPECT_EQ(latest_run(survey), "");
  for (const std::string& one : {run('3'), run('1'), std::string("zz, which is no run")}) survey.checkpoints.emplace_back().run = one;
  EXPECT_EQ(latest_run(survey), run('3'));
  survey.drained.emplace_back().run = run('4');
  EXPECT_EQ(latest_run(survey), run('4'));
}

TEST(AttemptId, is_later_than_all_that_are_known_whatever_the_clock_says) {
  const std::string run = "0123456789abcdef";
  Survey survey;
  const auto next = [&](const layout::Attempt& last_begun = 0) { return next_attempt(survey, run, last_begun, 100ull << drawn_bits | 5); };
  EXPECT_EQ(next(), layout::Attempt(1, 100ull << drawn_bits | 5));
  survey.attempts["ffffffffffffffff"] = {layout::Attempt(9, 900ull << drawn_bits)};
  EXPECT_EQ(next(), layout::Attempt(1, 100ull << drawn_bits | 5)) << "another run's";
  survey.attempts[run] = {layout::Attempt(3), layout::Attempt(2, 99ull << drawn_bits | 7)};
  EXPECT_EQ(next(), layout::Attempt(4, 100ull << drawn_bits | 5));
  EXPECT_EQ(next({7, 200ull << drawn_bits | 9}), layout::Attempt(8, 201ull << drawn_bits | 5)) << "begun by this process";
  Checkpoint& one = survey.checkpoints.emplace_back();
  one.run = run, one.attempt = {2, 300ull << drawn_bits | 9};
  EXPECT_EQ(next(), layout::Attempt(4, 301ull << drawn_bits | 5));
  DrainedCheckpoint& drained = survey.drained.emplace_back();
  drained.run = run, drained.attempt = {5, ~0ull};
  EXPECT_EQ(next(), layout::Attempt(6, ~0ull << drawn_bits | 5)) << "later than that is nothing";
}

}  // namespace
}  // namespace holdfast::checkpoint
