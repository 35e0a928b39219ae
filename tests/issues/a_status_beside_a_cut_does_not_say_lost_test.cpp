// Status looks at a file whose job cuts it at this moment: the manifest that it has read is older than the objects that it finds.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

TEST(Issue, a_status_beside_a_cut_does_not_say_lost) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world("mirror:2", layout::Placement::separate, 3);
    Schedule schedule(seed);
    schedule.add([&] {
      auto alone = exchange::make_solo();
      auto file = world.open(*alone, true);
      ASSERT_TRUE(file.ok()) << file.status().sentence();
      const Bytes data(5 * world.identity.geometry.row_bytes(), std::byte(7));
      const Extent whole{0, data.size()};
      ASSERT_TRUE((*file)->write({&whole, 1}, data).ok());
      ASSERT_TRUE((*file)->sync().ok());
      schedule.add([&] {
        for (uint64_t turn = 0; turn < seed % 40; ++turn) Schedule::yield();
        auto status = engine::file_status(world.locate(), world.settings);
        ASSERT_TRUE(status.ok()) << status.status().sentence();
        EXPECT_EQ(status->health, engine::Health::healthy) << status->members[0].why;
      });
      ASSERT_TRUE((*file)->set_size(100).ok());
      ASSERT_TRUE((*file)->close().ok());
    });
    schedule.run();
  }
}

}  // namespace
}  // namespace holdfast::sim
