// A rank that has read a hole, and then reads collectively: another rank has written the whole row there meanwhile, by itself.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

TEST(Issue, a_collective_read_sees_rows_that_others_wrote_whole) {
  World world("rs:2+1");
  const uint64_t row_bytes = world.identity.geometry.row_bytes();
  const Bytes data(row_bytes, std::byte(7));
  on_ranks(2, 1, [&](int rank, exchange::Exchange& ranks) {
    auto file = world.open(ranks, true);
    ASSERT_TRUE(file.ok()) << file.status().sentence();
    ASSERT_TRUE((*file)->set_size(4 * row_bytes).ok());
    Bytes seen(row_bytes);
    const Extent row{row_bytes, row_bytes};
    if (rank == 1) {
      ASSERT_TRUE((*file)->read(std::span(&row, 1), seen).ok());
    }
    ranks.barrier();
    if (rank == 0) {
      ASSERT_TRUE((*file)->write(std::span(&row, 1), data).ok());
    }
    const auto got = (*file)->read_all(std::span(&row, 1), seen);
    ASSERT_TRUE(got.ok()) << got.status().sentence();
    EXPECT_EQ(*got, row_bytes);
    EXPECT_EQ(seen, data) << "on rank " << rank;
    EXPECT_TRUE((*file)->close().ok());
  });
}

}  // namespace
}  // namespace holdfast::sim
