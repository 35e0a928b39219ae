// Another opener has committed a part of a row, then this one writes the row whole, then a third one commits another part of it. The third
// one's journal vouched for both parts, as of its own time: at this one's commit the first part, which is older, went over its row.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

const Extent earlier{100, 200}, later{500, 100};

void commit(World& world, const Extent& part, std::byte value) {
  auto alone = exchange::make_solo();
  auto opened = world.open(*alone);
  ASSERT_TRUE(opened.ok()) << opened.status().sentence();
  ASSERT_TRUE((*opened)->write({&part, 1}, Bytes(part.length, value)).ok());
  ASSERT_TRUE((*opened)->close().ok());
}

// As the file must be from then on, and as its writer sees it before that.
Bytes expected(uint64_t row_bytes) {
  Bytes bytes(row_bytes, std::byte(7));
  std::fill_n(bytes.begin() + later.offset, later.length, std::byte(9));
  return bytes;
}

TEST(Issue, a_whole_row_goes_over_what_was_committed_before_it) {
  World world("mirror:2", layout::Placement::separate, 2);
  const uint64_t row_bytes = world.identity.geometry.row_bytes();
  const Extent row{0, row_bytes};
  auto job = exchange::make_solo(), alone = exchange::make_solo();
  auto file = world.open(*job, true);
  ASSERT_TRUE(file.ok()) << file.status().sentence();
  ASSERT_TRUE((*file)->set_size(row_bytes).ok());
  commit(world, earlier, std::byte(8));
  ASSERT_TRUE((*file)->write({&row, 1}, Bytes(row_bytes, std::byte(7))).ok());
  commit(world, later, std::byte(9));
  ASSERT_TRUE((*file)->close().ok());
  auto reader = world.open(*alone, false, false);
  ASSERT_TRUE(reader.ok()) << reader.status().sentence();
  Bytes seen(row_bytes);
  ASSERT_TRUE((*reader)->read({&row, 1}, seen).ok());
  EXPECT_EQ(seen, expected(row_bytes));
}

// Before its commit it comes to know of the two journals, for a block elsewhere does not verify.
TEST(Issue, a_whole_row_is_read_over_what_was_committed_before_it) {
  World world("mirror:2", layout::Placement::separate, 2);
  const uint64_t row_bytes = world.identity.geometry.row_bytes();
  const Extent row{0, row_bytes}, second{row_bytes, row_bytes}, both{0, 2 * row_bytes};
  auto job = exchange::make_solo();
  auto file = world.open(*job, true);
  ASSERT_TRUE(file.ok()) << file.status().sentence();
  ASSERT_TRUE((*file)->set_size(both.length).ok());
  ASSERT_TRUE((*file)->write({&second, 1}, Bytes(row_bytes, std::byte(7))).ok());
  commit(world, earlier, std::byte(8));
  ASSERT_TRUE((*file)->write({&row, 1}, Bytes(row_bytes, std::byte(7))).ok());
  commit(world, later, std::byte(9));
  for (auto& directory : world.directories)
    for (const std::string& name : directory->object_names())
      if (name.find("/unit") != std::string::npos) directory->flip_bit(name, (row_bytes + 5) * 8);
  Bytes seen(both.length);
  (void)(*file)->read({&both, 1}, seen);
  seen.resize(row_bytes);
  ASSERT_TRUE((*file)->read({&row, 1}, seen).ok());
  EXPECT_EQ(seen, expected(row_bytes));
}

}  // namespace
}  // namespace holdfast::sim
