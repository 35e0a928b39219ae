// The lone opener has written a row whole, and another opener commits every other byte of it: more parts than one journal entry has room for.
// It vouched for all from the first to the last part then, and the lone opener's bytes between them became zeros.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

TEST(Issue, a_commit_in_many_parts_vouches_for_no_byte_between_them) {
  World world("mirror:2", layout::Placement::separate, 2, 1 << 15);
  const uint64_t row_bytes = world.identity.geometry.row_bytes();
  const Extent row{0, row_bytes};
  auto job = exchange::make_solo(), another = exchange::make_solo(), third = exchange::make_solo();
  auto file = world.open(*job, true);
  ASSERT_TRUE(file.ok()) << file.status().sentence();
  ASSERT_TRUE((*file)->set_size(row_bytes).ok());
  ASSERT_TRUE((*file)->write({&row, 1}, Bytes(row_bytes, std::byte(7))).ok());
  auto other = world.open(*another);
  ASSERT_TRUE(other.ok()) << other.status().sentence();
  std::vector<Extent> every_other;
  for (uint64_t at = 0; at < row_bytes; at += 2) every_other.push_back({at, 1});
  ASSERT_TRUE((*other)->write(every_other, Bytes(every_other.size(), std::byte(9))).ok());
  ASSERT_TRUE((*other)->close().ok());
  ASSERT_TRUE((*file)->close().ok());
  auto reader = world.open(*third, false, false);
  ASSERT_TRUE(reader.ok()) << reader.status().sentence();
  Bytes seen(row_bytes);
  ASSERT_TRUE((*reader)->read({&row, 1}, seen).ok());
  for (uint64_t at = 0; at < row_bytes; ++at) ASSERT_EQ(seen[at], std::byte(at % 2 ? 7 : 9)) << at;
}

}  // namespace
}  // namespace holdfast::sim
