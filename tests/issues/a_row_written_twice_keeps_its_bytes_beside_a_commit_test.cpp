// Two ranks wrote a row whole, and another opener committed a part of it, which waits in a journal. At the commit of the first two the row
// was coded again as it lay in that journal: without their bytes.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

TEST(Issue, a_row_written_twice_keeps_its_bytes_beside_a_commit) {
  World world("mirror:2", layout::Placement::separate, 2);
  const uint64_t row_bytes = world.identity.geometry.row_bytes();
  const Extent row{0, row_bytes}, part{100, 200};
  const Bytes ours(row_bytes, std::byte(7)), theirs(part.length, std::byte(9));
  on_ranks(2, 1, [&](int rank, exchange::Exchange& ranks) {
    auto file = world.open(ranks, true);
    ASSERT_TRUE(file.ok()) << file.status().sentence();
    ASSERT_TRUE((*file)->set_size(row_bytes).ok());
    ASSERT_TRUE((*file)->write({&row, 1}, ours).ok());
    ranks.barrier();
    if (rank == 0) {
      auto alone = exchange::make_solo();
      auto other = world.open(*alone);
      ASSERT_TRUE(other.ok()) << other.status().sentence();
      ASSERT_TRUE((*other)->write({&part, 1}, theirs).ok());
      ASSERT_TRUE((*other)->close().ok());
    }
    ranks.barrier();
    ASSERT_TRUE((*file)->close().ok());
  });
  auto alone = exchange::make_solo();
  auto reader = world.open(*alone, false, false);
  ASSERT_TRUE(reader.ok()) << reader.status().sentence();
  Bytes seen(row_bytes);
  ASSERT_TRUE((*reader)->read({&row, 1}, seen).ok());
  for (uint64_t at = 0; at < row_bytes; ++at) {
    if (at < part.offset || at >= part.end()) {
      ASSERT_EQ(seen[at], std::byte(7)) << at;
    }
  }
}

}  // namespace
}  // namespace holdfast::sim
