// MPI_File_set_atomicity on a file that this opener had not written yet: sizes and bytes that another opener had synced since the open were not
// looked at, although calls are atomic with that opener's from then on.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

TEST(AtomicMode, begins_with_what_others_have_synced) {
  World world("rs:2+1");
  auto one = exchange::make_solo(), other = exchange::make_solo();
  auto file = world.open(*one, true);
  ASSERT_TRUE(file.ok()) << file.status().sentence();
  auto theirs = world.open(*other);
  ASSERT_TRUE(theirs.ok()) << theirs.status().sentence();
  ASSERT_TRUE((*theirs)->set_size(12345).ok());
  ASSERT_TRUE((*theirs)->close().ok());
  ASSERT_TRUE((*file)->set_atomic(true).ok());
  EXPECT_EQ(*(*file)->agreed_size(), 12345u);
  EXPECT_TRUE((*file)->close().ok());
}

}  // namespace
}  // namespace holdfast::sim
