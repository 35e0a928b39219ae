// The parts of a file that are locked, as fcntl(2) keeps them.
#include <gtest/gtest.h>

#include <unistd.h>

#include "file/coordinated/held_locks.hpp"

namespace holdfast::file {
namespace {

using Range = HeldRanges::Range;

struct flock lock(short type, int64_t start, int64_t length) {
  struct flock made {};
  made.l_type = type, made.l_whence = SEEK_SET, made.l_start = start, made.l_len = length;
  return made;
}

TEST(HeldRanges, are_by_the_newest_lock) {
  HeldRanges held;
  held.set(lock(F_RDLCK, 0, 100));
  held.set(lock(F_WRLCK, 40, 10));
  EXPECT_EQ(held.all(), (std::vector<Range>{{0, 40, F_RDLCK}, {50, 100, F_RDLCK}, {40, 50, F_WRLCK}}));
  held.set(lock(F_UNLCK, 45, 20));
  EXPECT_EQ(held.all(), (std::vector<Range>{{0, 40, F_RDLCK}, {65, 100, F_RDLCK}, {40, 45, F_WRLCK}}));
  held.set(lock(F_UNLCK, 0, 0));
  EXPECT_TRUE(held.all().empty());
}

TEST(HeldRanges, reach_to_the_end_and_backwards) {
  HeldRanges held;
  held.set(lock(F_WRLCK, 10, 0));
  EXPECT_EQ(held.all(), (std::vector<Range>{{10, HeldRanges::to_the_end, F_WRLCK}}));
  EXPECT_EQ(as_lock(held.all()[0]).l_len, 0);
  held.set(lock(F_WRLCK, 10, -4));
  EXPECT_EQ(held.all()[1], (Range{6, 10, F_WRLCK}));
  EXPECT_EQ(as_lock(held.all()[1]).l_len, 4);
}

}  // namespace
}  // namespace holdfast::file
