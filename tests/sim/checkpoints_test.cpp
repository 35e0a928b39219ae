// Checkpoints of a job on nodes that are lost and come back, against the model of what may be found: see checkpoints_world.hpp.
//
//   SIM_SEED=17 SIM_SCHEDULES=1 build/bin/sim_test --gtest_filter='Checkpoints.of_*'   replays one schedule
//   ... --gtest_filter='Checkpoints.rolled_*'                                          the same of checkpoints of which nobody knows how many files they have
//   ... --gtest_filter='Checkpoints.renamed_*'                                         ... of which most files had another checkpoint's name before
//   ... --gtest_filter='Checkpoints.shared_*'                                          ... of one file of all ranks, which each of them opens by itself
//   ... --gtest_filter='Checkpoints.together_*'                                        ... of one file of all ranks, which they open together as by MPI
//   ... --gtest_filter='Checkpoints.singles_*'                                         ... of files that are protected one by one, and are of no checkpoint
//   SIM_SCHEDULES=1000 SIM_FAILURES=20 ...                                             goes on after failures
//   SIM_RESULT=file ...                                                                writes the numbers there, for run_ranges.sh
//   SIM_TRACE=file ...                                                                 a line a schedule that differs where anything did
#include <gtest/gtest.h>

#include <fstream>
#include <span>

#include "sim/checkpoints_world.hpp"

