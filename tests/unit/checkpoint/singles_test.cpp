// Files that are protected one by one: which version of each an attempt begins with, what goes, and what is removed.
#include <gtest/gtest.h>

#include <algorithm>

#include "checkpoint/attempt.hpp"
#include "checkpoint/pattern.hpp"
#include "checkpoint/singles.hpp"

namespace holdfast::checkpoint {
namespace {

const std::string whose = "0123456789abcdef";
const std::string own_digits = "0a1b2c3d", other_digits = "4e5f6071";

Protected single(uint32_t attempt, const std::string& file, uint32_t number = 1, const std::string& by = own_digits) {
  Protected one;
  one.version = {whose, attempt, 0, 0, 0, number, file};
  one.file_id = std::to_string(attempt) + file + std::to_string(number) + by;
  one.bytes = 10;
  return one;
}

Protected not_readable(Protected one) {
  one.readable = false;
  return one;
}

LocalEntry note(State state, uint32_t attempt, const std::string& file, uint32_t number) {
  return {"n1:/d", whose, attempt, state, LocalName{.ranks = 0, .number = number, .file = file}, ""};
}

std::vector<std::string> newest_of(const Checkpoint& one) {
  std::vector<std::string> all;
  for (const auto& [place, file] : one.files)
    all.push_back(file.version.file + " " + std::to_string(file.version.attempt.number) + "." + std::to_string(file.version.number));
  return all;
}

std::vector<std::string> gone_of(const std::vector<Protected>& found, size_t keep) {
  std::vector<std::string> ids;
  for (const Protected& one : to_drop(checkpoints_of(found), whose, keep))
    ids.push_back(one.file_id.substr(0, one.file_id.size() - own_digits.size()));
  std::sort(ids.begin(), ids.end());
  return ids;
}

TEST(Singles, of_all_attempts_the_newest_version_of_each_file_counts) {
  const auto all = checkpoints_of({single(1, "/a", 3), single(2, "/a", 1), single(1, "/b", 7), single(1, "/b", 2), single(2, "/c")});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(all[0].are_singles);
  EXPECT_EQ(newest_of(all[0]), (std::vector<std::string>{"/a 2.1", "/b 1.7", "/c 2.1"}));
  EXPECT_EQ(newest_whole(all, whose), &all[0]);
  EXPECT_EQ(all[0].attempt.number, 2u);
  EXPECT_EQ(all[0].bytes, 30u);
}

TEST(Singles, where_the_newest_cannot_be_read_the_one_before_counts_and_is_named) {
  const auto all = checkpoints_of({single(1, "/a"), not_readable(single(2, "/a")), single(2, "/b")});
  EXPECT_EQ(newest_of(all[0]), (std::vector<std::string>{"/a 1.1", "/b 2.1"}));
  EXPECT_EQ(gone_back(all[0]), std::vector<std::string>{"/a"});
  EXPECT_TRUE(all[0].lost.empty());
}

TEST(Singles, a_file_of_which_nothing_can_be_read_is_lost_and_the_others_are_there) {
  auto all = checkpoints_of({not_readable(single(1, "/a")), single(2, "/b")});
  EXPECT_EQ(newest_of(all[0]), std::vector<std::string>{"/b 2.1"});
  ASSERT_EQ(all[0].lost.size(), 1u);
  EXPECT_TRUE(all[0].whole());
  all = checkpoints_of({not_readable(single(1, "/a"))});
  EXPECT_TRUE(all[0].has_all());
  EXPECT_FALSE(all[0].whole());
}

TEST(Singles, so_many_versions_of_each_file_stay) {
  std::vector<Protected> found{single(1, "/a", 1), single(1, "/a", 2), single(2, "/a", 1), single(1, "/b", 1)};
  EXPECT_EQ(gone_of(found, 1), (std::vector<std::string>{"1/a1", "1/a2"}));
  EXPECT_EQ(gone_of(found, 2), std::vector<std::string>{"1/a1"});
  found[2].endures = false;  // it may be gone with the next own_digits
  EXPECT_EQ(gone_of(found, 1), std::vector<std::string>{"1/a1"});
  found[2] = not_readable(single(2, "/a", 1));
  EXPECT_EQ(gone_of(found, 1), std::vector<std::string>{"1/a1"});
}

TEST(Singles, two_of_one_number_stay_together_and_go_together) {
  std::vector<Protected> found{single(1, "/a", 2), single(1, "/a", 2), single(1, "/a", 1), single(1, "/a", 1)};
  found[1].file_id = "anew" + own_digits, found[3].file_id = "anew1" + own_digits;
  EXPECT_EQ(gone_of(found, 1), (std::vector<std::string>{"1/a1", "anew1"}));
}

TEST(Singles, what_two_nodes_have_written_at_once_is_a_rivalry_and_hides_no_other_file) {
  auto all = checkpoints_of({single(1, "/a", 1), single(1, "/a", 1, other_digits), single(1, "/b")});
  EXPECT_EQ(all[0].rivals.size(), 1u);
  EXPECT_TRUE(all[0].whole());
  all = checkpoints_of({single(1, "/a", 1), single(2, "/a", 1, other_digits)});
  EXPECT_TRUE(all[0].rivals.empty());  // one attempt after the other
}

TEST(Singles, what_is_removed_is_not_there_and_what_is_written_after_that_is) {
  std::vector<Protected> found{single(1, "/a", 1), single(1, "/a", 2), single(2, "/a", 1), single(1, "/b", 1)};
  auto left = found;
  auto removed = take_removed(left, {note(State::hidden, 1, "/a", 2)});
  EXPECT_EQ(removed.size(), 2u);
  EXPECT_EQ(newest_of(checkpoints_of(left)[0]), (std::vector<std::string>{"/a 2.1", "/b 1.1"}));
  // An attempt that begins notes it with number 0: what earlier ones have written stays removed.
  left = found;
  removed = take_removed(left, {note(State::hidden, 3, "/a", 0)});
  EXPECT_EQ(removed.size(), 3u);
  EXPECT_EQ(newest_of(checkpoints_of(left)[0]), std::vector<std::string>{"/b 1.1"});
}

TEST(Singles, what_was_closed_and_is_not_protected_is_known_by_its_file) {
  Survey survey;
  survey.checkpoints = checkpoints_of({single(2, "/a", 2), single(1, "/b", 1)});
  survey.local = {note(State::closed, 2, "/a", 2), note(State::failed, 2, "/b", 1), note(State::kept, 2, "/c", 1),
                  note(State::torn, 2, "/d", 3),   note(State::hidden, 2, "/d", 3), note(State::torn, 1, "/e", 1)};
  const auto left = unprotected_singles(survey, whose, 2);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left.begin()->first, "/b");
}

TEST(Singles, patterns_without_a_field_mean_files_one_by_one) {
  const auto patterns = Patterns::parse({"/r/*.dat", "/s/log?"});
  ASSERT_TRUE(patterns);
  EXPECT_TRUE(patterns->are_single());
  EXPECT_FALSE(patterns->are_rolled());
  EXPECT_EQ(patterns->files_of_all(4), 0u);
  const auto named = patterns->match("/s/log1");
  ASSERT_TRUE(named);
  EXPECT_EQ(patterns->place(*named, 4), 0u);
  EXPECT_FALSE(patterns->match("/r/.a.dat"));
  for (const auto& refused : {std::vector<std::string>{"/r/a.dat"}, {"/r/*.{rank}"}, {"shared:/r/*.dat"}, {"/r/*.dat", "/ck.{step}"}})
    EXPECT_FALSE(Patterns::parse(refused)) << refused.front();
}

}  // namespace
}  // namespace holdfast::checkpoint
