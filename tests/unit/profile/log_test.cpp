#include "profile/log.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "unit/profile/example_log.hpp"

namespace holdfast::profile {
namespace {

Result<Log> decoded(const std::string& bytes) { return decode(std::as_bytes(std::span(bytes.data(), bytes.size()))); }

TEST(Log, what_was_written_is_read) {
  const Log log = example_log();
  auto back = decoded(encode(log));
  ASSERT_TRUE(back) << back.status().sentence();
  EXPECT_EQ(to_json_text(*back), to_json_text(log));
  EXPECT_EQ(back->job.command, log.job.command);
  EXPECT_EQ(back->files.at(0).path, log.files.at(0).path);
  EXPECT_EQ(back->files.at(0).total, log.files.at(0).total);
  EXPECT_EQ(back->files.at(0).ranks.at(1).counters, log.files.at(0).ranks.at(1).counters);
  EXPECT_EQ(back->files.at(0).write_strides, log.files.at(0).write_strides);
  EXPECT_EQ(back->time_line.rows.at(1).written, log.time_line.rows.at(1).written);
  EXPECT_EQ(back->operations.at(0).offset, log.operations.at(0).offset);
  EXPECT_EQ(back->job.exit_code, 137);
}

TEST(Log, facts_that_older_logs_lack_are_read_where_they_are) {
  Log log = example_log();
  EXPECT_EQ(to_json_text(log).find("\"mpi\""), std::string::npos) << "what is not known is not there";
  log.job.id = "4711.batch";
  log.job.mpi = "MPICH 4.0.2";
  log.processes.at(1).mpi_calls.emplace().at(size_t(MpiCalls::window)) = {7, 8};
  auto back = decoded(encode(log));
  ASSERT_TRUE(back) << back.status().sentence();
  EXPECT_FALSE(back->processes.at(0).mpi_calls);
  EXPECT_EQ(back->processes.at(1).mpi_calls, log.processes.at(1).mpi_calls);
  EXPECT_EQ(back->job.id, "4711.batch");
  EXPECT_EQ(back->job.mpi, "MPICH 4.0.2");
}

TEST(Log, every_length_short_of_the_whole_is_one_clear_sentence) {
  const std::string whole = encode(example_log());
  for (size_t length = 0; length < whole.size(); ++length) {
    auto log = decoded(whole.substr(0, length));
    ASSERT_FALSE(log) << length;
    ASSERT_EQ(log.status().sentence().find('\n'), std::string::npos);
  }
  EXPECT_NE(decoded(whole.substr(0, whole.size() - 10)).status().sentence().find("10 of its"), std::string::npos);
  EXPECT_FALSE(decoded(whole + "x"));
}

TEST(Log, every_turned_bit_is_noticed) {
  const std::string whole = encode(example_log());
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string changed = whole;
    changed[bit / 8] = char(changed[bit / 8] ^ (1 << bit % 8));
    ASSERT_FALSE(decoded(changed)) << "bit " << bit;
  }
}

TEST(Log, what_is_no_log_and_what_is_too_new_say_so) {
  EXPECT_NE(decoded("#!/bin/sh\nexit 0\n").status().sentence().find("no log of a job"), std::string::npos);
  std::string newer = encode(example_log());
  newer[8] = 2;
  EXPECT_EQ(decoded(newer).status().kind(), Kind::version);
}

TEST(Log, unknown_fields_are_passed_over_and_missing_counters_are_zero) {
  std::string text = to_json_text(example_log());
  text.replace(text.find("\"opens\":"), 8, "\"novel\":");
  auto log = from_json_text(text);
  ASSERT_TRUE(log) << log.status().sentence();
  EXPECT_EQ(log->files[0].total[Counter::opens], 0u);
}

TEST(Log, the_reader_behind_the_checksum_survives_any_text) {
  const char* words[] = {"-1",   "null", "[]", "{}", "1e400", "18446744073709551616", "\"x\"", "[[[[[[[[", "}}", "4294967296", "-9223372036854775808",
                         "true", ",",    "1.5"};
  const std::string text = to_json_text(example_log());
  std::mt19937_64 random(7);
  int accepted = 0;
  for (int round = 0; round < 8000; ++round) {
    std::string changed = text;
    for (uint64_t times = 1 + random() % 3; times; --times) {
      const size_t at = random() % changed.size();
      switch (random() % 5) {
        case 0: changed[at] = char(random()); break;
        case 1: changed.erase(at, random() % 20); break;
        case 2: changed.insert(at, words[random() % std::size(words)]); break;
        default:
          if (const size_t colon = changed.find(':', at); colon != std::string::npos) {
            const size_t end = changed.find_first_of(",]}", colon);
            changed.replace(colon + 1, (end == std::string::npos ? changed.size() : end) - colon - 1, words[random() % std::size(words)]);
          }
      }
    }
    auto log = from_json_text(changed);
    accepted += log.ok();
    if (!log) ASSERT_EQ(log.status().kind(), Kind::corrupt);
    else (void)to_json_text(*log);
  }
  EXPECT_GT(accepted, 50);
  EXPECT_LT(accepted, 7000);
}

TEST(Log, a_size_that_lies_takes_no_memory) {
  std::string whole = encode(example_log());
  for (int byte = 16; byte < 20; ++byte) whole[size_t(byte)] = char(0xff);
  EXPECT_FALSE(decoded(whole));
}

TEST(Counters, of_several_ranks_are_added_or_the_extreme) {
  Counters a, b;
  a[Counter::opens] = 2, b[Counter::opens] = 3;
  a[Counter::slowest_write_ns] = 50, b[Counter::slowest_write_ns] = 7;
  b[Counter::first_open] = 9;  // a has none
  a.merge(b);
  EXPECT_EQ(a[Counter::opens], 5u);
  EXPECT_EQ(a[Counter::slowest_write_ns], 50u);
  EXPECT_EQ(a[Counter::first_open], 9u);
  b[Counter::first_open] = 4;
  a.merge(b);
  EXPECT_EQ(a[Counter::first_open], 4u);
}

}  // namespace
}  // namespace holdfast::profile
