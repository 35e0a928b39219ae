// Another opener has committed a part of a row, and then this one writes the row whole, not knowing of it. Once it knows, for a block
// elsewhere did not verify, it still reads its own bytes: they are the later ones.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

TEST(Issue, a_writer_reads_its_whole_rows_beside_a_commit) {
  World world("mirror:2", layout::Placement::separate, 2);
  const uint64_t row_bytes = world.identity.geometry.row_bytes();
  const Extent row{0, row_bytes}, second{row_bytes, row_bytes}, both{0, 2 * row_bytes}, part{100, 200};
  const Bytes ours(row_bytes, std::byte(7)), theirs(part.length, std::byte(9));
  auto job = exchange::make_solo(), another = exchange::make_solo();
  auto file = world.open(*job, true);
  ASSERT_TRUE(file.ok()) << file.status().sentence();
  ASSERT_TRUE((*file)->set_size(both.length).ok());
  ASSERT_TRUE((*file)->write({&second, 1}, ours).ok());
  auto other = world.open(*another);
  ASSERT_TRUE(other.ok()) << other.status().sentence();
  ASSERT_TRUE((*other)->write({&part, 1}, theirs).ok());
  ASSERT_TRUE((*other)->close().ok());
  ASSERT_TRUE((*file)->write({&row, 1}, ours).ok());
  for (auto& directory : world.directories)
    for (const std::string& name : directory->object_names())
      if (name.find("/unit") != std::string::npos) directory->flip_bit(name, (row_bytes + 5) * 8);
  Bytes seen(both.length);
  (void)(*file)->read({&both, 1}, seen);
  seen.resize(row_bytes);
  ASSERT_TRUE((*file)->read({&row, 1}, seen).ok());
  EXPECT_EQ(seen, ours);
}

}  // namespace
}  // namespace holdfast::sim
