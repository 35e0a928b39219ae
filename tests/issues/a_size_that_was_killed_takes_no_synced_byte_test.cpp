// MPI_File_set_size made a mirror's plain copies shorter within their last block before the manifest said the new size. A program that was killed
// between the two left copies that lacked synced bytes; with a target lost before, the last row could no longer be read.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

class KilledSize : public testing::TestWithParam<Setting> {};

TEST_P(KilledSize, takes_no_synced_byte) {
  bool finished = false;
  for (int64_t calls = 1; calls < most_calls && !finished; ++calls)
    for (const bool lost : {false, true}) {
      World world(GetParam().scheme, GetParam().placement, GetParam().members);
      const uint64_t old_size = 2 * world.identity.geometry.row_bytes() + world.identity.geometry.block_bytes - 171;
      const uint64_t new_size = old_size - 1000;
      const Bytes bytes(old_size, std::byte(7));
      const Extent whole{0, old_size};
      auto solo = exchange::make_solo();
      {
        auto file = world.open(*solo, true);
        ASSERT_TRUE(file.ok()) << file.status().sentence();
        ASSERT_TRUE((*file)->write({&whole, 1}, bytes).ok());
        ASSERT_TRUE((*file)->close().ok());
      }
      if (lost) world.gate->fail(0, Kind::io);
      {
        auto file = world.open(*solo);
        ASSERT_TRUE(file.ok()) << file.status().sentence();
        world.gate->die_at = world.gate->calls + calls;
        const bool cut = (*file)->set_size(new_size).ok();
        finished = cut && !world.gate->dead();
      }
      world.after_crash();
      if (lost) world.gate->fail(0, Kind::io);
      auto file = world.open(*solo, false, false);
      ASSERT_TRUE(file.ok()) << file.status().sentence();
      Bytes seen(old_size);
      auto got = (*file)->read({&whole, 1}, seen);
      ASSERT_TRUE(got.ok()) << got.status().sentence() << ", killed at call " << calls << (lost ? ", with a target lost" : "");
      EXPECT_TRUE(*got == old_size || *got == new_size) << *got;
      for (uint64_t at = 0; at < *got; ++at) ASSERT_EQ(seen[at], std::byte(7)) << "byte " << at << ", killed at call " << calls;
    }
  EXPECT_TRUE(finished) << "it has more calls than were tried";
}

INSTANTIATE_TEST_SUITE_P(Schemes, KilledSize,
                         testing::Values(Setting{"mirror:2", layout::Placement::separate, 2}, Setting{"mirror:3", layout::Placement::separate, 3},
                                         Setting{"mirror:2", layout::Placement::interleaved, 2},
                                         Setting{"rs:2+1", layout::Placement::interleaved, 3}),
                         [](const auto& info) { return identifier_of(info.param); });

}  // namespace
}  // namespace holdfast::sim
