// While journals took their place a target was not there for a few calls (ENOENT, as of an automounter that is restarted). What was "not found"
// counted as "there is no journal": the target kept the old row, and nobody called it lost.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

class Away : public testing::TestWithParam<const char*> {
 protected:
  static void write(engine::ProtectedFile& file, uint64_t offset, uint64_t count, int value) {
    const Bytes bytes(count, std::byte(value));
    const Extent extent{offset, count};
    EXPECT_TRUE(file.write({&extent, 1}, bytes).ok());
  }
  // False where the commit needed fewer calls on the member.
  static bool commit_beside(World& world, int member, int64_t call, int turns) {
    const uint64_t row = world.identity.geometry.row_bytes();
    bool failed = false, done = false;
    Schedule schedule{uint64_t(call)};
    schedule.add([&] {
      auto solo = exchange::make_solo();
      auto file = world.open(*solo);
      ASSERT_TRUE(file.ok()) << file.status().sentence();
      write(**file, row / 3, row, 2);  // parts of rows that are synced: by journal
      world.gate->fail_later(member, call, Kind::not_found);
      const Status status = (*file)->close();
      EXPECT_TRUE(status.ok()) << status.sentence();
      done = true;
    });
    schedule.add([&] {
      while (!world.gate->failing(member) && !done) Schedule::yield(true);
      failed = world.gate->failing(member);
      for (int turn = 0; turn < turns; ++turn) Schedule::yield(true);
      world.gate->heal(member);
    });
    schedule.run();
    return failed;
  }
  static std::string read_without(World& world, int member) {
    world.gate->fail(member, Kind::io);
    auto solo = exchange::make_solo();
    auto file = world.open(*solo, false, false);
    const uint64_t row = world.identity.geometry.row_bytes();
    Bytes seen(3 * row), expected(3 * row, std::byte(1));
    std::fill_n(expected.begin() + long(row / 3), row, std::byte(2));
    const Extent whole{0, seen.size()};
    const Status status = file.ok() ? (*file)->read({&whole, 1}, seen).status() : file.status();
    world.gate->heal(member);
    if (!status.ok()) return status.sentence();
    return seen == expected ? "" : "other bytes than were written";
  }
};

TEST_P(Away, for_a_moment_it_is_lost_or_has_all) {
  for (const int turns : {1, 3}) {
    bool failed = true;
    for (int64_t call = 1; call < most_calls && failed; ++call) {
      World world(GetParam());
      {
        auto solo = exchange::make_solo();
        auto file = world.open(*solo, true);
        ASSERT_TRUE(file.ok()) << file.status().sentence();
        write(**file, 0, 3 * world.identity.geometry.row_bytes(), 1);
        ASSERT_TRUE((*file)->close().ok());
      }
      failed = commit_beside(world, 1, call, turns);
      ASSERT_EQ(read_without(world, world.identity.geometry.members), "") << "away at its call " << call;
      // It has all, and another may go; or it is known to be behind, and the file says so.
      auto solo = exchange::make_solo();
      auto file = world.open(*solo, false, false);
      ASSERT_TRUE(file.ok()) << file.status().sentence();
      const bool behind = (*file)->located().manifest.members[1].stale;
      (void)(*file)->close();
      for (int other = 0; other < world.identity.geometry.members && !behind; ++other)
        ASSERT_EQ(read_without(world, other), "") << "away at its call " << call << ", then target " << other << " was lost";
    }
    EXPECT_FALSE(failed) << "the commit has more calls than were tried";
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, Away, testing::Values("mirror:2", "rs:2+1", "rs:4+2"), [](const auto& info) { return identifier_of(info.param); });

}  // namespace
}  // namespace holdfast::sim
