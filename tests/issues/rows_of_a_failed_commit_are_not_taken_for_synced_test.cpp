// A commit writes fresh rows with a generation of which no manifest knows yet. Where it failed, the next repair gave the same generation to
// what it folded, and so made half-written rows synced ones, which then could not be rebuilt.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast {
namespace {

// Two of three members fail from their n-th call on. False: the sync came first.
bool fail_in_a_commit(int64_t n) {
  sim::World world("rs:2+1");
  auto alone = exchange::make_solo();
  {
    auto job = *world.open(*alone, true);
    EXPECT_TRUE(job->set_size(20 * 8192).ok());
    // Parts of rows: the commit folds them in.
    const Bytes part(1000, std::byte(7));
    for (uint64_t row = 3; row < 6; ++row) {
      const Extent extent{row * 8192 + 100, part.size()};
      EXPECT_TRUE(job->write({&extent, 1}, part).ok());
    }
    for (int member : {1, 2}) world.gate->fail_later(member, n, Kind::io);
    if (job->sync().ok()) return false;
    world.after_crash();
  }
  auto located = world.locate();
  auto report = engine::repair(located, world.settings, nullptr);
  EXPECT_TRUE(report.ok()) << report.status().sentence();
  if (!report.ok()) return true;
  EXPECT_TRUE(report->lost_rows.empty());
  EXPECT_EQ(report->status.health, engine::Health::healthy);
  auto checked = engine::verify(world.locate(), world.settings, nullptr);
  EXPECT_TRUE(checked.ok() && checked->lost_rows == 0 && checked->finding_count == 0);
  return true;
}

TEST(Issue, rows_of_a_failed_commit_are_not_taken_for_synced) {
  int64_t n = 1;
  for (; n < 1000 && fail_in_a_commit(n); ++n)
    if (HasFailure()) FAIL() << "call " << n;
  EXPECT_GT(n, 10);
}

}  // namespace
}  // namespace holdfast
