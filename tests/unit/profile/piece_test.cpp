#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "unit/profile/job.hpp"

namespace holdfast::profile {
namespace {

using PieceTest = ProfiledTest;

TEST_F(PieceTest, nothing_is_written_before_the_first_file_and_nothing_at_all_when_off) {
  EXPECT_TRUE(on());
  EXPECT_TRUE(piece_files().empty());
  EXPECT_FALSE(fs::exists(pieces_));
  ::unsetenv("HOLDFAST_PROFILE_PIECES");
  forget_piece();
  EXPECT_FALSE(on());
  EXPECT_EQ(record_for(Interface::posix, "/a"), nullptr);
  EXPECT_FALSE(fs::exists(pieces_));
}

TEST_F(PieceTest, a_file_has_one_record_for_each_interface) {
  Record* posix = record_for(Interface::posix, "/scratch/out");
  ASSERT_NE(posix, nullptr);
  EXPECT_EQ(record_for(Interface::posix, "/scratch/out"), posix);
  EXPECT_NE(record_for(Interface::mpiio, "/scratch/out"), posix);
  EXPECT_NE(record_for(Interface::posix, "/scratch/out2"), posix);
  EXPECT_EQ(piece_files().size(), 1u);
}

TEST_F(PieceTest, sizes_places_and_alignment_are_counted_call_by_call) {
  Record& r = *record_for(Interface::posix, "/out");
  describe(r, "rs:4+2", 4096);
  access(r, true, 0, 4096);           // the beginning
  access(r, true, 4096, 4096);        // consecutive
  access(r, true, 16384, 100);        // forward, by 12288
  access(r, true, 28672, 100);        // forward, by 12288
  access(r, true, 1, 2'000'000'000);  // backward, misaligned
  access(r, false, 0, 50);
  const Log log = reduced();
  const FileUse& f = log.files.at(0);
  EXPECT_EQ(f.scheme, "rs:4+2");
  EXPECT_EQ(f.alignment, 4096u);
  const Counters& c = f.total;
  EXPECT_EQ(c.writes(), 5u);
  EXPECT_EQ(c.reads(), 1u);
  EXPECT_EQ(c[Counter::bytes_written], 2 * 4096u + 200 + 2'000'000'000u);
  EXPECT_EQ(c[Counter::writes_consecutive], 1u);
  EXPECT_EQ(c[Counter::writes_forward], 2u);
  EXPECT_EQ(c[Counter::writes_backward], 1u);
  EXPECT_EQ(c[Counter::writes_misaligned], 1u);
  EXPECT_EQ(c[Counter::reads_misaligned], 0u);
  EXPECT_EQ(c[Counter::turns], 1u);
  EXPECT_EQ(c.write_size(0), 2u);
  EXPECT_EQ(c.write_size(2), 2u);
  EXPECT_EQ(c.write_size(9), 1u);
  EXPECT_EQ(c.read_size(0), 1u);
  EXPECT_EQ(c[Counter::end_of_writes], 2'000'000'001u);
  ASSERT_FALSE(f.write_strides.empty());
  EXPECT_EQ(f.write_strides[0], (CommonValue{12288, 2}));
  EXPECT_EQ(f.write_strides[1], (CommonValue{-28671, 1}));
}

TEST_F(PieceTest, the_time_of_calls_about_a_file_is_told_by_call_and_in_all) {
  Record& r = *record_for(Interface::posix, "/out");
  const std::pair<Counter, Counter> kinds[] = {{Counter::seeks, Counter::seek_ns},     {Counter::stats, Counter::stat_ns},
                                               {Counter::views, Counter::view_ns},     {Counter::resizes, Counter::resize_ns},
                                               {Counter::renames, Counter::rename_ns}, {Counter::unlinks, Counter::unlink_ns},
                                               {Counter::mmaps, Counter::mmap_ns},     {Counter::others, Counter::other_ns}};
  uint64_t took = 1'000'000;
  for (const auto& [kind, time] : kinds) count(r, kind, 0, took *= 2);
  count(r, Counter::syncs, 0, 1'000'000);
  const Counters c = reduced().files.at(0).total;
  uint64_t all = 0;
  for (size_t i = 0; i < std::size(kinds); ++i) {
    EXPECT_EQ(c[kinds[i].first], 1u);
    EXPECT_NEAR(double(c[kinds[i].second]), std::ldexp(double(c[kinds[0].second]), int(i)), 1000) << i;
    all += c[kinds[i].second];
  }
  EXPECT_NEAR(double(all), double(c[Counter::metadata_ns]), 10);
  EXPECT_EQ(c.total_ns(), c[Counter::metadata_ns] + c[Counter::sync_ns]) << "each is counted once";
}

TEST_F(PieceTest, the_job_knows_its_mpi_and_its_number) {
  ::setenv("SLURM_JOB_ID", "4711", 1);
  record_for(Interface::mpiio, "/out");
  set_mpi("MPICH Version:      4.0.2\nMPICH Release date: today");
  EXPECT_EQ(reduced().job.mpi, "MPICH 4.0.2");
  EXPECT_EQ(reduced().job.id, "4711");
  ::unsetenv("SLURM_JOB_ID");
  set_mpi("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4");
  EXPECT_EQ(reduced().job.mpi, "Open MPI v4.1.4");
}

TEST_F(PieceTest, calls_of_mpi_that_are_not_about_files_are_counted_where_that_is_asked_for) {
  set_rank(0, 1);
  count(MpiCalls::wait, 10, 20);
  EXPECT_FALSE(reduced().processes.at(0).mpi_calls) << "nobody has asked";
  ::setenv("HOLDFAST_PROFILE_MPI", "true", 1);
  turn_on(directory_ / "asked.pieces");
  set_rank(0, 1);
  const uint64_t begin = ticks();
  count(MpiCalls::wait, begin, begin + 1'000'000);
  count(MpiCalls::wait, begin, begin + 2'000'000);
  const Log log = reduced();
  const MpiUses uses = log.processes.at(0).mpi_calls.value();
  EXPECT_EQ(uses[size_t(MpiCalls::wait)].calls, 2u);
  EXPECT_GT(uses[size_t(MpiCalls::wait)].ns, 100'000u);
  EXPECT_EQ(uses[size_t(MpiCalls::collective)], MpiUse());
}

TEST_F(PieceTest, all_algorithms_that_served_a_files_shared_pointer_are_named) {
  Record& r = *record_for(Interface::mpiio, "/out");
  const auto open_and_close = [&](const char* algorithm, Counter kind) {
    const uint64_t now = ticks();
    count(r, CountedCall{true, kind, kind, 0, 1}, now - 1, now);
    describe_pointer(r, algorithm);
  };
  open_and_close("window", Counter::writes_shared);
  open_and_close("individual", Counter::writes_ordered);
  open_and_close("window", Counter::writes_shared);
  open_and_close("single", Counter::writes_independent);  // not used by this open
  EXPECT_EQ(reduced().files.at(0).pointer, "window, individual");
  for (const char* algorithm : {"native", "process", "single"}) open_and_close(algorithm, Counter::writes_shared);
  EXPECT_EQ(reduced().files.at(0).pointer, "window, individual, native, process, single") << "there is room for all";
}

TEST_F(PieceTest, processes_whose_shared_pointers_were_served_differently_are_all_heard) {
  for (const char* algorithm : {"window", "process", "window"}) {
    forget_piece();  // the next process
    Record& r = *record_for(Interface::mpiio, "/out");
    const uint64_t now = ticks();
    count(r, CountedCall{true, Counter::writes_shared, Counter::writes_shared, 0, 1}, now - 1, now);
    describe_pointer(r, algorithm);
  }
  const std::string pointer = reduced().files.at(0).pointer;
  EXPECT_TRUE(pointer == "window, process" || pointer == "process, window") << pointer;
}

TEST_F(PieceTest, the_limits_of_sizes_belong_to_the_smaller_bucket) {
  EXPECT_EQ(size_bucket(0), 0u);
  EXPECT_EQ(size_bucket(100), 0u);
  EXPECT_EQ(size_bucket(101), 1u);
  EXPECT_EQ(size_bucket(1'000'000'000), 8u);
  EXPECT_EQ(size_bucket(1'000'000'001), 9u);
}

TEST_F(PieceTest, times_are_those_of_the_clock) {
  Record& r = *record_for(Interface::posix, "/out");
  const uint64_t begin = ticks(), begin_ns = meter_now_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const uint64_t end = ticks(), slept = meter_now_ns() - begin_ns;
  count(r, CountedCall{true, Counter::writes_collective, Counter::writes_collective, 0, 8}, begin, end);
  count(r, Counter::syncs, begin, end);
  read_both_clocks();
  const Log log = reduced();
  const Counters& c = log.files.at(0).total;
  EXPECT_NEAR(double(c[Counter::write_ns]), double(slept), 0.02 * double(slept));
  EXPECT_NEAR(double(c[Counter::sync_ns]), double(slept), 0.02 * double(slept));
  EXPECT_NEAR(double(c[Counter::slowest_write_ns]), double(slept), 0.02 * double(slept));
  EXPECT_GE(c[Counter::last_write], c[Counter::first_write] + uint64_t(0.97 * double(slept)));
}

TEST_F(PieceTest, threads_lose_no_count) {
  Record& r = *record_for(Interface::posix, "/out");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) access(*record_for(Interface::posix, "/out"), true, unknown_offset, 10);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counted(r, Counter::writes_independent), 80000u);
  EXPECT_EQ(counted(r, Counter::bytes_written), 800000u);
}

TEST_F(PieceTest, threads_that_meet_at_a_new_file_share_its_record) {
  std::vector<std::thread> threads;
  std::atomic<int> ready{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      ++ready;
      while (ready < 4) {
      }
      for (int i = 0; i < 200; ++i) access(*record_for(Interface::posix, "/out" + std::to_string(i)), true, unknown_offset, 1);
    });
  for (std::thread& thread : threads) thread.join();
  const Log log = reduced();
  EXPECT_EQ(log.files.size(), 200u);
  for (const FileUse& f : log.files) EXPECT_EQ(f.total.writes(), 4u) << f.path;
}

TEST_F(PieceTest, more_files_than_there_are_records_are_counted_together) {
  const uint64_t files = most_records + 100;
  for (uint64_t i = 0; i < files; ++i) access(*record_for(Interface::posix, "/many/" + std::to_string(i)), true, 0, 10);
  const Log log = reduced();
  EXPECT_EQ(log.files.size(), most_records + 1);
  uint64_t bytes = 0;
  for (const FileUse& f : log.files) bytes += f.total[Counter::bytes_written];
  EXPECT_EQ(bytes, 10 * files);
  EXPECT_EQ(log.files[0].path, "(other files)");
}

TEST_F(PieceTest, a_killed_process_leaves_its_counts) {
  const pid_t child = ::fork();
  if (child == 0) {
    access(*record_for(Interface::posix, "/out"), true, 0, 12345);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const Log log = reduced();
  ASSERT_EQ(log.files.size(), 1u);
  EXPECT_EQ(log.files[0].total[Counter::bytes_written], 12345u);
  EXPECT_FALSE(log.job.complete);
}

TEST_F(PieceTest, a_forked_child_counts_in_its_parents_piece) {
  Record& r = *record_for(Interface::posix, "/out");
  const pid_t child = ::fork();
  if (child == 0) {
    access(*record_for(Interface::posix, "/out"), true, 0, 7);
    access(*record_for(Interface::posix, "/childs"), true, 0, 8);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(counted(r, Counter::bytes_written), 7u);
  EXPECT_EQ(piece_files().size(), 1u);
  EXPECT_EQ(reduced().files.size(), 2u);
}

TEST_F(PieceTest, a_directory_that_cannot_be_written_turns_the_profile_off_with_one_line) {
  std::ofstream(directory_ / "file") << "not a directory";
  turn_on(directory_ / "file" / "job.pieces");
  testing::internal::CaptureStderr();
  EXPECT_EQ(record_for(Interface::posix, "/a"), nullptr);
  EXPECT_EQ(record_for(Interface::posix, "/b"), nullptr);
  EXPECT_FALSE(on());
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_NE(said.find("the job goes on without it"), std::string::npos) << said;
}

// A write into a hole that has no room behind it would be a SIGBUS.
TEST_F(PieceTest, where_there_is_no_room_for_a_record_the_file_is_not_counted_and_nothing_dies) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    if (!record_for(Interface::posix, "/first")) ::_exit(10);
    rlimit none{0, 0};
    ::setrlimit(RLIMIT_FSIZE, &none);
    if (record_for(Interface::posix, "/second")) ::_exit(11);
    ::_exit(record_for(Interface::posix, "/second") ? 12 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(PieceTest, a_trace_keeps_the_last_operations_in_order) {
  ::setenv("HOLDFAST_TRACE", "1", 1);
  turn_on(directory_ / "traced.pieces");
  Record& r = *record_for(Interface::posix, "/out");
  for (uint64_t i = 0; i < trace_slots + 10; ++i) access(r, true, i * 8, 8);
  const Log log = reduced();
  EXPECT_EQ(log.operations.size(), trace_slots);
  EXPECT_EQ(log.operations_lost, 10u);
  EXPECT_EQ(log.operations.front().offset, 80u);
  EXPECT_EQ(log.operations.back().offset, (trace_slots + 9) * 8u);
  EXPECT_EQ(log.operations.front().kind, Counter::writes_independent);
  EXPECT_LE(log.operations.front().begin_ns, log.operations.back().begin_ns);
}

TEST(TimeSteps, every_moment_of_a_year_has_one_step_that_holds_it) {
  uint32_t before = 0;
  for (uint64_t ns = 0; ns < 366ull * 86400 * 1'000'000'000; ns = ns * 17 / 16 + 1'000'000) {
    const uint32_t step = time_step(ns);
    ASSERT_LT(step, time_steps);
    ASSERT_GE(step, before);
    const Span span = span_of_step(step);
    ASSERT_LE(span.begin, ns);
    ASSERT_LT(ns, span.begin + span.length) << step;
    before = step;
  }
  for (uint32_t step = 1; step < time_steps; ++step)
    ASSERT_EQ(span_of_step(step).begin, span_of_step(step - 1).begin + span_of_step(step - 1).length) << step;
}

TEST_F(PieceTest, the_time_line_of_a_job_adds_up_to_its_bytes) {
  Record& r = *record_for(Interface::posix, "/out");
  const uint64_t per_second = uint64_t(4294967296.0 * 1e9 / double(live::ns_per_tick_shifted));
  for (uint64_t second : {0, 1, 5, 100, 3600})
    count(r, CountedCall{true, Counter::writes_independent, Counter::writes_independent, 0, 1000}, live::start_ticks + second * per_second,
          live::start_ticks + second * per_second + 1000);
  const Log log = reduced();
  ASSERT_EQ(log.time_line.rows.size(), 1u);
  uint64_t bytes = 0, filled = 0;
  for (uint64_t step : log.time_line.rows[0].written) bytes += step, filled += step != 0;
  EXPECT_EQ(bytes, 5000u);
  EXPECT_EQ(filled, 3u) << "0, 1 and 5 s fall together in an hour's line";
  EXPECT_LE(log.time_line.rows[0].written.size(), 2 * first_steps);
}

TEST_F(PieceTest, a_damaged_piece_makes_no_log_worse) {
  access(*record_for(Interface::posix, "/out"), true, 0, 5);
  const fs::path whole = piece_files().at(0);
  std::ifstream in(whole, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  auto read_bytes = [](const std::string& text) {
    return read_piece([&](uint64_t offset, ByteSpan into) {
      if (offset + into.size() > text.size()) return false;
      std::memcpy(into.data(), text.data() + offset, into.size());
      return true;
    });
  };
  EXPECT_TRUE(read_bytes(bytes));
  for (size_t length : {size_t(0), size_t(7), size_t(4095), size_t(4096), size_t(60000), bytes.size() - 1}) {
    auto piece = read_bytes(bytes.substr(0, length));
    if (piece) (void)reduce(Job(), {});
  }
  uint64_t state = 1;
  for (int round = 0; round < 300; ++round) {  // whatever stands in it, reading it ends, and makes a log
    std::string changed = bytes;
    for (int i = 0; i < 8; ++i) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      changed[(state >> 33) % (i < 4 ? 4096 : changed.size())] = char(state >> 56);
    }
    if (auto piece = read_bytes(changed)) {
      std::vector<LeftPiece> pieces;
      pieces.push_back(std::move(*piece));
      const Log log = reduce(Job(), pieces);
      EXPECT_TRUE(from_json_text(to_json_text(log)));
    }
  }
}

}  // namespace
}  // namespace holdfast::profile
