// What versions add up to: whole checkpoints, the one to begin with, and those that go.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "checkpoint/choice.hpp"

namespace holdfast::checkpoint {
namespace {

constexpr uint32_t ranks = 3;

Protected version(uint32_t attempt, uint64_t step, uint32_t rank, uint32_t number = 1) {
  Protected one;
  one.version = {"0123456789abcdef", attempt, step, rank, ranks, number, "/ck." + std::to_string(step) + "." + std::to_string(rank)};
  one.file_id = std::to_string(attempt) + "." + std::to_string(step) + "." + std::to_string(rank) + "." + std::to_string(number);
  one.bytes = 10;
  return one;
}

std::vector<Protected> step_of(uint32_t attempt, uint64_t step) {
  return {version(attempt, step, 0), version(attempt, step, 1), version(attempt, step, 2)};
}

void add(std::vector<Protected>& all, const std::vector<Protected>& more) { all.insert(all.end(), more.begin(), more.end()); }

const std::string run = "0123456789abcdef";

std::vector<std::string> dropped(const std::vector<Protected>& found, size_t keep) {
  std::vector<std::string> ids;
  for (const Protected& one : to_drop(checkpoints_of(found), run, keep)) ids.push_back(one.file_id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

TEST(CheckpointChoice, a_checkpoint_is_whole_when_every_rank_has_a_version) {
  auto found = step_of(1, 10);
  EXPECT_TRUE(checkpoints_of(found)[0].whole());
  EXPECT_EQ(checkpoints_of(found)[0].bytes, 30u);
  found[1].readable = false;
  EXPECT_FALSE(checkpoints_of(found)[0].whole());
  found.erase(found.begin() + 1);
  EXPECT_FALSE(checkpoints_of(found)[0].whole());
}

TEST(CheckpointChoice, attempts_never_mix) {
  std::vector<Protected> found{version(1, 10, 0), version(1, 10, 1), version(2, 10, 2)};
  const auto all = checkpoints_of(found);
  EXPECT_EQ(all.size(), 2u);
  EXPECT_EQ(newest_whole(all, run), nullptr);
}

TEST(CheckpointChoice, the_later_attempt_counts_before_the_later_step) {
  auto found = step_of(1, 40);
  add(found, step_of(2, 35));
  auto all = checkpoints_of(found);
  EXPECT_EQ(newest_whole(all, run)->step, 35u);
  EXPECT_EQ(newest_whole(all, "fedcba9876543210"), nullptr);
}

TEST(CheckpointChoice, a_file_that_was_written_anew_counts_by_its_newest_version) {
  auto found = step_of(1, 10);
  found.push_back(version(1, 10, 1, 2));
  const auto all = checkpoints_of(found);
  EXPECT_EQ(all[0].files.at(1).version.number, 2u);
  EXPECT_EQ(dropped(found, 2), std::vector<std::string>{"1.10.1.1"});
}

Protected written_on(const std::string& node, Protected one) {
  one.file_id += catalog::digits_of_node(node);
  return one;
}

TEST(CheckpointChoice, one_file_that_two_nodes_wrote_at_the_same_time_is_in_no_whole_checkpoint) {
  std::vector<Protected> found;
  for (uint32_t rank = 0; rank < ranks; ++rank) found.push_back(written_on("n" + std::to_string(rank), version(1, 10, rank)));
  EXPECT_TRUE(checkpoints_of(found)[0].whole());
  auto again = found;
  again.push_back(written_on("n1", version(1, 10, 1)));
  again.back().file_id = "again" + again.back().file_id;
  EXPECT_TRUE(checkpoints_of(again)[0].whole()) << "by a protector that was started anew, or made anew after a loss";
  found.push_back(written_on("n2", version(1, 10, 1)));
  EXPECT_FALSE(checkpoints_of(found)[0].whole());
  EXPECT_EQ(checkpoints_of(found)[0].rivals.size(), 1u);
  EXPECT_EQ(newest_whole(checkpoints_of(found), run), nullptr);
  found.push_back(written_on("n2", version(1, 10, 1, 2)));
  EXPECT_TRUE(checkpoints_of(found)[0].whole()) << "one that came after both of them decides";
}

Protected named(const std::string& file, uint64_t written, Protected one) {
  one.version.file = file, one.version.written = written;
  one.file_id = (written == 1 ? "z" : "a") + one.file_id;  // where nothing else is said the higher one counts
  return one;
}

std::vector<Protected> step_with_two_names(const char* first_node, const char* second_node) {
  return {version(1, 10, 0), version(1, 10, 2), written_on(first_node, named("/ck.10.1", 1, version(1, 10, 1, 3))),
          written_on(second_node, named("/ck.010.1", 2, version(1, 10, 1)))};
}

// "ck.1.0" was renamed to "ck.01.0", or removed before the other was written.
TEST(CheckpointChoice, of_two_names_of_one_place_the_one_that_was_written_last_counts) {
  auto found = step_with_two_names("n1", "n1");
  for (int order = 0; order < 2; ++order) {
    const auto all = checkpoints_of(found);
    EXPECT_TRUE(all[0].whole());
    EXPECT_EQ(all[0].files.at(1).version.file, "/ck.010.1");
    EXPECT_EQ(dropped(found, 2).size(), 1u) << "the other one";
    std::reverse(found.begin(), found.end());
  }
}

TEST(CheckpointChoice, two_names_of_one_place_by_two_nodes_are_in_no_whole_checkpoint) {
  auto found = step_with_two_names("n1", "n2");
  for (int order = 0; order < 2; ++order) {
    EXPECT_FALSE(checkpoints_of(found)[0].whole());
    std::reverse(found.begin(), found.end());
  }
}

TEST(CheckpointChoice, of_what_is_older_than_those_that_are_kept_all_goes) {
  auto found = step_of(1, 10);
  found.push_back(version(1, 15, 0));  // never whole
  add(found, step_of(1, 20));
  add(found, step_of(2, 30));
  found.push_back(version(2, 40, 2));  // not whole yet
  EXPECT_EQ(dropped(found, 3), std::vector<std::string>());
  EXPECT_EQ(dropped(found, 2), (std::vector<std::string>{"1.10.0.1", "1.10.1.1", "1.10.2.1", "1.15.0.1"}));
  EXPECT_EQ(dropped(found, 1).size(), 7u);
}

TEST(CheckpointChoice, nothing_goes_while_nothing_newer_is_whole) {
  auto found = step_of(1, 10);
  found.push_back(version(1, 20, 0));
  found.push_back(version(1, 20, 0, 2));
  EXPECT_EQ(dropped(found, 1), std::vector<std::string>());
}

// Of a job with wildcards: rank `writer` has written that file.
Protected open_file(uint64_t step, uint32_t writer, const std::string& name, uint64_t at, uint32_t number = 1) {
  Protected one = version(1, step, 0, number);
  one.version.rank = one.version.ranks = 0;
  one.version.file = "/ck/" + std::to_string(step) + "/" + name;
  one.version.stem = "/ck/{step}/" + name;
  one.version.written = at;
  one.version.writers = 2, one.version.writer = writer;
  one.file_id = std::to_string(step) + "." + name + "." + std::to_string(number) + ".node000" + std::to_string(writer);
  return one;
}

Protected roll_of(uint32_t writer, const std::vector<Protected>& files, uint64_t step, uint32_t number = 1, bool of_all = false) {
  Protected one = open_file(step, writer, "roll", 1, number);
  one.version.stem.clear();
  one.version.roll.emplace().of_all = of_all;
  for (const Protected& file : files) one.version.roll->files.push_back({file.version.file, file.version.number, file.version.written});
  return one;
}

TEST(CheckpointChoice, where_names_do_not_say_it_a_checkpoint_is_whole_when_all_ranks_have_said_what_belongs_to_it) {
  const Protected a = open_file(10, 0, "a", 1), b = open_file(10, 0, "b", 2), c = open_file(10, 1, "c", 1);
  std::vector<Protected> found{a, b, c};
  EXPECT_FALSE(checkpoints_of(found)[0].whole()) << "nobody knows that this is all";
  EXPECT_EQ(checkpoints_of(found)[0].why_not_rolled(), "nothing says that rank 0 has written all of it");
  found.push_back(roll_of(0, {a, b}, 10));
  EXPECT_FALSE(checkpoints_of(found)[0].whole());
  found.push_back(roll_of(1, {c}, 10));
  EXPECT_TRUE(checkpoints_of(found)[0].whole());
  EXPECT_EQ(checkpoints_of(found)[0].files_of_all(), 3u);
  EXPECT_EQ(checkpoints_of(found)[0].bytes, 30u) << "rolls are none of the user's";
  EXPECT_TRUE(checkpoints_of(found)[0].endures());
  found.back().endures = false;
  EXPECT_TRUE(checkpoints_of(found)[0].whole());
  EXPECT_FALSE(checkpoints_of(found)[0].endures()) << "its roll may be gone before it is";
  found.erase(found.begin() + 1);
  EXPECT_FALSE(checkpoints_of(found)[0].whole());
  EXPECT_EQ(checkpoints_of(found)[0].files_of_all(), 3u);
  EXPECT_EQ(checkpoints_of(found)[0].why_not_rolled(), "/ck/10/b belongs to it and is not protected");
}

TEST(CheckpointChoice, a_roll_that_was_made_late_goes_with_its_checkpoint) {
  std::vector<Protected> found;
  for (const uint64_t step : {uint64_t(10), uint64_t(20)}) {
    const Protected a = open_file(step, 0, "a", step), b = open_file(step, 1, "b", step);
    add(found, {a, b, roll_of(0, {a}, step), roll_of(1, {b}, step)});
  }
  Protected& late = found[3];  // of step 10, behind the one of step 20
  ASSERT_TRUE(late.version.roll && late.version.step == 10);
  late.version.written = 99;
  EXPECT_EQ(dropped(found, 1).size(), 4u);
}

TEST(CheckpointChoice, one_roll_of_all_is_as_good_and_a_rank_may_have_nothing) {
  const Protected a = open_file(10, 0, "a", 1), b = open_file(10, 1, "b", 1);
  EXPECT_TRUE(checkpoints_of({a, b, roll_of(0, {a, b}, 10, 1, true)})[0].whole());
  EXPECT_FALSE(checkpoints_of({a, roll_of(0, {a, b}, 10, 1, true)})[0].whole());
  EXPECT_TRUE(checkpoints_of({a, roll_of(0, {a}, 10), roll_of(1, {}, 10)})[0].whole());
  EXPECT_FALSE(checkpoints_of({roll_of(0, {}, 10), roll_of(1, {}, 10)})[0].has_all()) << "it has no file at all";
}

TEST(CheckpointChoice, a_file_with_a_place_must_be_there_as_well) {
  Protected a = open_file(10, 0, "a", 1), head = open_file(10, 0, "head", 2);
  a.version.rank = a.version.ranks = head.version.ranks = 1;
  head.version.stem.clear();
  Protected roll = roll_of(0, {a}, 10, 1, true);
  roll.version.rank = roll.version.ranks = 1;
  EXPECT_FALSE(checkpoints_of({a, roll})[0].whole());
  EXPECT_EQ(checkpoints_of({a, roll})[0].files_of_all(), 2u);
  EXPECT_TRUE(checkpoints_of({a, head, roll})[0].whole());
}

TEST(CheckpointChoice, what_is_written_anew_after_its_roll_waits_for_the_next_one) {
  const Protected a = open_file(10, 0, "a", 1), b = open_file(10, 1, "b", 1);
  const std::vector<Protected> said{roll_of(0, {a}, 10), roll_of(1, {b}, 10)};
  const auto with = [&](const Protected& again) {
    std::vector<Protected> found{a, b, again};
    add(found, said);
    return checkpoints_of(found)[0];
  };
  EXPECT_TRUE(with(open_file(10, 0, "a", 1, 2)).whole()) << "an update, which keeps its place in the order";
  EXPECT_FALSE(with(open_file(10, 0, "a", 3, 2)).whole());
  EXPECT_EQ(with(open_file(10, 0, "a", 3, 2)).why_not_rolled(), "a file of it is being written anew");
  EXPECT_TRUE(with(open_file(10, 0, "later", 4)).whole()) << "what came after its roll is in no rank's way";
  EXPECT_EQ(with(open_file(10, 0, "later", 4)).files.size(), 2u);
  EXPECT_EQ(with(open_file(10, 0, "later", 4)).beside.size(), 1u) << "and no part of it";
  const Protected again = open_file(10, 0, "a", 3, 2);
  EXPECT_TRUE(checkpoints_of({a, again, b, said[0], said[1], roll_of(0, {again}, 10, 2)})[0].whole());
}

TEST(CheckpointChoice, ranks_say_which_came_last_where_no_file_is_in_both) {
  std::vector<Protected> found;
  const auto write = [&](uint64_t step, const std::string& name, uint64_t at) {
    const Protected a = open_file(step, 0, name, at), b = open_file(step, 1, name + "b", at);
    add(found, {a, b, roll_of(0, {a}, step), roll_of(1, {b}, step)});
  };
  write(30, "first", 1), write(20, "second", 2), write(10, "third", 3);
  EXPECT_EQ(newest_whole(checkpoints_of(found), run)->step, 10u);
  EXPECT_EQ(checkpoints_of(found).front().step, 30u);
}

TEST(CheckpointChoice, a_slot_that_one_rank_has_left_and_another_not_begun_anew_is_mixed) {
  const Protected a1 = open_file(1, 0, "a", 1), b1 = open_file(1, 1, "b", 1), a2 = open_file(2, 0, "a", 2), b2 = open_file(2, 1, "b", 2);
  std::vector<Protected> found{a1, b1, a2, b2, roll_of(0, {a1}, 1), roll_of(1, {b1}, 1), roll_of(0, {a2}, 2), roll_of(1, {b2}, 2)};
  EXPECT_EQ(newest_whole(checkpoints_of(found), run)->step, 2u);
  const Protected again = open_file(1, 0, "a", 3, 2);
  add(found, {again, roll_of(0, {again}, 1, 2)});
  EXPECT_EQ(newest_whole(checkpoints_of(found), run)->step, 2u) << "rank 1 has its old one in slot 1";
  const Protected other = open_file(1, 1, "b", 3, 2);
  add(found, {other, roll_of(1, {other}, 1, 2)});
  EXPECT_EQ(newest_whole(checkpoints_of(found), run)->step, 1u);
}

TEST(CheckpointChoice, what_was_emptied_is_not_the_newest_and_what_is_empty_from_the_beginning_is) {
  auto found = step_of(1, 10);
  add(found, step_of(1, 20));
  const auto write = [&](uint64_t step, uint32_t number, const std::string& file) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      found.push_back(version(1, step, rank, number));
      found.back().bytes = 0;
      if (!file.empty()) found.back().version.file = file + std::to_string(rank);
    }
  };
  write(30, 2, "");
  EXPECT_EQ(newest_whole(checkpoints_of(found), run)->step, 20u);
  write(40, 1, "");
  EXPECT_EQ(newest_whole(checkpoints_of(found), run)->step, 40u);
  found = step_of(1, 10);
  write(11, 2, "/ck.10.");
  EXPECT_EQ(newest_whole(checkpoints_of(found), run)->step, 11u) << "its own content is what was emptied";
}

TEST(CheckpointChoice, rolls_go_with_their_checkpoints) {
  std::vector<Protected> found;
  for (const uint64_t step : {10, 20, 30}) {
    const Protected a = open_file(step, 0, "a", step), b = open_file(step, 1, "b", step);
    add(found, {a, b, roll_of(0, {a}, step), roll_of(1, {b}, step), roll_of(1, {b}, step, 2)});
  }
  EXPECT_EQ(dropped(found, 2).size(), 5u + 2u) << "all of step 10, and the rolls of the others that a newer one took the place of";
  EXPECT_EQ(dropped(found, 3).size(), 3u);
  found.push_back(open_file(10, 0, "later", 4));
  EXPECT_EQ(dropped(found, 2).size(), 6u + 2u) << "what does not belong to it goes, too";
  EXPECT_EQ(dropped(found, 3).size(), 3u);
}

Protected written(Protected one, uint64_t at) {
  one.version.written = at;
  one.file_id += "." + std::to_string(one.version.rank) + "0000000";  // a node for each rank
  return one;
}

// What the ranks have written, each in its own order: steps, of each of which the last version stays.
std::vector<Protected> slots(const std::vector<std::vector<uint64_t>>& of_ranks) {
  std::map<std::pair<uint32_t, uint64_t>, Protected> last;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    for (size_t i = 0; i < of_ranks[rank].size(); ++i) {
      const uint64_t step = of_ranks[rank][i];
      const auto before = last.find({rank, step});
      last[{rank, step}] = written(version(1, step, rank, before == last.end() ? 1 : before->second.version.number + 1), i + 1);
    }
  std::vector<Protected> found;
  for (const auto& [key, one] : last) found.push_back(one);
  return found;
}

TEST(CheckpointChoice, the_newest_is_the_one_that_was_written_last) {
  const std::vector<uint64_t> down{50, 40, 30};
  EXPECT_EQ(newest_whole(checkpoints_of(slots({down, down, down})), run)->step, 30u);
  const std::vector<uint64_t> turns{1, 0, 1, 0};
  EXPECT_EQ(newest_whole(checkpoints_of(slots({turns, turns, turns})), run)->step, 0u);
  EXPECT_EQ(dropped(slots({down, down, down}), 1).size(), 6u);
  EXPECT_EQ(dropped(slots({down, down, down}), 1)[0].substr(0, 4), "1.40");
}

// Of the first step one file came back with its node, and of the last one nothing else is protected yet: they have no rank in common.
TEST(CheckpointChoice, what_is_left_of_one_that_was_dropped_is_not_the_newest) {
  auto found = slots({{50, 40, 30, 20}, {50, 40, 30}, {50, 40, 30}});
  std::erase_if(found, [](const Protected& one) { return one.version.step == 50 && one.version.rank != 1; });
  EXPECT_EQ(checkpoints_of(found).front().step, 50u);
  EXPECT_EQ(checkpoints_of(found).back().step, 20u);
  EXPECT_EQ(dropped(found, 1).size(), 4u);
}

TEST(CheckpointChoice, a_slot_that_not_all_ranks_have_written_anew_is_not_whole) {
  const std::vector<uint64_t> done{1, 0, 1, 0, 1}, not_yet{1, 0, 1, 0};
  const auto all = checkpoints_of(slots({done, not_yet, done}));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(newest_whole(all, run)->step, 0u);
  EXPECT_FALSE(all[0].whole() && all[1].whole());
  EXPECT_EQ(newest_whole(checkpoints_of(slots({not_yet, done, done})), run)->step, 0u);
  EXPECT_EQ(newest_whole(checkpoints_of(slots({done, done, done})), run)->step, 1u);
}

TEST(CheckpointChoice, a_checkpoint_that_only_later_ranks_have_begun_is_newer_all_the_same) {
  auto found = slots({{50, 40}, {50, 40, 30}, {50, 40, 30}});
  EXPECT_EQ(newest_whole(checkpoints_of(found), run)->step, 40u);
  EXPECT_EQ(dropped(found, 1).size(), 3u) << "30 stays, for it is newer";
}

TEST(CheckpointChoice, orders_of_several_nodes_say_nothing_together) {
  std::vector<Protected> found;
  for (uint64_t step : {10, 20}) {
    for (uint32_t rank = 0; rank < ranks; ++rank) found.push_back(written(version(1, step, rank), step == 10 ? 7 : 2));
    if (step == 10) continue;
    for (auto one = found.end() - ranks; one != found.end(); ++one) one->file_id.back() = '5';
  }
  EXPECT_EQ(newest_whole(checkpoints_of(found), run)->step, 20u);
}

// Three slots in turn: one file of all ranks, and one that completes it, which another rank writes each time.
TEST(CheckpointChoice, where_some_files_are_of_several_nodes_the_others_say_the_order) {
  std::vector<Protected> found;
  for (const auto& [slot, at] : {std::pair(3, 3), std::pair(1, 4), std::pair(2, 5)}) {
    Protected all = written(version(1, uint64_t(slot), 1), uint64_t(at)), done = written(version(1, uint64_t(slot), 0), uint64_t(9 - at));
    all.version.ranks = done.version.ranks = 2;
    done.file_id.back() = char('0' + slot);
    found.push_back(all), found.push_back(done);
  }
  EXPECT_EQ(newest_whole(checkpoints_of(found), run)->step, 2u);
  EXPECT_EQ(dropped(found, 2).size(), 2u);
  EXPECT_EQ(dropped(found, 2)[0].substr(0, 4), "1.3.");
  // With rolls, by who has begun the one and written the other: none of them has a part in two of these.
  for (size_t i = 0; i < found.size(); ++i) found[i].version.writers = 9, found[i].version.writer = uint32_t(i);
  std::vector<uint64_t> steps;
  for (const Checkpoint& one : checkpoints_of(found)) steps.push_back(one.step);
  EXPECT_EQ(steps, (std::vector<uint64_t>{3, 1, 2}));
}

// Of a slot and one that was drained. One node has counted the files of all ranks, whichever rank has begun them; what completes them comes from several nodes.
TEST(CheckpointChoice, ages_of_other_places_are_compared_where_one_node_has_counted_both) {
  const Age drained{1, 2, 10, "n1"}, slot{1, 1, 12, "n1"}, done_of_drained{1, 2, 8, "n2"}, done_of_slot{1, 1, 3, "n3"};
  EXPECT_TRUE(is_before(Ages{{0, done_of_drained}, {1, drained}}, Ages{{2, done_of_slot}, {3, slot}}));
  EXPECT_FALSE(is_before(Ages{{2, done_of_slot}, {3, slot}}, Ages{{0, done_of_drained}, {1, drained}}));
  EXPECT_TRUE(is_before(Ages{{0, done_of_drained}, {1, drained}}, Ages{{0, done_of_slot}, {3, slot}})) << "two nodes have counted the place of both";
  EXPECT_TRUE(is_before(Ages{{0, done_of_slot}}, Ages{{1, drained}})) << "nobody has counted both, and the step says it";
  EXPECT_TRUE(is_before(Ages{{0, slot}, {1, done_of_slot}}, Ages{{1, Age{2, 1, 1, "n1"}}})) << "of a later attempt";
}

}  // namespace
}  // namespace holdfast::checkpoint
