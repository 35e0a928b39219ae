// A writer lost a member between two writes of the same row, which have one generation. A reader that had opened the file before took
// the old record there for the row's, and gave the row up.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

TEST(Issue, a_reader_leaves_a_member_that_missed_rewrites) {
  World world("rs:2+1");
  auto job = exchange::make_solo(), other = exchange::make_solo();
  auto writer = world.open(*job, true);
  ASSERT_TRUE(writer.ok()) << writer.status().sentence();
  const Bytes first(world.identity.geometry.row_bytes(), std::byte(7)), second(first.size(), std::byte(9));
  const Extent row{0, first.size()};
  ASSERT_TRUE((*writer)->set_size(row.length).ok());
  auto reader = world.open(*other, false, false);
  ASSERT_TRUE(reader.ok()) << reader.status().sentence();
  ASSERT_TRUE((*writer)->write({&row, 1}, first).ok());
  world.gate->fail(0, Kind::io);
  ASSERT_TRUE((*writer)->write({&row, 1}, second).ok());
  world.gate->heal(0);
  ASSERT_TRUE((*writer)->close().ok());
  Bytes seen(row.length);
  auto got = (*reader)->read({&row, 1}, seen);
  ASSERT_TRUE(got.ok()) << got.status().sentence();
  for (std::byte byte : seen) ASSERT_TRUE(byte == std::byte(7) || byte == std::byte(9));  // the reader has not synced: either
  ASSERT_TRUE((*reader)->sync().ok());
  got = (*reader)->read({&row, 1}, seen);
  ASSERT_TRUE(got.ok()) << got.status().sentence();
  EXPECT_EQ(seen, second);
}

}  // namespace
}  // namespace holdfast::sim
