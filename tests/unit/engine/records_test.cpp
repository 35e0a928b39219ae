// Which record of a row counts, where members have different ones, and where what was cut off or never synced still lies there.
#include "unit/engine/scene.hpp"

namespace holdfast::sim {
namespace {

class Records : public testing::Test {
 protected:
  World world{"rs:2+1"};
  const uint64_t row = world.identity.geometry.row_bytes();
};

// The first member has missed the later one.
TEST_F(Records, of_the_newest_generation_count) {
  Parts parts(world);
  parts.write_in_place(1, 3, 3);
  Parts without_first(world);
  without_first.members.lose(0, "gone");
  without_first.write_in_place(1, 5, 5);
  parts.records.forget_all();
  auto record = parts.records.get(1);
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->generation, 5u);
}

// One rank has lost a member between two writes of a row, and no other rank knows.
TEST_F(Records, of_one_generation_the_one_counts_that_most_members_have) {
  on_ranks(2, 1, [&](int rank, exchange::Exchange& ranks) {
    auto file = world.open(ranks, true);
    ASSERT_TRUE(file.ok()) << file.status().sentence();
    expect_ok((*file)->set_size(2 * row));
    const Extent whole{0, row};
    if (rank == 1) {
      expect_ok((*file)->write({&whole, 1}, Bytes(row, std::byte(1))));
      world.gate->fail_on_rank(0, Schedule::current_rank(), Kind::io);
      expect_ok((*file)->write({&whole, 1}, Bytes(row, std::byte(2))));
    }
    ranks.barrier();
    Bytes seen(row);
    if (rank == 0) {
      auto got = (*file)->read({&whole, 1}, seen);
      EXPECT_TRUE(got.ok()) << got.status().sentence();
      EXPECT_TRUE(all_are(seen, 2));
    }
    ranks.barrier();
    expect_ok((*file)->close());
  });
}

TEST_F(Records, behind_the_end_were_cut_off) {
  Parts parts(world);
  parts.write_in_place(3, 3, 3);
  parts.located.manifest.rows = 2;
  auto record = parts.reader.record(3);
  ASSERT_TRUE(record.ok());
  EXPECT_TRUE(record->hole());
}

// The lone opener counts as dead although it lives: somebody has broken its locks. What was committed without it is not overwritten in place.
TEST_F(Records, of_commits_never_heard_of_are_not_written_over) {
  Opener alone(world, true);
  alone.set_size(4 * row);
  for (auto& directory : world.directories) directory->release_locks();
  Opener other(world);
  ASSERT_TRUE(other) << other.status.sentence();
  other.write(row, row, 8);
  other.close();
  alone.write(row, row, 9);
  EXPECT_TRUE(all_are(read_anew(world, row, row), 8));
}

// A writer that was killed may have written the record of the last row on some members only. A later one sets a size that reaches there: the
// record lies within the file from now on, and members whose records end before it could not say that it is a hole.
TEST_F(Records, that_a_killed_writer_left_on_some_members_are_a_last_row_for_all) {
  bool finished = false;
  for (int64_t calls = 1; calls < most_calls && !finished; ++calls)
    for (int lost = 0; lost < 3; ++lost) {
      SCOPED_TRACE("killed at call " + std::to_string(calls) + ", then member " + std::to_string(lost) + " is lost");
      world = World("rs:2+1");
      {
        Opener killed(world, true);
        killed.write(0, 1, 7);
        killed.sync();
        world.gate->die_at = world.gate->calls + calls;
        finished = killed.try_write(3 * row, row, 8).ok() && !world.gate->dead();
      }
      world.after_crash();
      Opener next(world);
      ASSERT_TRUE(next) << next.status.sentence();
      next.set_size(4 * row);
      next.close();
      world.gate->fail(lost, Kind::io);
      Opener reader(world, false, false);
      ASSERT_TRUE(reader) << reader.status.sentence();
      auto seen = reader.try_read(row, 3 * row);
      ASSERT_TRUE(seen.ok()) << seen.status().sentence();
    }
  EXPECT_TRUE(finished) << "it has more calls than were tried";
}

}  // namespace
}  // namespace holdfast::sim
