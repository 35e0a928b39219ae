// A sync that failed for want of targets dropped the parts that it had handed on: the program's own reads gave zeros, and a later sync
// that worked left them out.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

Result<Bytes> read_back(engine::ProtectedFile& file, const Extent& extent) {
  Bytes bytes(extent.length);
  auto got = file.read({&extent, 1}, bytes);
  if (!got.ok()) return got.status();
  return bytes;
}

TEST(SyncThatFails, keeps_what_was_written) {
  World world("rs:2+1");
  auto solo = exchange::make_solo();
  auto file = world.open(*solo, true);
  ASSERT_TRUE(file.ok()) << file.status().sentence();
  const Bytes data(500, std::byte(7));
  const Extent part{100, data.size()};
  ASSERT_TRUE((*file)->write({&part, 1}, data).ok());
  world.gate->fail(0, Kind::io);
  world.gate->fail(1, Kind::io);
  EXPECT_FALSE((*file)->sync().ok());
  auto seen = read_back(**file, part);
  ASSERT_TRUE(seen.ok()) << seen.status().sentence();
  EXPECT_EQ(*seen, data);
}

// Whichever call fails: what the program reads back is what it wrote, or a refusal where no target is left, and never anything else.
TEST(SyncThatFails, never_makes_zeros_of_it) {
  for (int64_t n = 1; n < 40; ++n) {
    SCOPED_TRACE("the member fails at call " + std::to_string(n));
    World world("mirror:2", layout::Placement::separate, 2);
    auto solo = exchange::make_solo();
    auto file = world.open(*solo, true);
    ASSERT_TRUE(file.ok()) << file.status().sentence();
    const Bytes data(5000, std::byte(7));
    const Extent part{100, data.size()};
    ASSERT_TRUE((*file)->write({&part, 1}, data).ok());
    world.gate->fail_later(0, n, Kind::no_space);
    const Status first = (*file)->sync();
    EXPECT_TRUE(first.ok()) << first.sentence();  // one of two may be lost
    auto seen = read_back(**file, part);
    ASSERT_TRUE(seen.ok()) << seen.status().sentence();
    EXPECT_EQ(*seen, data);
    world.gate->fail_later(1, n, Kind::no_space);
    const Bytes more(700, std::byte(9));
    const Extent second{3000, more.size()};
    ASSERT_TRUE((*file)->write({&second, 1}, more).ok());
    (void)(*file)->sync();
    seen = read_back(**file, second);
    EXPECT_TRUE(seen.ok() || (world.gate->failing(0) && world.gate->failing(1))) << seen.status().sentence();
    if (seen.ok()) {
      EXPECT_EQ(*seen, more);
    }
  }
}

}  // namespace
}  // namespace holdfast::sim
