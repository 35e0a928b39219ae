// When targets are lost: on one rank only, while a file is opened, while it is repaired; and repairs that do not get to their end.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

const Setting settings[] = {
    {"mirror:2", layout::Placement::separate, 2},
    {"mirror:3", layout::Placement::interleaved, 5},
    {"rs:2+2", layout::Placement::separate, 5},
    {"rs:4+2", layout::Placement::interleaved, 6},
};

class Losses : public ::testing::TestWithParam<Setting> {
 protected:
  Losses() : world(GetParam().scheme, GetParam().placement, GetParam().members) {}

  int bears() const { return world.identity.geometry.scheme.m; }
  uint64_t row() const { return world.identity.geometry.row_bytes(); }

  // A file of so many rows and a bit, written by one process and closed.
  void begin_with(uint64_t rows) {
    model.bytes = random_bytes(random, rows * row() + 333);
    auto file = world.open(*solo, true);
    ASSERT_TRUE(file.ok());
    write(**file, 0, model.bytes);
    ASSERT_TRUE((*file)->close().ok());
  }
  void write(engine::ProtectedFile& file, uint64_t offset, const Bytes& bytes) {
    const Extent extent{offset, bytes.size()};
    const Status status = file.write(std::span(&extent, 1), bytes);
    ASSERT_TRUE(status.ok()) << status.sentence();
    model.write(offset, bytes);
  }
  void expect_model(engine::ProtectedFile& file) {
    ASSERT_EQ(*file.size(), model.bytes.size());
    Bytes seen(model.bytes.size());
    const Extent whole{0, seen.size()};
    auto got = file.read(std::span(&whole, 1), seen);
    ASSERT_TRUE(got.ok()) << got.status().sentence();
    ASSERT_TRUE(seen == model.bytes) << "the bytes differ";
  }
  void expect_model() {
    auto reader = world.open(*solo, false, false);
    ASSERT_TRUE(reader.ok()) << reader.status().sentence();
    expect_model(**reader);
  }
  void expect_repairable() {
    auto located = world.locate();
    auto report = engine::repair(located, world.settings, nullptr);
    ASSERT_TRUE(report.ok()) << report.status().sentence();
    EXPECT_TRUE(report->lost_rows.empty());
    EXPECT_EQ(report->status.health, engine::Health::healthy);
    auto checked = engine::verify(world.locate(), world.settings, nullptr);
    ASSERT_TRUE(checked.ok());
    EXPECT_EQ(checked->finding_count, 0u) << checked->findings[0].what << " " << checked->findings[0].detail;
    expect_model();
  }

  World world;
  Model model;
  std::mt19937_64 random{5};
  std::unique_ptr<exchange::Exchange> solo = exchange::make_solo();
};

TEST_P(Losses, of_a_target_on_one_rank_only_are_known_to_all_after_the_next_sync) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    world = World(GetParam().scheme, GetParam().placement, GetParam().members);
    model = {};
    const int blind = int(seed % 3), member = int(seed % uint64_t(GetParam().members));
    on_ranks(3, seed, [&](int rank, exchange::Exchange& ranks) {
      auto file = world.open(ranks, true);
      ASSERT_TRUE(file.ok()) << file.status().sentence();
      for (int step = 0; step < 6; ++step) {
        if (step == 2 && rank == 0) world.gate->fail_on_rank(member, blind, Kind::io);
        ranks.barrier();
        // Each rank has a part of its own; parts of ranks meet in the middle of rows.
        std::mt19937_64 bytes(seed * 100 + uint64_t(step) * 3 + uint64_t(rank));
        const uint64_t length = row() + row() / 3;
        const Extent extent{(uint64_t(step % 4) * 3 + uint64_t(rank)) * length, length};
        const Bytes data = random_bytes(bytes, length);
        for (int turn = 0; turn < 3; ++turn) {
          if (turn == rank) model.write(extent.offset, data);
          ranks.barrier();
        }
        const Status wrote = step % 2 ? (*file)->write(std::span(&extent, 1), data) : (*file)->write_all(std::span(&extent, 1), data);
        ASSERT_TRUE(wrote.ok()) << wrote.sentence();
        const Status synced = (*file)->sync();
        ASSERT_TRUE(synced.ok()) << synced.sentence();
        Bytes seen(model.bytes.size());
        const Extent whole{0, seen.size()};
        auto got = (*file)->read(std::span(&whole, 1), seen);
        ASSERT_TRUE(got.ok()) << got.status().sentence();
        ASSERT_TRUE(seen == model.bytes) << "step " << step << ", rank " << rank;
        ranks.barrier();
        if (step >= 2) {
          ASSERT_EQ((*file)->lost_members(), std::vector<int>{member}) << "step " << step << ", rank " << rank;
        }
      }
      ASSERT_TRUE((*file)->close().ok());
    });
    if (HasFatalFailure()) return;
    world.gate->heal(member);
    auto status = engine::file_status(world.locate(), world.settings);
    ASSERT_TRUE(status.ok());
    EXPECT_EQ(status->health, engine::Health::degraded);
    EXPECT_EQ(status->members[member].state, "stale");
    expect_model();
    expect_repairable();
  }
}

