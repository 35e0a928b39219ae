// What is remembered of a checkpoint that was whole, for when all nodes that knew of it are lost.
#include <gtest/gtest.h>

#include "checkpoint/seen_whole.hpp"

namespace holdfast::checkpoint {
namespace {

const std::string run_seen = "0123456789abcdef";

// A checkpoint of two files, on two nodes each.
std::vector<Protected> files_of(uint64_t step, bool endures = true) {
  std::vector<Protected> files(2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Protected& one = files[rank];
    one.version = {run_seen, 1, step, rank, 2, 1, "/ck." + std::to_string(step) + "." + std::to_string(rank)};
    one.file_id = std::to_string(step) + "." + std::to_string(rank);
    one.endures = endures;
    for (const uint32_t node : {2 * rank + 1, 2 * rank + 2}) one.on.push_back("n" + std::to_string(node) + ":/disk");
  }
  return files;
}

Survey survey_of(const std::vector<Protected>& found, const std::vector<std::string>& silent) {
  Survey survey;
  survey.checkpoints = checkpoints_of(found);
  survey.silent = silent;
  return survey;
}

std::optional<SeenWhole> seen(const std::vector<Protected>& files) {
  std::optional<SeenWhole> last;
  see(last, checkpoints_of(files)[0]);
  return last;
}

// Their versions, as the manifests name their members.
std::vector<catalog::FoundVersion> versions_of(const std::vector<Protected>& files) {
  std::vector<catalog::FoundVersion> all;
  for (const Protected& one : files) {
    layout::Manifest manifest;
    manifest.file_id = one.file_id;
    manifest.version = one.version;
    for (const std::string& place : one.on) manifest.members.emplace_back().path = place;
    all.emplace_back().manifest = std::move(manifest);
  }
  return all;
}

TEST(SeenWhole, one_that_is_not_whole_for_good_may_go_without_a_word) {
  EXPECT_TRUE(seen(files_of(10)));
  EXPECT_FALSE(seen(files_of(10, false)));
}

TEST(SeenWhole, the_later_one_counts) {
  auto last = seen(files_of(20));
  see(last, checkpoints_of(files_of(10))[0]);
  EXPECT_EQ(last->step, 20u);
  see(last, checkpoints_of(files_of(30))[0]);
  EXPECT_EQ(last->step, 30u);
}

TEST(SeenWhole, it_has_gone_where_a_file_of_it_is_on_no_node_that_answers) {
  const auto last = seen(files_of(10));
  std::vector<Protected> left = {files_of(10)[1]};
  const Survey survey = survey_of(left, {"n1:/disk", "n2:/disk", "n9:/disk"});
  EXPECT_TRUE(has_gone(*last, survey, run_seen));
  EXPECT_EQ(nodes_that_would_help(*last, survey), (std::set<std::string>{"n1", "n2"}));
  EXPECT_FALSE(has_gone(*last, survey_of(files_of(10), {"n1:/disk"}), run_seen));
}

TEST(SeenWhole, one_as_new_is_enough) {
  const auto last = seen(files_of(10));
  EXPECT_FALSE(has_gone(*last, survey_of(files_of(20), {"n1:/disk", "n2:/disk"}), run_seen));
  EXPECT_TRUE(has_gone(*last, survey_of(files_of(5), {"n1:/disk", "n2:/disk"}), run_seen));
}

TEST(SeenWhole, where_all_its_nodes_answer_a_user_has_dropped_it) {
  EXPECT_FALSE(has_gone(*seen(files_of(10)), survey_of({}, {"n9:/disk"}), run_seen));
  const SeenWhole begun = begun_with(checkpoints_of(files_of(10))[0], versions_of(files_of(10)));
  EXPECT_TRUE(has_gone(begun, survey_of({}, {}), run_seen)) << "what an attempt began with cannot be dropped";
}

TEST(SeenWhole, what_an_attempt_begins_with_counts_though_a_node_was_late_to_answer) {
  auto found = files_of(10, false);
  const auto versions = versions_of(found);
  for (Protected& one : found) one.on.pop_back();
  const SeenWhole begun = begun_with(checkpoints_of(found)[0], versions);
  const Survey survey = survey_of({}, {"n1:/disk", "n2:/disk", "n3:/disk", "n4:/disk"});
  EXPECT_TRUE(has_gone(begun, survey, run_seen));
  EXPECT_EQ(nodes_that_would_help(begun, survey), (std::set<std::string>{"n1", "n2", "n3", "n4"}));
}

TEST(SeenWhole, what_the_program_has_removed_in_that_attempt_is_not_missed) {
  Survey survey = survey_of({}, {"n1:/disk"});
  survey.local.push_back({"n3:/disk", run_seen, 2, State::hidden, {.step = 10, .file = "/ck.10.0"}, ""});
  EXPECT_TRUE(was_removed(*seen(files_of(10)), survey, 2));
  EXPECT_FALSE(was_removed(*seen(files_of(10)), survey, 3));
  EXPECT_FALSE(was_removed(*seen(files_of(20)), survey, 2));
}

}  // namespace
}  // namespace holdfast::checkpoint
