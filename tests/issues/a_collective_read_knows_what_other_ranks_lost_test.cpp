// A rank wrote a row whole, lost a target, and wrote the row once more. Another rank, which had that target still, read the row there in its next
// collective read: both records were of one generation, and the old one was as good as the new one.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

class LossOfOneRank : public testing::TestWithParam<const char*> {};

TEST_P(LossOfOneRank, shows_in_the_next_collective_read) {
  for (int lost = 0; lost < World(GetParam()).identity.geometry.members; ++lost) {
    World world(GetParam());
    const uint64_t row = world.identity.geometry.row_bytes();
    on_ranks(2, uint64_t(lost), [&](int rank, exchange::Exchange& ranks) {
      auto file = world.open(ranks, true);
      ASSERT_TRUE(file.ok()) << file.status().sentence();
      const auto write = [&](int value) {
        const Bytes bytes(row, std::byte(value));
        const Extent extent{2 * row, bytes.size()};
        EXPECT_TRUE((*file)->write({&extent, 1}, bytes).ok());
      };
      if (rank == 1) {
        write(1);
        world.gate->fail_on_rank(lost, rank, Kind::no_space);
        write(2);
      }
      Bytes seen(row);
      const Extent extent{2 * row, row};
      bool more = false;
      auto got = (*file)->read_all({&extent, 1}, seen, more);
      ASSERT_TRUE(got.ok()) << got.status().sentence();
      EXPECT_EQ(seen, Bytes(row, std::byte(2))) << "rank " << rank << ", which " << (rank ? "has lost target " : "has not lost target ") << lost;
      EXPECT_TRUE((*file)->close().ok());
    });
    ASSERT_FALSE(HasFailure());
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, LossOfOneRank, testing::Values("mirror:2", "mirror:3", "rs:2+1", "rs:4+2"),
                         [](const auto& info) { return identifier_of(info.param); });

}  // namespace
}  // namespace holdfast::sim
