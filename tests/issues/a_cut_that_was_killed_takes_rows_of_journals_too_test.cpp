// Rows lay in a journal that had waited for a lone opener, which was dead by then. A program cut them off and was killed behind the manifest that
// said so. When another one, which had the file open already, wrote further behind, the rows were back: their journal counted as one of after the
// cut.
#include "target/filters.hpp"
#include "unit/engine/scene.hpp"

namespace holdfast::sim {
namespace {

// The cutter is killed at its n-th call on storage. True where it came to its end before.
bool cut_and_grow(World& world, uint64_t row, uint64_t calls) {
  auto plan = std::make_shared<target::FaultPlan>();
  catalog::Located seen = world.locate();
  for (catalog::Member& member : seen.members) member.target = target::make_filtered(member.target, plan);
  Opener lone(world, true);
  lone.write(0, 2 * row, 7);  // these lie in their places
  lone.sync();
  Opener next(world), cutter(world, std::move(seen));
  EXPECT_TRUE(lone && next && cutter);
  {
    Opener other(world);
    other.write(2 * row, 2 * row, 7);
    other.close();
  }
  lone.die();
  plan->add({.nth = calls, .count = target::kForever});
  const bool finished = cutter->set_size(row).ok();
  cutter.die();
  next.write(6 * row, row, 9);
  next.sync();
  return finished;
}

TEST(Issue, a_cut_that_was_killed_takes_rows_of_journals_too) {
  bool finished = false;
  for (uint64_t calls = 1; calls < uint64_t(most_calls) && !finished; ++calls) {
    SCOPED_TRACE("killed at call " + std::to_string(calls));
    World world("rs:2+1");
    const uint64_t row = world.identity.geometry.row_bytes();
    finished = cut_and_grow(world, row, calls);
    const Bytes left = read_anew(world, 0, 7 * row);
    ASSERT_EQ(left.size(), 7 * row);
    const bool cut = finished || left[row] == std::byte(0);  // of what was cut off nothing or all is there
    for (uint64_t at = 0; at < left.size(); ++at)
      ASSERT_EQ(left[at], std::byte(at < (cut ? 1 : 4) * row ? 7 : at < 6 * row ? 0 : 9)) << "byte " << at;
  }
  EXPECT_TRUE(finished) << "it has more calls than were tried";
}

// Others have seen the new size by then.
TEST(Issue, a_cut_that_others_have_seen_and_was_killed_takes_rows_of_journals_too) {
  World world("rs:2+1");
  const uint64_t row = world.identity.geometry.row_bytes();
  auto plan = std::make_shared<target::FaultPlan>();
  catalog::Located seen = world.locate();
  for (catalog::Member& member : seen.members) member.target = target::make_filtered(member.target, plan);
  // Nothing of it reaches storage any more once others can see the new size.
  bool cutting = false;
  seen.path_keeper = std::make_shared<WatchedPath>(seen.path_keeper, [&](const std::string& call) {
    if (cutting && call == "publish" && *Opener(world, false, false)->size() == row) plan->add({.count = target::kForever});
  });
  Opener lone(world, true), next(world), cutter(world, std::move(seen));
  ASSERT_TRUE(lone && next && cutter);
  {
    Opener other(world);
    ASSERT_TRUE(other) << other.status.sentence();
    other.write(0, 4 * row, 7);
    other.close();
  }
  lone.die();
  cutting = true;
  EXPECT_FALSE(cutter->set_size(row).ok());
  cutter.die();
  ASSERT_EQ(*Opener(world, false, false)->size(), row);
  next.write(6 * row, row, 9);
  next.sync();
  const Bytes left = read_anew(world, 0, 7 * row);
  ASSERT_EQ(left.size(), 7 * row);
  for (uint64_t at = 0; at < left.size(); ++at) ASSERT_EQ(left[at], std::byte(at < row ? 7 : at < 6 * row ? 0 : 9)) << "byte " << at;
}

}  // namespace
}  // namespace holdfast::sim