TEST_P(Losses, while_a_file_is_opened_read_and_written_at_any_call_are_invisible) {
  bool reached = true;
  for (int64_t n = 1; reached; ++n) {
    SCOPED_TRACE(n);
    world = World(GetParam().scheme, GetParam().placement, GetParam().members);
    begin_with(3);
    const int member = int(n % GetParam().members);
    world.gate->fail_later(member, 1 + n / GetParam().members, n % 2 ? Kind::io : Kind::not_found);
    {
      auto file = world.open(*solo);
      ASSERT_TRUE(file.ok()) << file.status().sentence();
      expect_model(**file);
      write(**file, row() / 2, random_bytes(random, row()));
      const Status synced = (*file)->sync();
      ASSERT_TRUE(synced.ok()) << synced.sentence();
      write(**file, row(), random_bytes(random, 2 * row()));
      expect_model(**file);
      const Status closed = (*file)->close();
      ASSERT_TRUE(closed.ok()) << closed.sentence();
    }
    expect_model();
    reached = world.gate->failing(member);
    world.gate->heal(member);
    expect_model();
    expect_repairable();
    if (HasFatalFailure()) return;
  }
}

TEST_P(Losses, while_a_file_is_repaired_leave_it_repairable) {
  if (bears() < 2) GTEST_SKIP() << "a second loss is beyond what it bears";
  bool reached = true;
  for (int64_t n = 1; reached; n += 1 + n / 20) {
    SCOPED_TRACE(n);
    world = World(GetParam().scheme, GetParam().placement, GetParam().members);
    begin_with(4);
    world.replace(0);
    const int second = 1 + int(n % (GetParam().members - 1));
    world.gate->fail_later(second, n, Kind::io);
    auto located = world.locate();
    auto report = engine::repair(located, world.settings, nullptr);  // may or may not succeed; may not harm
    if (report.ok()) {
      EXPECT_TRUE(report->lost_rows.empty());
    }
    expect_model();
    reached = world.gate->failing(second);
    world.gate->heal(second);
    expect_repairable();
    if (HasFatalFailure()) return;
  }
}

TEST_P(Losses, a_repair_that_dies_at_any_call_is_taken_up_by_the_next) {
  bool died = true;
  for (int64_t n = 1; died; n += 1 + n / 30) {
    SCOPED_TRACE(n);
    world = World(GetParam().scheme, GetParam().placement, GetParam().members);
    begin_with(4);
    for (int member = 0; member < bears(); ++member) world.replace(member);
    world.gate->die_at = world.gate->calls + n;
    auto located = world.locate();
    (void)engine::repair(located, world.settings, nullptr);
    died = world.gate->dead();
    world.after_crash(uint64_t(n) * 7);  // with what a power failure leaves
    expect_model();
    expect_repairable();
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, Losses, ::testing::ValuesIn(settings), [](const auto& info) { return identifier_of(info.param); });

}  // namespace
}  // namespace holdfast::sim
