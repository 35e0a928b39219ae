// Several openers of one file, against the model of what each may read: see openers_world.hpp.
//
//   SIM_SEED=17 SIM_SCHEDULES=1 build/bin/sim_test --gtest_filter='Openers*'   replays one schedule
//   SIM_SCHEDULES=1000 SIM_FAILURES=20 ...                                     goes on after failures
//   SIM_ONLY=several,tools ...                                                 leaves out what is not named (struct Features)
//   SIM_RESULT=file ...                                                        writes the numbers there, for run_ranges.sh
//   SIM_TRACE=file ...                                                         a line a schedule that differs where anything did
#include <gtest/gtest.h>
#include <malloc.h>

#include <fstream>
#include <span>

#include "sim/openers_world.hpp"

namespace holdfast::sim {
namespace {

// How many of each a thousand schedules have at least. What falls below is no longer tested, whatever else is green.
struct Floor {
  Seen what;
  uint64_t in_a_thousand;
};
constexpr Floor floors[] = {
    {Seen::operations, 50000},
    {Seen::schedules_with_two_writers, 500},
    {Seen::commits_beside_a_writer, 400},
    {Seen::folds_over_others, 400},
    {Seen::folds_with_warm_caches, 600},
    {Seen::opens_beside_a_commit, 500},
    {Seen::collective_writes_beside_a_writer, 1500},
    {Seen::overlapping_writes, 1500},
    {Seen::holes_preallocated, 200},
    {Seen::holes_filled, 30000},
    {Seen::cuts, 40},
    {Seen::repairs_beside_writers, 200},
    {Seen::repairs_that_mended_beside_writers, 15},
    {Seen::verifies_beside_writers, 120},
    {Seen::openers_killed, 120},
    {Seen::first_ranks_killed_alone, 60},
    {Seen::tools_killed, 90},
    {Seen::power_failures, 100},
    {Seen::members_failed, 250},
    {Seen::members_failed_for_one_process, 150},
    {Seen::members_timed_out, 40},
    {Seen::members_replaced, 150},
    {Seen::members_that_came_back, 60},
    {Seen::sidecars_hidden, 400},
    {Seen::losses_of_well_members, 800},
    {Seen::exports, 140},
    {Seen::replacements_asked, 300},
    {Seen::replacements_of_members_that_answer, 200},
    {Seen::replacements_done, 200},
    {Seen::replacements_cut_short, 60},
    {Seen::replacements_in_peace, 150},
    {Seen::second_files_mended, 150},
    {Seen::removals, 80},
    {Seen::removals_cut_short, 20},
    {Seen::files_whole_after_that, 5},
    {Seen::power_failures_while_created, 20},
    {Seen::power_failures_while_removed, 15},
    {Seen::creators_killed, 150},
    {Seen::single_directories, 60},
    {Seen::links_at_the_path, 150},
    {Seen::power_failures_with_unsynced_names, 15},
    {Seen::schedules_on_nodes, 200},
};

void write_result(uint64_t count, uint64_t failures, Coverage& coverage) {
  const char* path = std::getenv("SIM_RESULT");
  if (!path) return;
  std::ofstream file(path);
  file << count << " schedules\n" << failures << " failures\n";
  for (size_t i = 0; i < seen_names.size(); ++i) file << coverage.counts[i] << " " << seen_names[i] << "\n";
}

// What a schedule did, in a line: two versions of the simulator can be told apart, or not, seed by seed.
void write_trace(uint64_t seed, const OpenersWorld& world) {
  static const char* const path = std::getenv("SIM_TRACE");
  static std::ofstream file(path ? path : "");
  if (path) file << seed << " " << world.trace() << " " << std::hash<std::string>()(world.failure() + world.last_operations()) << std::endl;
}

constexpr uint64_t usual_count = 300;

// The numbers of all schedules; whether none failed.
bool run_schedules(const Features& features, Coverage& coverage, uint64_t usual = usual_count) {
  mallopt(M_TRIM_THRESHOLD, 256 << 20);  // the worlds come and go: their memory stays
  mallopt(M_MMAP_THRESHOLD, 32 << 20);   // nor do the agents' answers of a mebibyte go back to the system each time
  mallopt(M_MXFAST, 0);                  // and large buffers go without a look at all small pieces
  const uint64_t count = number_from("SIM_SCHEDULES", usual), most_failures = number_from("SIM_FAILURES", 1);
  uint64_t failures = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + count && failures < most_failures; ++seed) {
    OpenersWorld world(seed, features);
    const std::string failure = world.run();
    coverage.add(world.coverage());
    write_trace(seed, world);
    if (failure.empty()) continue;
    ++failures;
    ADD_FAILURE() << failure << "\nReplay: SIM_SEED=" << seed << " SIM_SCHEDULES=1 build/bin/sim_test --gtest_filter='Openers*'\n"
                  << (most_failures > 1 ? "" : "The last operations:\n" + world.last_operations());
  }
  write_result(count, failures, coverage);
  return failures == 0;
}

void expect_floors(std::span<const Floor> floors, Coverage& coverage, uint64_t usual = usual_count) {
  const uint64_t count = number_from("SIM_SCHEDULES", usual);
  if (count < usual || std::getenv("SIM_ONLY")) return;  // too few for floors, or not all that a schedule has
  for (const Floor& floor : floors)
    EXPECT_GE(coverage[floor.what], floor.in_a_thousand * count / 1000) << seen_names[size_t(floor.what)] << ": the schedules no longer do this";
}

TEST(Openers, of_one_file_read_what_was_written) {
  Coverage coverage;
  if (run_schedules(Features::from(std::getenv("SIM_ONLY")), coverage)) expect_floors(floors, coverage);
}

// The same generator in harsh times: see Features::harsh.
TEST(Openers, in_harsh_times_read_what_was_written) {
  constexpr Floor floors[] = {{Seen::operations, 50000},     {Seen::folds_over_others, 150},     {Seen::openers_killed, 200},
                              {Seen::power_failures, 200},   {Seen::members_failed, 400},        {Seen::members_replaced, 250},
                              {Seen::members_timed_out, 60}, {Seen::members_that_came_back, 100}};
  Features features = Features::from(std::getenv("SIM_ONLY"));
  features.harsh = true;
  Coverage coverage;
  if (run_schedules(features, coverage)) expect_floors(floors, coverage);
}

// The same over targets of node agents: each call is a request and its answer, agents are killed and started again, and connections are reset.
TEST(Openers, by_agents_read_what_was_written) {
  constexpr Floor floors[] = {{Seen::operations, 50000},       {Seen::agents_restarted, 80}, {Seen::sessions_lost, 150},
                              {Seen::connections_reset, 5000}, {Seen::sums_of_agents, 100},  {Seen::members_that_came_back, 40}};
  Features features = Features::from(std::getenv("SIM_ONLY"));
  features.agents = true;
  Coverage coverage;
  if (run_schedules(features, coverage)) expect_floors(floors, coverage);
}

// The same where others go on while an agent is waited for: requests take long and go astray, ways are cut, processes stop, with all their connections
// or without, and fork.
Features over_a_network() {
  Features features = Features::from(std::getenv("SIM_ONLY"));
  features.agents = features.network = true;
  return features;
}
constexpr Floor floors_of_networks[] = {{Seen::operations, 40000},
                                        {Seen::requests_that_took_long, 100000},
                                        {Seen::resets_while_carried_out, 12000},
                                        {Seen::takeovers_that_waited, 10000},
                                        {Seen::late_requests_refused, 10000},
                                        {Seen::late_requests_taken, 50},
                                        {Seen::sessions_in_place_of_lost_ones, 40},
                                        {Seen::sums_of_agents, 1000},
                                        {Seen::ways_cut, 4500},
                                        {Seen::calls_without_a_way, 4000},
                                        {Seen::sessions_expired, 1800},
                                        {Seen::openers_cut_off, 300},
                                        {Seen::calls_of_who_was_cut_off, 300},
                                        {Seen::processes_stopped, 8000},
                                        {Seen::stopped_in_a_commit, 2000},
                                        {Seen::found_busy_beside_a_stopped_one, 15000},
                                        {Seen::forks, 300},
                                        {Seen::children_of_the_dead, 20},
                                        {Seen::calls_given_up, 800},
                                        {Seen::let_in_after_calls_of_before, 700}};

TEST(Openers, over_a_network_read_what_was_written) {
  Coverage coverage;
  if (run_schedules(over_a_network(), coverage)) expect_floors(floors_of_networks, coverage);
}

TEST(Openers, over_a_network_on_a_pool_read_what_was_written) {
  Features features = over_a_network();
  features.pools = true;
  features.replacements = false;
  Coverage coverage;
  if (run_schedules(features, coverage)) expect_floors(floors_of_networks, coverage);
}

// The same where each call on a target costs a wait: locks come with what is read under them, and writes with the settle behind them.
TEST(Openers, on_far_targets_read_what_was_written) {
  constexpr Floor floors[] = {{Seen::operations, 50000}, {Seen::members_that_came_back, 40}, {Seen::creators_killed, 150}};
  Features features = Features::from(std::getenv("SIM_ONLY"));
  features.far = true;
  Coverage coverage;
  if (run_schedules(features, coverage)) expect_floors(floors, coverage);
}

// The same on a pool: the manifest alone names the members, in an order of the file's own.
TEST(Openers, on_a_pool_read_what_was_written) {
  constexpr Floor floors[] = {{Seen::operations, 50000}, {Seen::members_that_came_back, 40}, {Seen::creators_killed, 150}};
  Features features = Features::from(std::getenv("SIM_ONLY"));
  features.pools = true;
  features.replacements = false;
  Coverage coverage;
  if (run_schedules(features, coverage)) expect_floors(floors, coverage);
}

// The same on more nodes than a set can have: the record of a row lies on the row's own members alone. Each call on all members takes long.
TEST(Openers, on_a_wide_pool_read_what_was_written) {
  constexpr uint64_t fewer = 60;
  constexpr Floor floors[] = {{Seen::operations, 50000}, {Seen::folds_over_others, 100}, {Seen::members_failed, 100}, {Seen::power_failures, 50}};
  Features features = Features::from(std::getenv("SIM_ONLY"));
  features.pools = features.wide = true;
  features.replacements = false;
  Coverage coverage;
  if (run_schedules(features, coverage, fewer)) expect_floors(floors, coverage, fewer);
}

// The same where one opener cuts the file while others have it open and have nothing to commit: none of them gives it its old size back.
TEST(Openers, beside_cuts_read_what_was_written) {
  constexpr Floor floors[] = {{Seen::operations, 50000}, {Seen::cuts_beside_others, 50}};
  Features features = Features::from(std::getenv("SIM_ONLY"));
  features.cuts_beside = true;
  Coverage coverage;
  if (run_schedules(features, coverage)) expect_floors(floors, coverage);
}

// The same where ranks write and read alone in several threads at once: no read sees half a write of another thread.
TEST(Openers, with_threads_read_what_was_written) {
  constexpr Floor floors[] = {{Seen::operations, 50000}, {Seen::threads_begun, 1000}, {Seen::reads_beside_writes_of_threads, 300}};
  Features features = Features::from(std::getenv("SIM_ONLY"));
  features.threads = true;
  Coverage coverage;
  if (run_schedules(features, coverage)) expect_floors(floors, coverage);
}

TEST(Openers, replay_from_their_seed) {
  auto trace = [](uint64_t seed) {
    OpenersWorld world(seed);
    (void)world.run();
    return world.trace();
  };
  for (uint64_t seed = first_seed(); seed < first_seed() + 10; ++seed) {
    EXPECT_EQ(trace(seed), trace(seed)) << seed;
    EXPECT_NE(trace(seed), trace(seed + 1)) << seed;
  }
}

}  // namespace
}  // namespace holdfast::sim
