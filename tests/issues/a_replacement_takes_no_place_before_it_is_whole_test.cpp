// `repair --replace` once put an empty target in a good one's place: at once, also where nothing could be rebuilt.
#include <gtest/gtest.h>

#include "sim/replacement.hpp"

namespace holdfast {
namespace {

class Replacement : public ::testing::Test {
 protected:
  static constexpr uint64_t rows = 30, row_bytes = 8192;

  Replacement() {
    model.bytes.resize(rows * row_bytes);
    for (size_t i = 0; i < model.bytes.size(); ++i) model.bytes[i] = std::byte(1 + i / 700 % 200);
    auto file = *world.open(*solo, true);
    const Extent extent{0, model.bytes.size()};
    EXPECT_TRUE(file->write({&extent, 1}, model.bytes).ok() && file->close().ok());
  }

  // The file with an empty target that is to take member 1's place.
  catalog::Located with_replacement() {
    auto located = world.locate();
    fresh.offer(located);
    return located;
  }
  void move_there() { fresh.move_in(world); }
  void expect_model() {
    auto reader = world.open(*solo, false, false);
    ASSERT_TRUE(reader.ok()) << reader.status().sentence();
    Bytes seen(model.bytes.size());
    const Extent whole{0, seen.size()};
    auto got = (*reader)->read({&whole, 1}, seen);
    ASSERT_TRUE(got.ok()) << got.status().sentence();
    EXPECT_TRUE(seen == model.bytes);
  }
  void expect_sound() {
    auto checked = engine::verify(world.locate(), world.settings, nullptr);
    ASSERT_TRUE(checked.ok());
    EXPECT_EQ(checked->finding_count, 0u) << checked->findings[0].what << " " << checked->findings[0].detail;
    EXPECT_EQ(checked->status.health, engine::Health::healthy);
    expect_model();
  }

  sim::World world{"rs:2+1"};
  sim::Model model;
  std::unique_ptr<exchange::Exchange> solo = exchange::make_solo();
  const sim::EmptyTarget fresh{1};
};

TEST_F(Replacement, that_was_interrupted_at_any_row_changes_nothing_and_goes_on) {
  for (uint64_t last = 1; last < rows; last += 7) {
    auto located = with_replacement();
    auto stopped = engine::repair(located, world.settings, [&](uint64_t done, uint64_t) { return done < last * row_bytes; });
    ASSERT_TRUE(stopped.ok()) << stopped.status().sentence();
    EXPECT_TRUE(stopped->stopped);
    EXPECT_EQ(located.manifest.members[1].uuid, world.identity.members[1].uuid);
    expect_sound();
  }
  auto located = with_replacement();
  auto report = engine::repair(located, world.settings, nullptr);
  ASSERT_TRUE(report.ok()) << report.status().sentence();
  EXPECT_LT(report->units_rebuilt, rows) << "what was there already is not written again";
  EXPECT_EQ(located.manifest.members[1].uuid, fresh.uuid);
  EXPECT_TRUE(located.replacements.empty());
  move_there();
  expect_sound();
}

TEST_F(Replacement, that_is_too_small_leaves_the_old_target_in_its_place) {
  fresh.directory->set_capacity(40000);
  auto located = with_replacement();
  auto report = engine::repair(located, world.settings, nullptr);
  ASSERT_TRUE(report.ok()) << report.status().sentence();
  ASSERT_EQ(report->left.size(), 1u);
  EXPECT_NE(report->left[0].find("/n1 is not brought up to date"), std::string::npos) << report->left[0];
  EXPECT_EQ(located.manifest.members[1].uuid, world.identity.members[1].uuid);
  EXPECT_FALSE(located.manifest.members[1].stale);
  expect_sound();
}

TEST_F(Replacement, is_made_from_the_old_target_where_another_is_lost) {
  world.gone.insert(2);
  auto located = with_replacement();
  auto report = engine::repair(located, world.settings, nullptr);
  ASSERT_TRUE(report.ok()) << report.status().sentence();
  EXPECT_TRUE(report->lost_rows.empty());
  move_there();
  expect_model();
}

TEST_F(Replacement, of_a_lost_target_changes_nothing_where_another_is_lost_too) {
  world.gone = {1, 2};
  auto located = with_replacement();
  auto report = engine::repair(located, world.settings, nullptr);
  EXPECT_EQ(report.status().kind(), Kind::lost);
  EXPECT_TRUE(fresh.directory->object_names().empty());
  world.gone.clear();
  expect_sound();
}

// A job that has lost as many targets as it bears would lose its file with one more.
TEST_F(Replacement, of_a_target_that_a_job_uses_waits_for_its_end) {
  auto job = *world.open(*solo);
  world.gate->fail(2, Kind::io);
  const Bytes bytes(3 * row_bytes, std::byte(99));
  const Extent extent{5 * row_bytes, bytes.size()};
  ASSERT_TRUE(job->write({&extent, 1}, bytes).ok() && job->sync().ok());
  model.write(extent.offset, bytes);
  world.gate->heal(2);
  auto located = with_replacement();
  auto report = engine::repair(located, world.settings, nullptr);
  ASSERT_TRUE(report.ok()) << report.status().sentence();
  ASSERT_EQ(report->left.size(), 1u);
  EXPECT_NE(report->left[0].find("/t1, whose place it is to take, is in use"), std::string::npos) << report->left[0];
  EXPECT_EQ(report->status.health, engine::Health::healthy);
  EXPECT_EQ(located.manifest.members[1].uuid, world.identity.members[1].uuid);
  ASSERT_TRUE(job->write({&extent, 1}, bytes).ok());
  const Status closed = job->close();
  ASSERT_TRUE(closed.ok()) << closed.sentence();
  auto again = with_replacement();
  ASSERT_TRUE(engine::repair(again, world.settings, nullptr).ok());
  move_there();
  expect_sound();
}

// What is lost to the job anyway may get a new place beside it.
TEST_F(Replacement, of_a_target_that_a_job_has_lost_lacks_what_it_writes_until_the_next_repair) {
  auto job = *world.open(*solo);
  world.gate->fail(1, Kind::io);
  const Bytes bytes(3 * row_bytes, std::byte(99));
  const Extent extent{5 * row_bytes, bytes.size()};
  ASSERT_TRUE(job->write({&extent, 1}, bytes).ok() && job->sync().ok());
  model.write(extent.offset, bytes);
  world.gone.insert(1);
  auto located = with_replacement();
  auto report = engine::repair(located, world.settings, nullptr);
  ASSERT_TRUE(report.ok()) << report.status().sentence();
  EXPECT_EQ(report->left, std::vector<std::string>());
  EXPECT_EQ(located.manifest.members[1].uuid, fresh.uuid);
  world.gone.clear();
  world.gate->heal(1);
  ASSERT_TRUE(job->write({&extent, 1}, bytes).ok());
  const Status closed = job->close();
  ASSERT_TRUE(closed.ok()) << closed.sentence();
  move_there();
  auto status = engine::file_status(world.locate(), world.settings);
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->members[1].state, "stale");
  expect_model();
  auto again = world.locate();
  ASSERT_TRUE(engine::repair(again, world.settings, nullptr).ok());
  expect_sound();
}

}  // namespace
}  // namespace holdfast
