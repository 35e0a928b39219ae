// Two ranks of the lone opener write one row whole: its units may be of both, and its commit codes it once more as it lies. Where another
// opener had committed a part of that row by journal, the journal's row was taken for what lay there: all but that part became zeros.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast {
namespace {

constexpr uint64_t row_bytes = 8192, part_begin = 50, part_bytes = 100;

// What the row holds after both have closed.
Bytes row_of(uint64_t seed) {
  sim::World world("rs:2+1");
  sim::on_ranks(2, seed, [&](int rank, exchange::Exchange& ranks) {
    auto lone = *world.open(ranks, true);
    const Bytes whole(row_bytes, std::byte(1 + rank));
    const Extent row{0, row_bytes};
    EXPECT_TRUE(lone->write({&row, 1}, whole).ok());
    ranks.barrier();
    if (rank == 0) {
      auto alone = exchange::make_solo();
      auto other = *world.open(*alone);
      const Bytes part(part_bytes, std::byte(9));
      const Extent place{part_begin, part_bytes};
      EXPECT_TRUE(other->write({&place, 1}, part).ok() && other->close().ok());
    }
    ranks.barrier();
    EXPECT_TRUE(lone->close().ok());
  });
  auto alone = exchange::make_solo();
  auto reader = *world.open(*alone, false, false);
  Bytes seen(row_bytes);
  const Extent row{0, row_bytes};
  EXPECT_TRUE(reader->read({&row, 1}, seen).ok());
  return seen;
}

TEST(Issue, a_row_that_two_ranks_wrote_whole_keeps_it_beside_another_opener) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Bytes seen = row_of(seed);
    for (uint64_t at = 0; at < row_bytes; ++at) {
      const bool others = at >= part_begin && at < part_begin + part_bytes;
      ASSERT_TRUE(others ? seen[at] == std::byte(9) : seen[at] == std::byte(1) || seen[at] == std::byte(2))
          << "seed " << seed << ": byte " << at << " is " << int(seen[at]);
    }
  }
}

}  // namespace
}  // namespace holdfast
