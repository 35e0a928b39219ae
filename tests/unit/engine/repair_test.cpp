// What a repair calls current, what it leaves alone beside a running job, and what is left where it is killed.
#include "engine/waiting.hpp"
#include "unit/engine/scene.hpp"

namespace holdfast::sim {
namespace {

class Repair : public testing::Test {
 protected:
  static constexpr int away = 2;

  void make_file(uint64_t rows) {
    Opener file(world, true);
    ASSERT_TRUE(file) << file.status.sentence();
    file.write(0, rows * row(), 7);
    file.close();
  }
  uint64_t row() const { return world.identity.geometry.row_bytes(); }
  engine::RepairReport repair() {
    auto located = world.locate();
    located.manifest = Opener(world, false, false)->located().manifest;  // as it is found
    auto report = engine::repair(located, world.settings, nullptr);
    EXPECT_TRUE(report.ok()) << report.status().sentence();
    return report.ok() ? *report : engine::RepairReport();
  }
  bool is_stale(int member) {
    Opener reader(world, false, false);
    EXPECT_TRUE(reader) << reader.status.sentence();
    return reader && reader->located().manifest.members[size_t(member)].stale;
  }
  // While one member is away the file is cut to one row, and to `then` rows.
  void cut_without_one(uint64_t then) {
    make_file(4);
    world.gate->fail(away, Kind::io);
    Opener file(world);
    file.set_size(row());
    if (then > 1) file.set_size(then * row());
    file.close();
    world.gate->heal(away);
  }
  void expect_first_row_and_zeros() {
    const Bytes seen = read_anew(world, 0, 4 * row());
    ASSERT_EQ(seen.size(), 4 * row());
    for (uint64_t at = 0; at < seen.size(); ++at) ASSERT_EQ(seen[at], std::byte(at < row() ? 7 : 0)) << "byte " << at;
  }
  World world{"rs:2+1"};
};

// A row that the member has missed can be read nowhere any more.
TEST_F(Repair, does_not_call_current_what_lacks_a_row) {
  world = World("mirror:2", layout::Placement::interleaved, 2);
  make_file(2);
  world.gate->fail(1, Kind::io);
  std::string data;
  {
    Opener file(world);
    file.write(0, row(), 8);
    data = file->located().data_name(0);
    file.close();
  }
  world.gate->heal(1);
  ASSERT_TRUE(world.directories[0]->flip_bit(data, 8 * 100));
  EXPECT_FALSE(repair().lost_rows.empty());
  EXPECT_TRUE(is_stale(1));
}

// The rows that were cut off are holes by now. The member that was away has their records still, and beside a job they cannot be taken away.
TEST_F(Repair, beside_a_job_leaves_a_member_with_records_of_rows_that_are_holes) {
  cut_without_one(4);
  Opener job(world);
  ASSERT_TRUE(job) << job.status.sentence();
  EXPECT_FALSE(repair().left.empty());
  EXPECT_TRUE(is_stale(away));
  expect_first_row_and_zeros();
  job.close();
  EXPECT_TRUE(repair().left.empty());
  expect_first_row_and_zeros();
}

TEST_F(Repair, beside_a_job_leaves_a_member_with_rows_behind_the_end) {
  cut_without_one(1);
  Opener job(world);
  ASSERT_TRUE(job) << job.status.sentence();
  EXPECT_FALSE(repair().left.empty());
  EXPECT_TRUE(is_stale(away));
  Opener other(world);
  ASSERT_TRUE(other) << other.status.sentence();
  other.set_size(4 * row());
  expect_first_row_and_zeros();
}

// Between two batches of a repair others have a turn, and each batch takes one row.
class BetweenBatches {
 public:
  explicit BetweenBatches(std::function<void()> act) {
    act_ = std::move(act);
    engine::wait_while_busy = [](std::chrono::microseconds) {
      if (const auto once = std::exchange(act_, nullptr)) once();
    };
    engine::clock_ns = [] { return now_ += 60'000'000; };  // of the 100 ms that a batch takes
  }
  ~BetweenBatches() { engine::wait_while_busy = wait_, engine::clock_ns = clock_; }
  BetweenBatches(const BetweenBatches&) = delete;

 private:
  static inline std::function<void()> act_;
  static inline uint64_t now_ = 1'000'000'000'000'000'000;
  decltype(engine::wait_while_busy) wait_ = engine::wait_while_busy;
  decltype(engine::clock_ns) clock_ = engine::clock_ns;
};

// It waits in a journal when the repair comes by. Then the job puts it in its place, on fewer members and under the generation that it had.
TEST_F(Repair, looks_again_at_a_row_that_waited_in_a_journal) {
  constexpr int lost_meanwhile = 1;
  {
    Opener file(world, true);
    file.write(3 * row(), row(), 7), file.close();
  }
  Opener job(world), other(world);
  other.write(0, row(), 9), other.close();
  ASSERT_FALSE(Opener(world, false, false)->located().manifest.journals.empty());
  {
    const BetweenBatches turn([&] {
      world.gate->fail(lost_meanwhile, Kind::io);
      job.sync();
      world.gate->heal(lost_meanwhile);
      EXPECT_TRUE(is_stale(lost_meanwhile));
    });
    (void)repair();
  }
  EXPECT_FALSE(is_stale(lost_meanwhile));
  world.gate->fail(0, Kind::io);
  EXPECT_TRUE(all_are(read_anew(world, 0, row()), 9));
}

// A killed writer's row that does not verify becomes zeros, under a generation that a manifest names first: killed in between, the repair would
// leave a row half of which the next writer's commit calls synced.
TEST_F(Repair, that_is_killed_leaves_no_row_half_made) {
  bool finished = false;
  for (int64_t calls = 1; calls < most_calls && !finished; ++calls) {
    SCOPED_TRACE("killed at call " + std::to_string(calls));
    world = World("rs:2+1");
    {
      Opener killed(world, true);
      killed.set_size(4 * row());
      killed.write(0, row(), 8);
      for (int member : {0, 1}) ASSERT_TRUE(world.directories[size_t(member)]->flip_bit(killed->located().data_name(0), 8 * 100));
    }
    {
      auto located = world.locate();
      world.gate->die_at = world.gate->calls + calls;
      finished = engine::repair(located, world.settings, nullptr).ok() && !world.gate->dead();
    }
    world.after_crash();
    Opener next(world);
    ASSERT_TRUE(next) << next.status.sentence();
    next.write(2 * row(), row(), 9);
    next.close();
    Opener reader(world, false, false);
    ASSERT_TRUE(reader) << reader.status.sentence();
    auto seen = reader.try_read(0, 4 * row());
    ASSERT_TRUE(seen.ok()) << seen.status().sentence();
    EXPECT_TRUE(all_are(Bytes(seen->begin() + ptrdiff_t(2 * row()), seen->begin() + ptrdiff_t(3 * row())), 9));
  }
  EXPECT_TRUE(finished) << "it has more calls than were tried";
}

}  // namespace
}  // namespace holdfast::sim
