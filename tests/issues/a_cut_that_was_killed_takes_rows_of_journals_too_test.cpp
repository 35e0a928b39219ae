// Rows lay in a journal that had waited for a lone opener, which was dead by then. A program cut them off and was killed behind the manifest that
// said so. When another one, which had the file open already, wrote further behind, the rows were back: their journal counted as one of after the
// cut.
#include "target/filters.hpp"
#include "unit/engine/scene.hpp"

namespace holdfast::sim {
namespace {

TEST(Issue, a_cut_that_was_killed_takes_rows_of_journals_too) {
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
