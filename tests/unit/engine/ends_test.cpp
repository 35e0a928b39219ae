// The end of a file that was made longer: its last row has a place among the records before a manifest says that there is such a row.
#include "unit/engine/scene.hpp"

namespace holdfast::sim {
namespace {

// A job that makes a file of one row five rows long is killed at its n-th call on storage, and power fails. It returns whether it came to its end.
bool grown_and_killed(World& world, int64_t calls) {
  Opener file(world, true);
  const uint64_t row = world.identity.geometry.row_bytes();
  file.write(0, row, 1);
  file.sync();
  world.gate->die_at = world.gate->calls + calls;
  return file->set_size(5 * row).ok() && !world.gate->dead();
}

TEST(Ends, can_be_read_whenever_power_fails_in_set_size) {
  constexpr int64_t most_calls = 400;
  bool finished = false;
  for (int64_t calls = 1; calls < most_calls && !finished; ++calls)
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      SCOPED_TRACE("killed at call " + std::to_string(calls) + ", seed " + std::to_string(seed));
      World world("rs:2+1");
      const uint64_t row = world.identity.geometry.row_bytes();
      finished = grown_and_killed(world, calls);
      world.after_crash(seed);
      Opener reader(world, false, false);
      ASSERT_TRUE(reader) << reader.status.sentence();
      const auto seen = reader.try_read(0, 5 * row);
      ASSERT_TRUE(seen.ok()) << seen.status().sentence();
      ASSERT_GE(seen->size(), row);
      ASSERT_TRUE(all_are(Bytes(seen->begin(), seen->begin() + std::ptrdiff_t(row)), 1));
      ASSERT_TRUE(all_are(Bytes(seen->begin() + std::ptrdiff_t(row), seen->end()), 0));
    }
  EXPECT_TRUE(finished) << "it has more calls than were tried";
}

}  // namespace
}  // namespace holdfast::sim
