// Who is kept out by whom, and until when: each promise by itself, as docs/coherence.md has it under "Locks".
#include "engine/exclusion.hpp"

#include "target/filters.hpp"
#include "unit/engine/scene.hpp"

namespace holdfast::sim {
namespace {

class Exclusion : public testing::Test {
 protected:
  void SetUp() override {
    Opener file(world, true);
    ASSERT_TRUE(file) << file.status.sentence();
    file.write(0, 4 * row, 7);
    located = file->located();
    file.close();
    world.settings.lock_patience_ms = 30;
  }
  void set_aside(catalog::Located& where, int member) {
    where.members[size_t(member)].target = nullptr;
    where.members[size_t(member)].lost = Status(Kind::not_found, "gone");
  }
  // Two ranks have the file open, and rank 0 dies alone. `then` is rank 1's, in whose hands `other` is, which it had opened before.
  void without_rank_0(const std::function<void(Opener& other)>& then) {
    on_ranks(2, 1, [&](int rank, exchange::Exchange& ranks) {
      auto file = world.open(ranks);
      ASSERT_TRUE(file.ok()) << file.status().sentence();
      std::unique_ptr<Opener> other;
      if (rank == 1) other = std::make_unique<Opener>(world);
      ranks.barrier();
      if (rank == 0) file->reset();
      ranks.barrier();
      if (rank == 1) then(*other);
    });
  }

  World world{"rs:2+1"};
  const uint64_t row = world.identity.geometry.row_bytes();
  catalog::Located located;
};

TEST_F(Exclusion, an_opener_lives_as_long_as_any_of_its_ranks) {
  without_rank_0([&](Opener& other) {
    other.die();
    engine::Members members(located);
    const engine::Others others = engine::other_openers(members, located, 0, 0);
    EXPECT_TRUE(others.alive);
    EXPECT_TRUE(others.without_leader);
  });
}

TEST_F(Exclusion, who_opens_waits_for_ranks_without_their_rank_0) {
  without_rank_0([&](Opener& other) {
    other.die();
    const Opener late(world);
    EXPECT_EQ(late.status.kind(), Kind::busy) << late.status.sentence();
  });
  const Opener after(world);
  EXPECT_TRUE(after) << after.status.sentence();
}

TEST_F(Exclusion, who_commits_waits_for_ranks_without_their_rank_0) {
  without_rank_0([&](Opener& other) {
    ASSERT_TRUE(other) << other.status.sentence();
    other.write(0, 10, 8);
    const Status status = other->sync();
    EXPECT_EQ(status.kind(), Kind::busy) << status.sentence();
  });
}

// It had lost the first member: its presence stands on others.
TEST_F(Exclusion, an_opener_is_found_on_whichever_members_it_could_reach) {
  catalog::Located seen = located;
  set_aside(seen, 0);
  engine::Members theirs(seen), members(located);
  const auto presence = engine::announce_opener(theirs, seen, 77);
  ASSERT_TRUE(presence.ok()) << presence.status().sentence();
  EXPECT_TRUE(engine::other_openers(members, located, 0, 0).alive);
}

TEST_F(Exclusion, an_atomic_read_waits_for_who_holds_the_lock) {
  Opener file(world);
  ASSERT_TRUE(file) << file.status.sentence();
  expect_ok(file->set_atomic(true));
  engine::Members members(located);
  auto lock = engine::lock_file(members, located);
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(file.try_read(0, 10).status().kind(), Kind::busy);
  lock->clear();
  EXPECT_TRUE(all_are(file.read(0, 10), 7));
}

// Members whose locks fail, and a sidecar out of reach: what is left keeps nobody out.
TEST_F(Exclusion, too_few_locks_are_refused) {
  auto plan = std::make_shared<target::FaultPlan>();
  plan->add({.kind = target::CallKind::lock, .count = target::kForever, .sys_errno = ENOLCK});
  catalog::Located seen = world.locate();
  for (int member : {0, 1}) seen.members[size_t(member)].target = target::make_filtered(seen.members[size_t(member)].target, plan);
  world.path->gone = true;
  engine::Members members(seen);
  EXPECT_EQ(engine::lock_file(members, seen).status().kind(), Kind::lost);
}

}  // namespace
}  // namespace holdfast::sim
