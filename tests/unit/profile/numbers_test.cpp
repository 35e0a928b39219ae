// Which descriptors lead to counted files: as the kernel's descriptors and descriptions do.
#include "profile/numbers.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "profile/piece_layout.hpp"

namespace holdfast::profile {
namespace {

class NumbersTest : public ::testing::Test {
 protected:
  void TearDown() override { numbers::end_range(0, ~0u); }
  Record* record(int which) { return reinterpret_cast<Record*>(uintptr_t(4096) * uintptr_t(which + 1)); }  // never looked into
  static Record* at(int fd) {
    const OpenedFile* file = numbers::find(fd);
    return file ? file->record.load() : nullptr;
  }
};

TEST_F(NumbersTest, nothing_is_known_of_a_number_before_it_is_opened_and_after_it_is_closed) {
  EXPECT_EQ(numbers::find(7), nullptr);
  numbers::begin(7, record(1), 0, -1);
  EXPECT_EQ(at(7), record(1));
  numbers::end(7);
  EXPECT_EQ(numbers::find(7), nullptr);
  numbers::leave_out(7);
  EXPECT_EQ(numbers::find(7), &numbers::not_counted);
  numbers::end(7);
  EXPECT_EQ(numbers::find(7), nullptr);
}

TEST_F(NumbersTest, duplicates_share_their_position_and_outlive_the_first) {
  numbers::begin(3, record(1), 10, -1);
  numbers::share(3, 9);
  numbers::find(9)->position = 20;
  EXPECT_EQ(numbers::find(3)->position, 20);
  numbers::end(3);
  ASSERT_EQ(at(9), record(1));
  // The number is given anew: another file, another place in memory.
  numbers::begin(3, record(2), 0, -1);
  EXPECT_EQ(at(9), record(1));
  EXPECT_EQ(numbers::find(9)->position, 20);
  EXPECT_EQ(at(3), record(2));
}

TEST_F(NumbersTest, a_duplicate_over_another_file_ends_that) {
  numbers::begin(3, record(1), 0, -1);
  numbers::begin(4, record(2), 0, -1);
  OpenedFile* const second = numbers::find(4);
  numbers::share(3, 4);
  EXPECT_EQ(at(4), record(1));
  EXPECT_EQ(second->numbers, 0u);
  EXPECT_EQ(numbers::find(3)->numbers, 2u);
  numbers::share(3, 3);
  EXPECT_EQ(numbers::find(3)->numbers, 2u);
  numbers::leave_out(5);
  numbers::share(5, 3);
  EXPECT_EQ(numbers::find(3), &numbers::not_counted);
  EXPECT_EQ(numbers::find(4)->numbers, 1u);
}

TEST_F(NumbersTest, an_open_over_a_number_that_was_closed_unseen_replaces_it) {
  numbers::begin(3, record(1), 0, -1);
  numbers::begin(3, record(2), 5, -1);
  EXPECT_EQ(at(3), record(2));
  EXPECT_EQ(numbers::find(3)->position, 5);
  EXPECT_EQ(numbers::find(3)->numbers, 1u);
}

TEST_F(NumbersTest, a_range_is_closed_and_nothing_beside_it) {
  for (int fd = 3; fd < 9; ++fd) numbers::begin(fd, record(fd), 0, -1);
  numbers::end_range(4, 6);
  for (int fd = 3; fd < 9; ++fd) EXPECT_EQ(at(fd), fd < 4 || fd > 6 ? record(fd) : nullptr) << fd;
  numbers::end_range(0, ~0u);
  for (int fd = 3; fd < 9; ++fd) EXPECT_EQ(numbers::find(fd), nullptr) << fd;
}

TEST_F(NumbersTest, numbers_beyond_the_table_are_left_out) {
  EXPECT_EQ(numbers::begin(most_numbers, record(1), 0, -1), nullptr);
  EXPECT_EQ(numbers::find(most_numbers), &numbers::not_counted);
  EXPECT_EQ(numbers::find(-1), &numbers::not_counted);
  numbers::begin(3, record(1), 0, -1);
  numbers::share(3, most_numbers);
  numbers::share(most_numbers, 3);
  EXPECT_EQ(at(3), nullptr);
  numbers::end(-1);
}

// Each thread has numbers of its own, as the kernel gives them, and duplicates one that another thread closes meanwhile.
TEST_F(NumbersTest, threads_that_open_share_and_close_lose_nothing) {
  constexpr int threads = 4, turns = 5000;
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      const int mine = 100 + t, copy = 200 + t, others = 100 + (t + 1) % threads;
      for (int i = 0; i < turns; ++i) {
        numbers::begin(mine, record(t), i, -1);
        numbers::share(others, copy);
        const OpenedFile* const file = numbers::find(mine);
        ASSERT_EQ(file->record.load(), record(t));
        ASSERT_GE(file->numbers.load(), 1u);
        numbers::end(mine);
        numbers::end(copy);
      }
    });
  for (std::thread& thread : running) thread.join();
  // All are free again: as many as there are numbers can be taken.
  for (int fd = 0; fd < most_numbers; ++fd) ASSERT_NE(numbers::begin(fd, record(1), 0, -1), nullptr) << fd;
  for (int fd = 0; fd < most_numbers; ++fd) ASSERT_EQ(numbers::find(fd)->numbers, 1u) << fd;
}

}  // namespace
}  // namespace holdfast::profile
