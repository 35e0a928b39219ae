// A repair compared records that it had read in bulk, as holes, with what lay there by then, and wrote zeros over the records of rows
// that a running job had written meanwhile. And a member was called current although a job had synced rows elsewhere since.
#include <gtest/gtest.h>

#include "sim/world.hpp"
#include "target/filters.hpp"

namespace holdfast {
namespace {

class RepairBesideAJob : public ::testing::Test {
 protected:
  static constexpr uint64_t row_bytes = 8192, rows = 40;

  RepairBesideAJob() {
    model.bytes.resize(rows * row_bytes);
    job = open(true);
    EXPECT_TRUE(job->set_size(rows * row_bytes).ok());
  }

  std::unique_ptr<engine::ProtectedFile> open(bool fresh) {
    auto file = world.open(*solo, fresh);
    EXPECT_TRUE(file.ok()) << file.status().sentence();
    return std::move(*file);
  }
  void write(uint64_t row) {
    const Bytes bytes(row_bytes, std::byte(1 + row % 200));
    const Extent extent{row * row_bytes, row_bytes};
    const Status status = job->write({&extent, 1}, bytes);
    ASSERT_TRUE(status.ok()) << status.sentence();
    model.write(extent.offset, bytes);
  }
  void sync() {
    const Status status = job->sync();
    ASSERT_TRUE(status.ok()) << status.sentence();
  }
  // `meanwhile` runs as another process does, between the repair's looks at two rows.
  engine::RepairReport repair(const std::function<void(uint64_t row)>& meanwhile = {}) {
    auto located = world.locate();
    auto report = engine::repair(located, world.settings, [&](uint64_t done, uint64_t) {
      if (meanwhile) meanwhile(done / row_bytes - 1);
      return true;
    });
    EXPECT_TRUE(report.ok()) << report.status().sentence();
    return report.ok() ? *report : engine::RepairReport();
  }
  void expect_model() {
    auto reader = world.open(*solo, false, false);
    ASSERT_TRUE(reader.ok()) << reader.status().sentence();
    Bytes seen(model.bytes.size());
    const Extent whole{0, seen.size()};
    auto got = (*reader)->read({&whole, 1}, seen);
    ASSERT_TRUE(got.ok()) << got.status().sentence();
    EXPECT_EQ(seen, model.bytes);
  }
  void expect_sound() {
    auto checked = engine::verify(world.locate(), world.settings, nullptr);
    ASSERT_TRUE(checked.ok());
    EXPECT_EQ(checked->finding_count, 0u) << checked->findings[0].what << " " << checked->findings[0].detail;
  }

  sim::World world{"rs:2+1"};
  sim::Model model;
  std::unique_ptr<exchange::Exchange> solo = exchange::make_solo();
  std::unique_ptr<engine::ProtectedFile> job;
};

TEST_F(RepairBesideAJob, that_fills_holes_leaves_what_it_writes) {
  write(0);
  sync();
  repair([&](uint64_t row) {
    if (row + 1 < rows) write(row + 1);
  });
  sync();
  expect_model();
  expect_sound();
}

TEST_F(RepairBesideAJob, mends_synced_rows) {
  for (uint64_t row = 0; row < rows; row += 2) write(row);
  sync();
  const std::string data = world.identity.directory + "/data";
  ASSERT_TRUE(world.directories[1]->flip_bit(data, 8 * 100));
  EXPECT_EQ(repair().units_rebuilt, 1u);
  expect_sound();
  ASSERT_TRUE(job->close().ok());
  expect_model();
}

// Another process that takes its turn whenever somebody is about to take the file's lock.
class BeforeEachLock final : public catalog::PathKeeper {
 public:
  BeforeEachLock(std::shared_ptr<catalog::PathKeeper> inner, std::function<void()> act) : inner_(std::move(inner)), act_(std::move(act)) {}
  Result<layout::Manifest> sidecar() override { return inner_->sidecar(); }
  Status publish(layout::Manifest& manifest, bool durable) override { return inner_->publish(manifest, durable); }
  Result<std::unique_ptr<target::Lock>> try_lock(bool make) override {
    act_();
    return inner_->try_lock(make);
  }

 private:
  std::shared_ptr<catalog::PathKeeper> inner_;
  std::function<void()> act_;
};

// Rows so large that a repair lets go of the lock after each.
class RepairInBatches : public ::testing::Test {
 protected:
  static constexpr uint64_t row_bytes = 16 << 20;

  void write(uint64_t row, int value) {
    const Bytes bytes(row_bytes, std::byte(value));
    const Extent extent{row * row_bytes, row_bytes};
    ASSERT_TRUE(job->write({&extent, 1}, bytes).ok());
    const Status synced = job->sync();
    ASSERT_TRUE(synced.ok()) << synced.sentence();
    model.write(extent.offset, bytes);
  }

  sim::World world{"rs:2+1", layout::Placement::separate, 0, row_bytes / 2};
  sim::Model model;
  std::unique_ptr<exchange::Exchange> solo = exchange::make_solo();
  std::unique_ptr<engine::ProtectedFile> job = std::move(*world.open(*solo, true));
};

TEST_F(RepairInBatches, gives_a_member_what_a_job_has_synced_between_them) {
  for (uint64_t row = 0; row < 4; ++row) write(row, int(row) + 1);
  world.gate->fail(1, Kind::io);
  write(0, 11);  // the job has set member 1 aside from here on
  world.gate->heal(1);
  auto located = world.locate();
  int locks = 0;
  located.path_keeper = std::make_shared<BeforeEachLock>(located.path_keeper, [&] {
    ++locks;
    if (locks == 3) write(0, 21);  // of a row that the repair has seen already
    if (locks == 4) write(4, 22);
  });
  auto report = engine::repair(located, world.settings, nullptr);
  ASSERT_TRUE(report.ok()) << report.status().sentence();
  EXPECT_GT(locks, 4) << "the job never got in";
  EXPECT_EQ(report->left, std::vector<std::string>());
  EXPECT_EQ(report->status.health, engine::Health::healthy);
  auto checked = engine::verify(world.locate(), world.settings, nullptr);
  ASSERT_TRUE(checked.ok());
  EXPECT_EQ(checked->finding_count, 0u) << checked->findings[0].what << " " << checked->findings[0].detail;
  world.gate->fail(0, Kind::io);
  auto reader = world.open(*solo, false, false);
  ASSERT_TRUE(reader.ok()) << reader.status().sentence();
  Bytes seen(model.bytes.size());
  const Extent whole{0, seen.size()};
  auto got = (*reader)->read({&whole, 1}, seen);
  ASSERT_TRUE(got.ok()) << got.status().sentence();
  EXPECT_TRUE(seen == model.bytes);
}

// A lock that cannot be tried says nothing about who holds it.
TEST_F(RepairBesideAJob, takes_a_failing_lock_for_a_writer) {
  for (uint64_t row = 0; row < 4; ++row) write(row);
  auto located = world.locate();
  auto plan = std::make_shared<target::FaultPlan>();
  plan->add({.kind = target::CallKind::lock, .count = target::kForever});
  for (auto& member : located.members) member.target = target::make_filtered(member.target, plan);
  auto report = engine::repair(located, world.settings, nullptr);
  ASSERT_TRUE(report.ok()) << report.status().sentence();
  EXPECT_EQ(report->sessions_folded, 0u);
  sync();
  expect_model();
}

}  // namespace
}  // namespace holdfast
