#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "advice/advice.hpp"
#include "unit/advice/jobs.hpp"

namespace holdfast::advice {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> names(const Report& report) {
  std::vector<std::string> out;
  for (const Advice& a : report.advice) out.push_back(a.name);
  return out;
}
std::vector<std::string> patterns(const Report& report) {
  std::vector<std::string> out;
  for (const Pattern& p : report.patterns) out.push_back(p.name);
  return out;
}
Site of_kind(const std::string& kind) {
  Site site;
  site.add("/", {.file_system = kind});
  return site;
}

TEST(Advice, an_empty_log_and_a_good_program_get_none) {
  EXPECT_THAT(advise(Log(), Site()).advice, IsEmpty());
  JobOf good(16, 100);
  good.nodes(4).all_do("/nfs/out.dat", {.calls = 8, .bytes_each = 32 << 20, .seconds = 10, .collective = true}, Interface::mpiio);
  const Report report = advise(good.log, of_kind("nfs"));
  EXPECT_THAT(names(report), IsEmpty());
  EXPECT_THAT(patterns(report), ElementsAre("single-shared-file"));
}

TEST(Advice, what_saves_less_than_the_limits_is_not_said) {
  JobOf job(1, 1000);
  job.does(0, "/nfs/small", {.calls = 10000, .bytes_each = 100, .seconds = 15});
  const Report report = advise(job.log, of_kind("nfs"));
  EXPECT_THAT(names(report), IsEmpty()) << "1.5 % of the job's time";
  EXPECT_EQ(report.too_small, 1u);
  EXPECT_THAT(names(advise(job.log, of_kind("nfs"), {.least_share = 0.01})), ElementsAre("small-accesses"));
}

TEST(Advice, the_most_useful_comes_first) {
  JobOf job(1, 100);
  job.does(0, "/nfs/a", {.calls = 10000, .bytes_each = 100, .seconds = 10});
  job.does(0, "/nfs/b", {.write = false, .calls = 10000, .bytes_each = 100, .seconds = 50});
  const Report report = advise(job.log, of_kind("nfs"));
  ASSERT_EQ(report.advice.size(), 2u);
  EXPECT_THAT(report.advice[0].files, ElementsAre("/nfs/b"));
  EXPECT_GT(report.advice[0].saved(), report.advice[1].saved());
}

TEST(Advice, files_that_differ_in_numbers_are_one_glob) {
  JobOf job(8, 100);
  for (int rank = 0; rank < 8; ++rank)
    job.does(rank, "/nfs/out." + std::to_string(rank) + ".dat", {.calls = 100000, .bytes_each = 100, .seconds = 20.0 + rank});
  const Report report = advise(job.log, of_kind("nfs"));
  ASSERT_THAT(names(report), ElementsAre("small-accesses"));
  EXPECT_EQ(report.advice[0].file_count, 8u);
  EXPECT_DOUBLE_EQ(report.advice[0].seconds_now, 27) << "the job waits for the slowest";
  EXPECT_THAT(settings_of(report), Contains(Setting{"path", {"/nfs/out.*.dat"}, true}));
  EXPECT_THAT(patterns(report), ElementsAre("file-per-process"));
}

TEST(Advice, small_accesses_all_over_a_file_are_no_matter_for_buffers) {
  JobOf job(1, 100);
  job.does(0, "/nfs/tree", {.calls = 100000, .bytes_each = 100, .seconds = 20, .stride = 77777});
  EXPECT_THAT(names(advise(job.log, of_kind("nfs"))), IsEmpty());
}

// Buffers would be written at each close.
TEST(Advice, a_file_that_is_opened_for_each_small_write_needs_other_help) {
  JobOf job(2, 100);
  job.all_do("/nfs/again", {.calls = 5000, .bytes_each = 8, .seconds = 20, .opening = 30, .opens = 5000});
  EXPECT_THAT(names(advise(job.log, of_kind("nfs"))), ElementsAre("repeated-opens"));
}

TEST(Advice, buffers_of_a_file_that_several_processes_share_are_not_set) {
  JobOf job(4, 100);
  job.all_do("/nfs/shared", {.calls = 100000, .bytes_each = 100, .seconds = 20});
  const Report report = advise(job.log, of_kind("nfs"));
  ASSERT_THAT(names(report), ElementsAre("small-accesses"));
  EXPECT_THAT(settings_of(report), IsEmpty());
  EXPECT_THAT(report.advice[0].change, Not(HasSubstr("one process of the job"))) << "that is the spokesperson, which is warned of";
  EXPECT_THAT(report.advice[0].change, HasSubstr("gather its own part"));
  EXPECT_THAT(report.advice[0].expectation, Not(HasSubstr("through the buffers"))) << "there are none for this file";
}

TEST(Advice, buffers_of_many_processes_of_a_node_leave_it_memory) {
  JobOf job(256, 100);
  for (int rank = 0; rank < 256; ++rank) job.does(rank, "/nfs/out." + std::to_string(rank), {.calls = 1000000, .bytes_each = 512, .seconds = 50});
  const Report report = advise(job.log, of_kind("ext4"));
  ASSERT_FALSE(report.advice.empty());
  EXPECT_THAT(settings_of(report), Contains(Setting{"buffer", {"4x4MiB"}, false}));  // 4 GiB a node
}

TEST(Model, latency_and_bandwidth_are_told_apart_by_accesses_of_different_sizes) {
  // 100 us a call and 1 GB/s: 100,000 small calls 10 s, of which buffers leave nearly nothing.
  JobOf job(1, 30);
  job.does(0, "/nfs/small", {.calls = 100000, .bytes_each = 1000, .seconds = 100000 * 1e-4 + 0.1});
  job.does(0, "/nfs/large", {.calls = 100, .bytes_each = 10'000'000, .seconds = 100 * 1e-4 + 1});
  const Report report = advise(job.log, of_kind("nfs"));
  ASSERT_THAT(names(report), ElementsAre("small-accesses"));
  EXPECT_NEAR(report.advice[0].seconds_after, 0.1 + 0.02 + 0.025 + 0.0016, 0.01);
  EXPECT_THAT(report.advice[0].expectation, HasSubstr("1 GB/s"));
  EXPECT_THAT(report.advice[0].expectation, Not(HasSubstr("assumed")));
}

TEST(Advice, a_spokesperson_is_named_where_others_could_help) {
  JobOf job(64, 200);
  job.nodes(8).does(5, "/nfs/result", {.calls = 1000, .bytes_each = 16 << 20, .seconds = 150});
  job.does(0, "/nfs/notes", {.calls = 4, .bytes_each = 4 << 20, .seconds = 0.1});
  const Report report = advise(job.log, of_kind("nfs"));
  ASSERT_THAT(names(report), Contains("spokesperson"));
  EXPECT_THAT(patterns(report), Contains("spokesperson"));
  EXPECT_THAT(report.advice[0].evidence, HasSubstr("rank 5"));
  EXPECT_NEAR(report.advice[0].seconds_after, 150.0 / 8, 0.01);
  job.nodes(1);
  EXPECT_THAT(names(advise(job.log, of_kind("nfs"))), IsEmpty()) << "on one node with one device nobody could help";
}

TEST(Advice, several_shared_files_are_told_from_one) {
  JobOf job(8, 100);
  for (int step = 0; step < 5; ++step)
    job.all_do("/nfs/step" + std::to_string(step), {.calls = 4, .bytes_each = 8 << 20, .seconds = 1, .collective = true}, Interface::mpiio);
  const Report report = advise(job.log, of_kind("nfs"));
  EXPECT_THAT(patterns(report), ElementsAre("several-shared-files"));
  EXPECT_THAT(names(report), IsEmpty());
}

TEST(Advice, many_files_of_one_process_each_cost_at_the_metadata_server) {
  JobOf job(2000, 100);
  for (int rank = 0; rank < 2000; ++rank)
    job.does(rank, "/lustre/out." + std::to_string(rank), {.calls = 4, .bytes_each = 8 << 20, .seconds = 1, .opening = 0.002 + rank * 0.02});
  Site site;
  site.add("/lustre", {.file_system = "lustre", .stripe_count = 4, .stripe_bytes = 1 << 20, .devices = 100});
  const Report report = advise(job.log, site);
  ASSERT_THAT(names(report), Contains("too-many-files"));
  EXPECT_THAT(report.advice[0].evidence, HasSubstr("2,000 files"));
  EXPECT_NEAR(report.advice[0].seconds_now, 40, 0.1);
  EXPECT_NEAR(report.advice[0].seconds_after, 0.002, 0.001);
  EXPECT_THAT(report.advice[0].commands, ElementsAre("lfs setstripe -c 1 -S 1m /lustre"));
}

TEST(Advice, a_file_that_is_opened_for_every_write_is_to_stay_open) {
  JobOf job(2, 100);
  job.all_do("/nfs/log.dat", {.calls = 5000, .bytes_each = 2 << 20, .seconds = 5, .opening = 30, .opens = 5000});
  const Report report = advise(job.log, of_kind("nfs"));
  ASSERT_THAT(names(report), ElementsAre("repeated-opens"));
  EXPECT_NEAR(report.advice[0].seconds_after, 30.0 / 5000, 1e-6);
}

TEST(Advice, independent_pieces_that_take_turns_are_to_be_collective) {
  JobOf job(32, 500);
  job.nodes(4).all_do("/nfs/mesh", {.calls = 20000, .bytes_each = 4096, .seconds = 200, .stride = 32 * 4096}, Interface::mpiio);
  const Report report = advise(job.log, of_kind("nfs"));
  ASSERT_THAT(names(report), ElementsAre("independent-interleaved"));
  EXPECT_THAT(report.advice[0].change, HasSubstr("MPI_File_write_all"));
  EXPECT_THAT(report.patterns[0].words, HasSubstr("layout #2"));
  JobOf collective(32, 500);
  collective.nodes(4).all_do("/nfs/mesh", {.calls = 20000, .bytes_each = 4096, .seconds = 200, .collective = true, .stride = 32 * 4096},
                             Interface::mpiio);
  EXPECT_THAT(names(advise(collective.log, of_kind("nfs"))), IsEmpty());
}

TEST(Advice, aggregators_are_as_many_as_devices_where_there_were_fewer_or_many_more) {
  Site site;
  site.add("/lustre", {.file_system = "lustre", .stripe_count = 16, .stripe_bytes = 4 << 20, .devices = 16});
  const auto wanted = [&](int nodes, uint32_t ranks, uint64_t bytes_each, const char* scheme) -> std::string {
    JobOf job(ranks, 100);
    job.nodes(nodes).all_do("/lustre/out",
                            {.calls = 200, .bytes_each = bytes_each, .seconds = 60, .collective = true, .stride = int64_t(bytes_each * ranks)},
                            Interface::mpiio);
    job.file("/lustre/out", Interface::mpiio).scheme = scheme;
    const Report report = advise(job.log, site);
    const Advice* found = named(report, "aggregators");
    if (!found) return "";
    EXPECT_EQ(found->settings.size(), 1u);
    EXPECT_EQ(found->settings[0].key, "cb_nodes");
    return found->settings[0].values[0];
  };
  EXPECT_EQ(wanted(4, 128, 1 << 20, ""), "16") << "one a node: 4 of 16 devices are written to at a time";
  EXPECT_EQ(wanted(4, 8, 1 << 20, ""), "8") << "no more than there are processes";
  EXPECT_EQ(wanted(16, 128, 1 << 20, ""), "") << "one a device";
  EXPECT_EQ(wanted(4, 128, 64 << 10, "rs:4+2"), "16") << "all 128 of a protected file: 64 KiB for each in a call";
  EXPECT_EQ(wanted(4, 128, 32 << 20, "rs:4+2"), "") << "whole stripes for each";
}

TEST(Advice, aggregators_are_counted_where_the_log_shows_the_calls_below) {
  Site site;
  site.add("/lustre", {.file_system = "lustre", .stripe_count = 8, .stripe_bytes = 1 << 20, .devices = 8});
  JobOf job(64, 100);
  job.nodes(1).all_do("/lustre/out", {.calls = 100, .bytes_each = 1 << 20, .seconds = 60, .collective = true, .stride = 64 << 20}, Interface::mpiio);
  for (int rank = 0; rank < 8; ++rank) job.does(rank * 8, "/lustre/out", {.calls = 800, .bytes_each = 1 << 20, .seconds = 50, .stride = 8 << 20});
  EXPECT_EQ(named(advise(job.log, site), "aggregators"), nullptr) << "one node, but eight of its processes wrote";
}

TEST(Advice, accesses_off_the_units_are_named_where_the_units_are_devices) {
  JobOf job(8, 500);
  job.nodes(8).all_do("/lustre/f", {.calls = 1000, .bytes_each = 1 << 20, .seconds = 200, .stride = 8 << 20, .misaligned = 1});
  Site site;
  site.add("/lustre", {.file_system = "lustre", .stripe_count = 8, .stripe_bytes = 1 << 20, .devices = 8});
  const Report report = advise(job.log, site);
  ASSERT_THAT(names(report), Contains("unaligned-accesses"));
  EXPECT_THAT(names(advise(job.log, of_kind("tmpfs"))), IsEmpty());
}

TEST(Advice, writes_of_parts_of_protected_rows_get_units_that_fit) {
  JobOf job(4, 100);
  job.all_do("/data/p", {.calls = 1000, .bytes_each = 1 << 20, .seconds = 40}, Interface::mpiio);
  FileUse& use = job.file("/data/p", Interface::mpiio);
  use.scheme = "rs:4+2";
  use.total[Counter::read_modify_writes] = 4000;
  const Report report = advise(job.log, of_kind("nfs"));
  ASSERT_THAT(names(report), Contains("row-alignment"));
  EXPECT_THAT(settings_of(report), Contains(Setting{"striping_unit", {"262144"}, false}));
}

// 500 collective writes of 4 processes, 256 KiB of each, into rows of 4 MiB.
JobOf collective_writer(uint64_t bytes_each) {
  JobOf job(4, 100);
  job.all_do("/data/p", {.calls = 500, .bytes_each = bytes_each, .seconds = 40, .collective = true, .stride = int64_t(4 * bytes_each)},
             Interface::mpiio);
  FileUse& use = job.file("/data/p", Interface::mpiio);
  use.scheme = "rs:4+2";
  use.alignment = 1 << 20;
  return job;
}

TEST(Advice, a_collective_write_of_a_part_of_a_row_counts_once) {
  JobOf job = collective_writer(256 << 10);
  job.file("/data/p", Interface::mpiio).total[Counter::read_modify_writes] = 500;
  const Report report = advise(job.log, of_kind("nfs"));
  ASSERT_THAT(names(report), Contains("row-alignment"));
  EXPECT_THAT(report.advice[0].evidence, HasSubstr("500 collective writes"));
  EXPECT_THAT(report.advice[0].evidence, Not(HasSubstr("2,000")));
  EXPECT_THAT(settings_of(report), Contains(Setting{"striping_unit", {"262144"}, false})) << "1 MiB of all processes is a row of 4 units then";
  EXPECT_NEAR(report.advice[0].seconds_after, 40.0 / 3, 0.1) << "each changes a row";
}

TEST(Advice, a_collective_program_is_not_told_to_write_collectively) {
  JobOf job = collective_writer(300'001);
  job.file("/data/p", Interface::mpiio).total[Counter::read_modify_writes] = 400;
  const Report report = advise(job.log, of_kind("nfs"));
  ASSERT_THAT(names(report), Contains("row-alignment"));
  EXPECT_THAT(report.advice[0].change, Not(HasSubstr("collective")));
  EXPECT_THAT(report.advice[0].change, HasSubstr("4 MiB"));
}

TEST(Advice, a_write_of_many_rows_is_not_charged_for_its_two_ends) {
  JobOf job(1, 100);
  job.does(0, "/data/p", {.calls = 100, .bytes_each = 400 << 20, .seconds = 90});
  FileUse& use = job.file("/data/p", Interface::posix);
  use.scheme = "rs:4+2";
  use.alignment = 1 << 20;
  use.total[Counter::read_modify_writes] = 200;
  EXPECT_THAT(names(advise(job.log, of_kind("nfs"))), Not(Contains("row-alignment"))) << "200 of 10,000 rows";
}

TEST(Advice, small_plain_pieces_that_take_turns_are_seen) {
  JobOf job(4, 4);
  job.all_do("/nfs/mesh", {.calls = 1000, .bytes_each = 240, .seconds = 1.5, .stride = 960});
  const Report report = advise(job.log, of_kind("nfs"));
  ASSERT_THAT(names(report), ElementsAre("independent-interleaved"));
  EXPECT_THAT(report.advice[0].evidence, HasSubstr("4 processes write pieces of 240 bytes that take turns in the file, by 4,000 plain calls"));
  EXPECT_THAT(report.advice[0].change, HasSubstr("MPI_File_write_all"));
  EXPECT_THAT(settings_of(report), IsEmpty());
}

TEST(Advice, plain_accesses_all_over_a_file_do_not_take_turns) {
  JobOf job(4, 4);
  job.all_do("/nfs/tree", {.write = false, .calls = 1000, .bytes_each = 240, .seconds = 1.5, .stride = 960});
  for (auto& stride : job.file("/nfs/tree", Interface::posix).read_strides) stride.count = 30;
  EXPECT_THAT(names(advise(job.log, of_kind("nfs"))), IsEmpty());
}

TEST(Advice, the_calls_below_mpi_io_are_not_the_programs) {
  JobOf job(4, 20);
  job.all_do("/nfs/mesh", {.calls = 1000, .bytes_each = 240, .seconds = 1.5, .stride = 960}, Interface::mpiio);
  job.all_do("/nfs/mesh", {.calls = 1000, .bytes_each = 240, .seconds = 1.4, .stride = 960});
  EXPECT_THAT(names(advise(job.log, of_kind("nfs"))), ElementsAre("independent-interleaved")) << "once";
}

TEST(Advice, messages_of_all_processes_are_debugging_output) {
  JobOf job(1000, 100);
  job.all_do("<STDOUT>", {.calls = 2000, .bytes_each = 40, .seconds = 30}, Interface::stdio);
  const Report report = advise(job.log, Site());
  ASSERT_THAT(names(report), ElementsAre("debugging-output"));
  EXPECT_THAT(settings_of(report), ElementsAre(Setting{"gather_output", {"job.out"}, false}));
}

TEST(Advice, a_line_that_is_flushed_has_its_time_in_the_flush) {
  JobOf job(4, 10);
  for (int rank = 0; rank < 4; ++rank) {
    const std::string path = "/nfs/task" + std::to_string(rank) + ".log";
    job.does(rank, path, {.calls = 2000, .bytes_each = 40, .seconds = 0.001}, Interface::stdio);
    FileUse& use = job.file(path, Interface::stdio);
    use.total[Counter::sync_ns] = use.ranks[0].counters[Counter::sync_ns] = 3'000'000'000;
  }
  const Report report = advise(job.log, of_kind("nfs"));
  ASSERT_THAT(names(report), ElementsAre("debugging-output"));
  EXPECT_NEAR(report.advice[0].seconds_now, 3.001, 1e-3);
  EXPECT_THAT(settings_of(report), ElementsAre(Setting{"buffer", {"4x1MiB"}, false}, Setting{"path", {"/nfs/task*.log"}, true}));
}

TEST(Advice, what_the_processes_say_is_no_shared_file) {
  JobOf job(4, 10);
  job.all_do("<STDOUT>", {.calls = 20, .bytes_each = 40, .seconds = 0.001}, Interface::stdio);
  EXPECT_THAT(advise(job.log, Site()).patterns[0].name, "standard-output");
}

TEST(Advice, a_process_that_is_much_slower_than_others_with_as_many_bytes_is_named) {
  JobOf job(100, 900);
  auto run = [&](int rank, double seconds, uint64_t calls) {
    job.does(rank, "/lustre/out." + std::to_string(rank), {.calls = calls, .bytes_each = 4 << 20, .seconds = seconds});
  };
  for (int rank = 0; rank < 100; ++rank) run(rank, rank == 42 ? 700 : 10 + rank % 3, 64);
  Site site;
  site.add("/lustre", {.file_system = "lustre", .stripe_count = 1, .stripe_bytes = 32 << 20});
  const Report report = advise(job.log, site);
  ASSERT_THAT(names(report), Contains("straggler"));
  EXPECT_THAT(report.advice[0].evidence, HasSubstr("rank 42, needs 700 s for 256 MiB of /lustre/out.42"));
  EXPECT_THAT(report.advice[0].commands, ElementsAre("lfs getstripe /lustre/out.42"));
  run(77, 8000, 10000);  // one that is slow because it has more to do
  EXPECT_THAT(names(advise(job.log, site)), Not(Contains("straggler")));
}

// Each rank's part of the file ends at `end(rank)`.
template <class End>
void ends_at(FileUse& use, Counter counter, End end) {
  for (auto& r : use.ranks) {
    r.counters[counter] = end(r.rank);
    use.total[counter] = std::max(use.total[counter], r.counters[counter]);
  }
}

TEST(Advice, a_file_that_all_read_has_no_layout) {
  JobOf job(16, 100);
  job.all_do("/nfs/input", {.write = false, .calls = 64, .bytes_each = 1 << 20, .seconds = 1});
  ends_at(job.file("/nfs/input", Interface::posix), Counter::end_of_reads, [](int64_t) { return 64 << 20; });
  const Report report = advise(job.log, of_kind("nfs"));
  EXPECT_THAT(report.patterns[0].words, HasSubstr("the processes read the same bytes"));
}

TEST(Advice, processes_that_write_their_own_part_again_do_not_write_the_same_bytes) {
  JobOf job(4, 100);
  job.all_do("/nfs/twice", {.calls = 16, .bytes_each = 512 << 10, .seconds = 1}, Interface::mpiio);
  FileUse& use = job.file("/nfs/twice", Interface::mpiio);
  ends_at(use, Counter::end_of_writes, [](int64_t rank) { return uint64_t(rank + 1) * (4 << 20); });
  use.total[Counter::writes_backward] = 4;
  const Report report = advise(job.log, of_kind("nfs"));
  EXPECT_THAT(report.patterns[0].words, Not(HasSubstr("the same bytes")));
  EXPECT_THAT(report.patterns[0].words, HasSubstr("layout #1, 4 MiB a process"));
  EXPECT_THAT(report.patterns[0].words, HasSubstr("written 2 times"));
}

TEST(Advice, pieces_that_are_written_again_still_take_turns) {
  JobOf job(4, 100);
  job.all_do("/nfs/steps", {.calls = 3000, .bytes_each = 240, .seconds = 1, .stride = 960}, Interface::mpiio);
  FileUse& use = job.file("/nfs/steps", Interface::mpiio);
  ends_at(use, Counter::end_of_writes, [](int64_t rank) { return 999 * 960 + uint64_t(rank + 1) * 240; });
  use.total[Counter::writes_backward] = 8;
  const Report report = advise(job.log, of_kind("nfs"));
  EXPECT_THAT(report.patterns[0].words, HasSubstr("layout #2, 960 bytes"));
  EXPECT_THAT(report.patterns[0].words, HasSubstr("written 3 times"));
}

TEST(Advice, parts_that_overlap_their_neighbours_are_not_called_written_again) {
  JobOf job(8, 100);
  job.all_do("/nfs/halo", {.write = false, .calls = 16, .bytes_each = 1 << 20, .seconds = 1});
  ends_at(job.file("/nfs/halo", Interface::posix), Counter::end_of_reads, [](int64_t rank) { return uint64_t(rank + 1) * (8 << 20); });
  EXPECT_THAT(advise(job.log, of_kind("nfs")).patterns[0].words, testing::EndsWith("; its bytes are read 2 times"));
}

TEST(Advice, bytes_that_a_log_without_ranks_has_twice_are_nobodys_in_particular) {
  JobOf job(16, 100);
  job.all_do("/nfs/input", {.write = false, .calls = 64, .bytes_each = 1 << 20, .seconds = 1});
  FileUse& use = job.file("/nfs/input", Interface::posix);
  use.total[Counter::end_of_reads] = 64 << 20;
  use.ranks.clear();
  const std::string words = advise(job.log, of_kind("nfs")).patterns[0].words;
  EXPECT_THAT(words, Not(HasSubstr("the same bytes")));
  EXPECT_THAT(words, HasSubstr("bytes are read 16 times"));
}

TEST(Advice, one_of_something_is_said_in_the_singular) {
  JobOf files(4, 100);
  for (int i = 0; i < 2; ++i) files.does(0, "/nfs/out." + std::to_string(i), {.calls = 10, .bytes_each = 1 << 20, .seconds = 1});
  EXPECT_THAT(advise(files.log, of_kind("nfs")).patterns.back().words, HasSubstr("2 files of 1 process, none shared"));
  JobOf said(4, 100);
  said.does(2, "<STDOUT>", {.calls = 20, .bytes_each = 40, .seconds = 0.001}, Interface::stdio);
  EXPECT_THAT(advise(said.log, Site()).patterns.back().words, HasSubstr("1 of 4 processes"));
}

TEST(Advice, a_stripe_count_without_a_number_of_devices_is_asked_for) {
  JobOf job(64, 100);
  job.nodes(8).all_do("/lustre/f", {.calls = 10, .bytes_each = 32 << 20, .seconds = 50, .collective = true}, Interface::mpiio);
  Site site;
  site.add("/lustre", {.file_system = "lustre", .stripe_count = 1, .stripe_bytes = 1 << 20});
  const Report report = advise(job.log, site);
  EXPECT_THAT(names(report), Not(Contains("file-stripes")));
  EXPECT_THAT(report.asks, ElementsAre(HasSubstr("--devices")));
}

TEST(Advice, ceph_gets_its_own_command) {
  JobOf job(64, 100);
  job.nodes(8).all_do("/ceph/my dir/f", {.calls = 10, .bytes_each = 32 << 20, .seconds = 50, .collective = true}, Interface::mpiio);
  Site site;
  site.add("/ceph", {.file_system = "ceph", .stripe_count = 1, .stripe_bytes = 4 << 20, .devices = 12});
  const Report report = advise(job.log, site);
  ASSERT_FALSE(report.advice.empty());
  EXPECT_THAT(report.advice[0].commands,
              ElementsAre("setfattr -n ceph.dir.layout -v \"stripe_unit=4194304 stripe_count=12 object_size=4194304\" '/ceph/my dir'"));
}

TEST(Advice, a_log_without_ranks_is_read_as_if_all_had_done_the_same) {
  JobOf job(100, 100);
  job.nodes(10).all_do("/nfs/out", {.calls = 10000, .bytes_each = 200, .seconds = 40, .stride = 20000}, Interface::mpiio);
  job.file("/nfs/out", Interface::mpiio).ranks.clear();
  const Report report = advise(job.log, of_kind("nfs"));
  ASSERT_THAT(names(report), ElementsAre("independent-interleaved"));
  EXPECT_NEAR(report.advice[0].seconds_now, 40, 1e-6);
}

TEST(Site, the_longest_path_wins) {
  Site site;
  site.add("/a", {.file_system = "nfs"});
  site.add("/a/b", {.file_system = "lustre"});
  EXPECT_EQ(site.place_of("/a/b/c").file_system, "lustre");
  EXPECT_EQ(site.place_of("/a/bc").file_system, "nfs");
  EXPECT_EQ(site.place_of("/ab").file_system, "");
}

}  // namespace
}  // namespace holdfast::advice
