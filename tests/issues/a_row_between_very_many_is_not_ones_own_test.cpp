// The lone opener has written more rows here and there than it remembers one by one: from then on the rows between them count as written, too.
// What another opener had committed to such a row was not read, though its journal was known; the row was read as it lay in its place.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

TEST(Issue, a_row_between_very_many_is_not_ones_own) {
  World world("mirror:1", layout::Placement::separate, 1);
  const uint64_t row_bytes = world.identity.geometry.row_bytes(), count = (1 << 16) + 2;
  auto job = exchange::make_solo(), alone = exchange::make_solo();
  auto file = world.open(*job, true);
  ASSERT_TRUE(file.ok()) << file.status().sentence();
  ASSERT_TRUE((*file)->set_size((count + 2) * row_bytes).ok());
  const Extent theirs{row_bytes + 100, 100};
  auto other = world.open(*alone);
  ASSERT_TRUE(other.ok() && (*other)->write({&theirs, 1}, Bytes(theirs.length, std::byte(8))).ok() && (*other)->close().ok());
  // Row 0, then from the last to row 2, so that no two follow each other.
  const Bytes mine(row_bytes, std::byte(7));
  for (uint64_t row = 0; row != 1; row = (row ? row : count + 2) - 1) {
    const Extent here{row * row_bytes, row_bytes};
    ASSERT_TRUE((*file)->write({&here, 1}, mine).ok());
  }
  // It comes to know of the journal when a block does not verify.
  for (const std::string& name : world.directories[0]->object_names())
    if (name.find("/unit") != std::string::npos) world.directories[0]->flip_bit(name, (2 * row_bytes + 5) * 8);
  Bytes seen(row_bytes);
  const Extent damaged{2 * row_bytes, row_bytes};
  EXPECT_FALSE((*file)->read({&damaged, 1}, seen).ok());
  seen.resize(theirs.length);
  ASSERT_TRUE((*file)->read({&theirs, 1}, seen).ok());
  EXPECT_EQ(seen, Bytes(theirs.length, std::byte(8)));
}

}  // namespace
}  // namespace holdfast::sim
