// A killed writer had written a whole row beyond the size that was synced. A later writer grew the file to a size within that row and then
// wrote behind it: the killed one's bytes appeared where zeros were promised.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

TEST(Cut, hides_what_a_killed_writer_left_behind_it) {
  World world("rs:2+1");
  auto solo = exchange::make_solo();
  auto killed = world.open(*solo, true);
  ASSERT_TRUE(killed.ok()) << killed.status().sentence();
  const uint64_t row = (*killed)->located().manifest.geometry.row_bytes();
  const Bytes whole(3 * row, std::byte(7));
  const Extent first{0, whole.size()};
  ASSERT_TRUE((*killed)->write({&first, 1}, whole).ok());
  killed->reset();  // its locks go, and nothing was committed

  auto file = world.open(*solo, true);
  ASSERT_TRUE(file.ok()) << file.status().sentence();
  const uint64_t cut = 2 * row + row / 3;
  ASSERT_TRUE((*file)->set_size(cut).ok());
  const Bytes one(1, std::byte(9));
  const Extent behind{4 * row, 1};
  ASSERT_TRUE((*file)->write({&behind, 1}, one).ok());
  ASSERT_TRUE((*file)->sync().ok());
  Bytes read(behind.offset - cut, std::byte(1));
  const Extent between{cut, read.size()};
  auto got = (*file)->read({&between, 1}, read);
  ASSERT_TRUE(got.ok()) << got.status().sentence();
  EXPECT_EQ(read, Bytes(read.size()));
  EXPECT_TRUE((*file)->close().ok());
}

}  // namespace
}  // namespace holdfast::sim