namespace holdfast::sim {
namespace {

using Counts = std::array<uint64_t, size_t(Did::count)>;

void write_result(uint64_t count, uint64_t failures, const Counts& done) {
  const char* path = std::getenv("SIM_RESULT");
  if (!path) return;
  std::ofstream file(path);
  file << count << " schedules\n" << failures << " failures\n";
  for (size_t i = 0; i < done.size(); ++i) file << done[i] << " " << did_names[i] << "\n";
}

void write_trace(uint64_t seed, const CheckpointsWorld& world) {
  static const char* const path = std::getenv("SIM_TRACE");
  static std::ofstream file(path ? path : "");
  if (path) file << seed << " " << world.trace() << " " << std::hash<std::string>()(world.last_operations()) << std::endl;
}

// What a thousand schedules do at least.
constexpr std::pair<Did, uint64_t> in_a_thousand[] = {
    {Did::checkpoints_whole, 3000},
    {Did::begun_from_one, 1000},
    {Did::files_read, 2000},
    {Did::other_rank_counts, 200},
    {Did::nodes_lost, 1500},
    {Did::nodes_wiped, 400},
    {Did::ranks_killed, 800},
    {Did::protectors_killed, 700},
    {Did::files_made_anew, 400},
    {Did::units_kept, 1500},
    {Did::units_summed, 40},
    {Did::versions_dropped, 4000},
    {Did::files_renamed, 2000},
    {Did::removals, 1000},
    {Did::files_updated, 1000},
    {Did::files_closed_in_part, 30},
    {Did::files_read_to_update, 300},
    {Did::files_read_again, 2000},
    {Did::looks_for_removed, 500},
    {Did::links_cut, 100},
    {Did::agents_stopped, 100},
    {Did::protectors_refused, 100},
    {Did::looks_refused, 100},
    {Did::drops_refused, 30},
    {Did::protectors_revived, 200},
    {Did::nodes_without_power, 60},
    {Did::bits_turned, 300},
    {Did::damage_borne, 150},
    {Did::damage_beyond, 50},
    {Did::drained, 500},
    {Did::drains_killed, 100},
    {Did::begun_from_plain_files, 20},
    {Did::closes_protected, 50},
    {Did::numbers_given_again, 3},
    {Did::files_packed, 200},
    {Did::packs_made_anew, 10},
    {Did::torn_updates_passed_over, 5},
    {Did::files_of_many_rows, 100},
};

// Of those whose ranks write several files of a step. A job that dies leaves its last step unsaid.
constexpr std::pair<Did, uint64_t> rolled_in_a_thousand[] = {
    {Did::checkpoints_whole, 1000}, {Did::begun_from_one, 500}, {Did::files_read, 1000},    {Did::ranks_killed, 800},
    {Did::versions_dropped, 2000},  {Did::files_packed, 800},   {Did::packs_made_anew, 80},
};

void expect_all_was_done(uint64_t count, const Counts& done, std::span<const std::pair<Did, uint64_t>> at_least) {
  if (count < 100) return;  // too few
  for (const auto& [what, least] : at_least)
    EXPECT_GE(done[size_t(what)], least * count / 1000) << did_names[size_t(what)] << ": the schedules no longer do this";
}

// The same of files that had another checkpoint's name first: units get second names, also where no node is lost.
constexpr std::pair<Did, uint64_t> renamed_in_a_thousand[] = {
    {Did::checkpoints_whole, 1000}, {Did::begun_from_one, 500}, {Did::files_read, 1000}, {Did::files_moved, 5000}, {Did::units_kept, 10000},
};

// Of one file of all ranks. A job that dies leaves its last step unsaid here as well.
constexpr std::pair<Did, uint64_t> shared_in_a_thousand[] = {
    {Did::checkpoints_whole, 1000}, {Did::begun_from_one, 500}, {Did::files_read, 500}, {Did::files_shared, 3000}, {Did::ranks_killed, 800},
};

// Of files that are protected one by one: what is called whole there is a version of one.
constexpr std::pair<Did, uint64_t> singles_in_a_thousand[] = {
    {Did::checkpoints_whole, 3000}, {Did::begun_from_one, 1000}, {Did::files_read, 3000}, {Did::ranks_killed, 500}, {Did::versions_dropped, 2000},
    {Did::removals, 500},           {Did::files_renamed, 200},   {Did::files_moved, 200}, {Did::drained, 500},
};

void run_all(CheckpointsWorld::Family of, const char* family, std::span<const std::pair<Did, uint64_t>> least) {
  const uint64_t count = number_from("SIM_SCHEDULES", 300), most_failures = number_from("SIM_FAILURES", 1);
  uint64_t failures = 0;
  Counts done{};
  for (uint64_t seed = first_seed(); seed < first_seed() + count && failures < most_failures; ++seed) {
    CheckpointsWorld world(seed, of);
    const std::string failure = world.run();
    write_trace(seed, world);
    for (size_t i = 0; i < done.size(); ++i) done[i] += world.done(Did(i));
    if (failure.empty()) continue;
    ++failures;
    ADD_FAILURE() << failure << "\nReplay: SIM_SEED=" << seed << " SIM_SCHEDULES=1 build/bin/sim_test --gtest_filter='" << family << "'\n"
                  << (most_failures > 1 ? "" : "The last operations:\n" + world.last_operations());
  }
  write_result(count, failures, done);
  if (failures == 0) expect_all_was_done(count, done, least);
}

TEST(Checkpoints, of_jobs_that_are_started_again_are_found) { run_all(CheckpointsWorld::Family::of_ranks, "Checkpoints.of_*", in_a_thousand); }

TEST(Checkpoints, rolled_ones_are_found_with_all_files_that_the_ranks_have_written) {
  run_all(CheckpointsWorld::Family::rolled, "Checkpoints.rolled_*", rolled_in_a_thousand);
}

TEST(Checkpoints, renamed_ones_are_found_under_their_last_names) {
  run_all(CheckpointsWorld::Family::renamed, "Checkpoints.renamed_*", renamed_in_a_thousand);
}

TEST(Checkpoints, shared_ones_are_found_with_the_bytes_of_all_ranks) {
  std::vector<std::pair<Did, uint64_t>> least(std::begin(shared_in_a_thousand), std::end(shared_in_a_thousand));
  least.emplace_back(Did::written_before, 300);
  least.emplace_back(Did::resized, 100);
  run_all(CheckpointsWorld::Family::shared, "Checkpoints.shared_*", least);
}

TEST(Checkpoints, together_written_ones_are_found_with_the_bytes_of_all_ranks) {
  run_all(CheckpointsWorld::Family::together, "Checkpoints.together_*", shared_in_a_thousand);
}

TEST(Checkpoints, singles_are_found_as_they_were_left) { run_all(CheckpointsWorld::Family::singles, "Checkpoints.singles_*", singles_in_a_thousand); }

// Whatever ran before: else a failure of a stream could not be told from one of the seed.
TEST(Checkpoints, replay_from_their_seed) {
  using Family = CheckpointsWorld::Family;
  for (const Family of : {Family::of_ranks, Family::rolled, Family::renamed, Family::shared, Family::together, Family::singles}) {
    const auto trace = [of](uint64_t seed) {
      CheckpointsWorld world(seed, of);
      (void)world.run();
      return std::pair(world.trace(), world.last_operations());
    };
    for (uint64_t seed = first_seed(); seed < first_seed() + 4; ++seed) {
      const auto alone = trace(seed);
      EXPECT_NE(trace(seed + 1), alone) << seed;
      EXPECT_EQ(trace(seed), alone) << "family " << int(of) << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace holdfast::sim
