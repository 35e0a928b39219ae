// A reader has the file open, another opener commits a row anew, and then the reader loses more members than may be lost. It cannot read the manifest
// of that commit, so the row's new generation was one that nobody had synced, as far as it knew: what it could not rebuild it took for zeros.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

void commit(World& world, std::byte value, bool fresh) {
  auto alone = exchange::make_solo();
  auto file = world.open(*alone, fresh);
  ASSERT_TRUE(file.ok()) << file.status().sentence();
  const Extent row{0, world.identity.geometry.row_bytes()};
  ASSERT_TRUE((*file)->write({&row, 1}, Bytes(row.length, value)).ok());
  ASSERT_TRUE((*file)->close().ok());
}

TEST(Issue, a_reader_that_has_lost_too_many_does_not_read_zeros) {
  for (int left = 0; left < 3; ++left)
    for (const bool with_path : {false, true}) {
      SCOPED_TRACE(testing::Message() << "member " << left << " is left" << (with_path ? ", and the path" : ""));
      World world("rs:2+1", layout::Placement::interleaved, 3);
      commit(world, std::byte(1), true);
      auto alone = exchange::make_solo();
      auto reader = world.open(*alone, false, false);
      ASSERT_TRUE(reader.ok()) << reader.status().sentence();
      commit(world, std::byte(2), false);
      for (int member = 0; member < 3; ++member)
        if (member != left) world.gate->fail(member, Kind::io);
      world.path->gone = !with_path;
      const Extent row{0, world.identity.geometry.row_bytes()};
      Bytes seen(row.length);
      const auto got = (*reader)->read({&row, 1}, seen);
      EXPECT_EQ(got.status().kind(), Kind::lost) << got.status().sentence();
    }
}

}  // namespace
}  // namespace holdfast::sim
