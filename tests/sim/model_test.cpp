// Protected files against a plain in-memory model of a file: random operations, random losses, crashes at every call.
#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <cstring>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

const Setting all_settings[] = {
    {"mirror:1", layout::Placement::separate, 1},  {"mirror:2", layout::Placement::separate, 2},  {"mirror:3", layout::Placement::interleaved, 5},
    {"rs:2+1", layout::Placement::interleaved, 3}, {"rs:4+2", layout::Placement::interleaved, 6}, {"rs:4+2", layout::Placement::separate, 7},
    {"rs:3+2", layout::Placement::interleaved, 8},
};

// Fails with the first byte that differs.
::testing::AssertionResult same(ByteView expected, ByteView seen) {
  if (expected.size() != seen.size()) return ::testing::AssertionFailure() << "sizes " << expected.size() << " and " << seen.size();
  if (std::ranges::equal(expected, seen)) return ::testing::AssertionSuccess();
  const size_t i = size_t(std::ranges::mismatch(expected, seen).in1 - expected.begin());
  return ::testing::AssertionFailure() << "byte " << i << ": expected " << int(expected[i]) << ", seen " << int(seen[i]);
}

Bytes read_all_of(engine::ProtectedFile& file, Status* status = nullptr) {
  Bytes bytes(*file.size());
  const Extent whole{0, bytes.size()};
  auto got = file.read(std::span(&whole, 1), bytes);
  if (status) *status = got.status();
  else EXPECT_TRUE(got.ok()) << got.status().sentence();
  return bytes;
}

// As a reader that goes through the file in order, in steps that rows know nothing of.
Bytes read_in_steps(engine::ProtectedFile& file, uint64_t step) {
  Bytes bytes(*file.size());
  for (uint64_t at = 0; at < bytes.size(); at += step) {
    const Extent part{at, std::min<uint64_t>(step, bytes.size() - at)};
    auto got = file.read(std::span(&part, 1), ByteSpan(bytes).subspan(at, part.length));
    EXPECT_TRUE(got.ok()) << got.status().sentence();
  }
  return bytes;
}

// A collective write in rounds of so many extents: ranks have different numbers of rounds, and all go on until none has more.
Status write_in_rounds(engine::ProtectedFile& file, std::span<const Extent> extents, ByteView data, size_t each) {
  for (bool more = true; more;) {
    const auto now = extents.first(std::min(each, extents.size()));
    uint64_t bytes = 0;
    for (const Extent& extent : now) bytes += extent.length;
    extents = extents.subspan(now.size());
    more = !extents.empty();
    HF_TRY(file.write_all(now, data.first(bytes), more));
    data = data.subspan(bytes);
  }
  return Status();
}

class RandomOperations : public ::testing::TestWithParam<Setting> {};

TEST_P(RandomOperations, of_one_process_read_back_as_in_a_plain_file) {
  for (uint64_t seed = first_seed(); seed < first_seed() + 25; ++seed) {
    SCOPED_TRACE(name_of(GetParam()) + ", seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    World world(GetParam().scheme, GetParam().placement, GetParam().members);
    const int m = world.identity.geometry.scheme.m;
    const uint64_t row = world.identity.geometry.row_bytes();
    if (seed % 2) world.settings.buffer_bytes = row;  // what is pending hardly fits: most of it is parked on targets
    auto solo = exchange::make_solo();
    auto file = world.open(*solo, true);
    ASSERT_TRUE(file.ok()) << file.status().sentence();
    Model model;
    std::set<int> lost;
    for (int step = 0; step < 60; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      const uint64_t offset = random() % (6 * row), length = 1 + random() % (random() % 3 ? row / 3 : 3 * row);
      const uint64_t what = random() % 10;
      switch (what) {
        case 0:
        case 1:
        case 2:
        case 3: {
          const Bytes data = random_bytes(random, length);
          const Extent extent{offset, length};
          ASSERT_TRUE((*file)->write(std::span(&extent, 1), data).ok());
          model.write(offset, data);
          break;
        }
        case 4: {
          const Bytes data = random_bytes(random, length);
          const Extent extent{offset, length};
          ASSERT_TRUE((*file)->write_all(std::span(&extent, 1), data).ok());
          model.write(offset, data);
          break;
        }
        case 5: {
          Status status = (*file)->sync();
          ASSERT_TRUE(status.ok()) << status.sentence();
          break;
        }
        case 6: {
          const uint64_t size = random() % (6 * row);
          Status status = (*file)->set_size(size);
          ASSERT_TRUE(status.ok()) << status.sentence();
          model.bytes.resize(size);
          break;
        }
        case 7: {
          Status status = (*file)->close();
          ASSERT_TRUE(status.ok()) << status.sentence();
          file = world.open(*solo);
          ASSERT_TRUE(file.ok()) << file.status().sentence();
          break;
        }
        case 8:
          if (int(lost.size()) < m) {
            const int victim = int(random() % uint64_t(GetParam().members));
            if (lost.insert(victim).second) world.gate->fail(victim, random() % 2 ? Kind::io : Kind::no_space);
          }
          break;
        case 9:
          if (!lost.empty() && random() % 2) {
            ASSERT_TRUE((*file)->close().ok());
            for (int victim : lost) {
              if (random() % 2) world.replace(victim);
              world.gate->heal(victim);
            }
            lost.clear();
            auto located = world.locate();
            auto report = engine::repair(located, world.settings, nullptr);
            ASSERT_TRUE(report.ok()) << report.status().sentence();
            EXPECT_TRUE(report->lost_rows.empty());
            EXPECT_EQ(report->status.health, engine::Health::healthy);
            for (auto& member : report->status.members) EXPECT_EQ(member.state, "ok") << member.path << ": " << member.why;
            auto checked = engine::verify(world.locate(), world.settings, nullptr);
            ASSERT_TRUE(checked.ok());
            EXPECT_EQ(checked->finding_count, 0u) << checked->findings[0].what << " " << checked->findings[0].detail;
            file = world.open(*solo);
            ASSERT_TRUE(file.ok()) << file.status().sentence();
          }
          break;
      }
      ASSERT_EQ(*(*file)->size(), model.bytes.size());
      ASSERT_TRUE(same(model.bytes, step % 3 ? read_all_of(**file) : read_in_steps(**file, 1 + random() % row)));
    }
    ASSERT_TRUE((*file)->close().ok());
    auto reader = world.open(*solo, false, false);
    ASSERT_TRUE(reader.ok()) << reader.status().sentence();
    ASSERT_TRUE(same(model.bytes, read_all_of(**reader)));
  }
}

TEST_P(RandomOperations, of_four_ranks_read_back_as_in_a_plain_file_after_each_sync) {
  for (uint64_t seed = first_seed(); seed < first_seed() + 6; ++seed) {
    SCOPED_TRACE(name_of(GetParam()) + ", seed " + std::to_string(seed));
    World world(GetParam().scheme, GetParam().placement, GetParam().members);
    const uint64_t row = world.identity.geometry.row_bytes();
    const int m = world.identity.geometry.scheme.m;
    if (seed % 2) world.settings.buffer_bytes = row;
    world.settings.cb_nodes = int(seed % 6);
    on_ranks(4, seed, [&](int rank, exchange::Exchange& ranks) {
      std::mt19937_64 random(seed);  // the same on all ranks: each knows what the others do
      auto file = world.open(ranks, true);
      ASSERT_TRUE(file.ok()) << file.status().sentence();
      Model model;
      int lost = 0;
      uint64_t unsynced_end = 0;  // MPI leaves open what overlapping writes of two ranks without a sync between them give
      for (int step = 0; step < 30; ++step) {
        // Disjoint extents: pieces of random length dealt to the ranks.
        std::vector<Extent> mine;
        Bytes data;
        uint64_t at = std::max(random() % (3 * row), unsynced_end);
        const int pieces = int(4 + random() % 12);
        for (int piece = 0; piece < pieces; ++piece) {
          const uint64_t length = 1 + random() % (random() % 4 ? row / 4 : 2 * row);
          const int owner = int(random() % 4);
          const Bytes bytes = random_bytes(random, length);
          model.write(at, bytes);
          if (owner == rank) {
            mine.push_back({at, length});
            data.insert(data.end(), bytes.begin(), bytes.end());
          }
          at += length + (random() % 3 ? 0 : random() % row);
        }
        const uint64_t how = random() % 3;
        const bool fail_now = random() % 5 == 0 && lost < m;
        const int victim = int(random() % uint64_t(GetParam().members));
        if (fail_now) {
          ++lost;
          if (rank == 1) world.gate->fail(victim, Kind::io);
        }
        Status status = how == 0       ? (*file)->write(mine, data)
                        : random() % 2 ? (*file)->write_all(mine, data)
                                       : write_in_rounds(**file, mine, data, 1 + (random() + uint64_t(rank)) % 3);
        ASSERT_TRUE(status.ok()) << status.sentence();
        if (how != 1) {
          status = (*file)->sync();
          ASSERT_TRUE(status.ok()) << status.sentence();
          unsynced_end = 0;
        } else {
          unsynced_end = at;
          ranks.barrier();
        }
        if (how != 1) {
          ASSERT_EQ(*(*file)->agreed_size(), model.bytes.size()) << "step " << step;
          ASSERT_TRUE(same(model.bytes, read_all_of(**file))) << "step " << step << " rank " << rank;
        }
      }
      Status status = (*file)->close();
      ASSERT_TRUE(status.ok()) << status.sentence();
    });
    if (HasFatalFailure()) return;
  }
}

// Every byte is what was synced, or something that was written since.
struct CrashModel {
  Bytes synced;
  std::vector<std::bitset<256>> since;  // by the byte's value
  uint64_t largest = 0;
  void write(uint64_t offset, ByteView data) {
    largest = std::max(largest, offset + data.size());
    if (since.size() < largest) since.resize(largest);
    for (size_t i = 0; i < data.size(); ++i) since[offset + i].set(size_t(data[i]));
  }
  void sync(const Bytes& now) {
    synced = now;
    since.assign(now.size(), {});
    largest = now.size();
  }
  ::testing::AssertionResult allows(ByteView seen) const {
    if (seen.size() < synced.size()) return ::testing::AssertionFailure() << "size " << seen.size() << " of " << synced.size();
    for (size_t i = 0; i < seen.size(); ++i) {
      const std::byte old = i < synced.size() ? synced[i] : std::byte(0);
      if (seen[i] != old && !(i < since.size() && since[i].test(size_t(seen[i]))))
        return ::testing::AssertionFailure() << "byte " << i << " is " << int(seen[i]) << ", was " << int(old);
    }
    return ::testing::AssertionSuccess();
  }
};

// What killed sessions left is folded away, and the file reads as before.
void repair_after_crash(World& world, const Bytes& before) {
  auto located = world.locate();
  auto report = engine::repair(located, world.settings, nullptr);
  ASSERT_TRUE(report.ok()) << report.status().sentence();
  EXPECT_TRUE(report->lost_rows.empty());
  EXPECT_TRUE(report->status.manifest.open_generations.empty());
  auto checked = engine::verify(world.locate(), world.settings, nullptr);
  ASSERT_TRUE(checked.ok());
  EXPECT_EQ(checked->finding_count, 0u) << checked->findings[0].what << " " << checked->findings[0].detail;
  for (size_t member = 0; member < world.directories.size(); ++member) {
    if (world.gone.contains(int(member))) continue;
    for (const std::string& name : world.directories[member]->object_names()) {
      EXPECT_TRUE(name.find("/spill.") == std::string::npos && name.find("/journal.") == std::string::npos) << name;
    }
  }
  auto solo = exchange::make_solo();
  auto reader = world.open(*solo, false, false);
  ASSERT_TRUE(reader.ok());
  ASSERT_TRUE(same(before, read_all_of(**reader)));
}

// What a process that comes after the crash reads: all of it, and nothing that the model does not allow.
void read_after_crash(Result<std::unique_ptr<engine::ProtectedFile>>& reader, const CrashModel& model, Bytes& seen) {
  ASSERT_TRUE(reader.ok()) << reader.status().sentence();
  Status status;
  seen = read_all_of(**reader, &status);
  ASSERT_TRUE(status.ok()) << status.sentence();
  ASSERT_TRUE(model.allows(seen));
}

void crash_at_every_call(const Setting& setting, bool power, bool lose_one, bool repair_first = false) {
  bool crashed = true;
  for (int64_t n = 1; crashed; n += 1 + n / 60) {
    SCOPED_TRACE(name_of(setting) + ", dies at call " + std::to_string(n));
    World world(setting.scheme, setting.placement, setting.members);
    const uint64_t row = world.identity.geometry.row_bytes();
    std::mt19937_64 random(6 + first_seed());
    CrashModel model;
    auto solo = exchange::make_solo();
    {
      auto file = world.open(*solo, true);
      ASSERT_TRUE(file.ok());
      Bytes first = random_bytes(random, 3 * row + row / 2);
      const Extent extent{0, first.size()};
      ASSERT_TRUE((*file)->write(std::span(&extent, 1), first).ok());
      ASSERT_TRUE((*file)->close().ok());
      model.sync(first);
    }
    world.gate->die_at = world.gate->calls + n;
    {
      auto file = world.open(*solo);
      Model now{model.synced};
      for (int step = 0; file.ok() && step < 8; ++step) {
        const uint64_t offset = random() % (4 * row), length = 1 + random() % (step % 2 ? row / 2 : 2 * row);
        const Bytes data = random_bytes(random, length);
        const Extent extent{offset, length};
        model.write(offset, data);
        now.write(offset, data);
        if (!(step % 3 ? (*file)->write(std::span(&extent, 1), data) : (*file)->write_all(std::span(&extent, 1), data)).ok()) break;
        if (step % 3 == 2) {
          if (!(*file)->sync().ok()) break;
          model.sync(now.bytes);
        }
      }
      if (file.ok() && (*file)->close().ok()) model.sync(now.bytes);
      crashed = world.gate->dead();
    }
    world.after_crash(power ? std::optional<uint64_t>(uint64_t(n) * 1000) : std::nullopt);
    if (lose_one) world.gone.insert(int(n % setting.members));
    {
      auto reader = world.open(*solo, false, false);
      Bytes seen;
      read_after_crash(reader, model, seen);
      if (::testing::Test::HasFatalFailure()) return;
      if (repair_first) repair_after_crash(world, seen);
      if (::testing::Test::HasFatalFailure()) return;
    }
    // The next writer goes on where the dead one stopped, and what it syncs is whole.
    auto file = world.open(*solo);
    ASSERT_TRUE(file.ok()) << file.status().sentence();
    Model now{read_all_of(**file)};
    ASSERT_TRUE(model.allows(now.bytes));
    const Bytes data = random_bytes(random, row + 5);
    const Extent extent{row / 2, data.size()};
    ASSERT_TRUE((*file)->write(std::span(&extent, 1), data).ok());
    now.write(extent.offset, data);
    Status closed = (*file)->close();
    ASSERT_TRUE(closed.ok()) << closed.sentence();
    auto again = world.open(*solo, false, false);
    ASSERT_TRUE(again.ok());
    ASSERT_TRUE(same(now.bytes, read_all_of(**again)));
  }
}

// One run of a job of `count` ranks that writes, syncs and closes until storage no longer answers; all ranks take turns by the seed.
// Adds to the model what was asked for, and what came to be synced.
uint64_t run_job(World& world, int count, uint64_t seed, CrashModel& model) {
  const uint64_t row = world.identity.geometry.row_bytes();
  return on_ranks(count, seed, [&](int rank, exchange::Exchange& ranks) {
    std::mt19937_64 random(seed);  // the same on all ranks: each knows what the others do
    auto file = world.open(ranks);
    if (!file.ok()) return;
    Model now{model.synced};
    ranks.barrier();
    for (int step = 0; step < 6; ++step) {
      std::vector<Extent> mine;
      Bytes data;
      uint64_t at = random() % (2 * row);
      for (int piece = 0; piece < 6; ++piece) {
        const Bytes bytes = random_bytes(random, 1 + random() % (piece % 3 ? row / 3 : 2 * row));
        now.write(at, bytes);
        if (rank == 0) model.write(at, bytes);
        if (int(random() % uint64_t(count)) == rank) {
          mine.push_back({at, bytes.size()});
          data.insert(data.end(), bytes.begin(), bytes.end());
        }
        at += bytes.size() + (random() % 3 ? 0 : random() % row);
      }
      const Status wrote = random() % 2 ? (*file)->write(mine, data) : (*file)->write_all(mine, data);
      // Ranks that could not write tell the others, as a program does: nobody goes on alone.
      if (ranks.all_max({wrote.ok() ? 0 : 1})[0] != 0) break;
      const bool synced = (*file)->sync().ok();
      if (ranks.all_max({synced ? 0 : 1})[0] != 0) break;
      if (rank == 0) model.sync(now.bytes);
      ranks.barrier();
    }
    (void)(*file)->close();
  });
}

void job_of_ranks_dies(const Setting& setting, bool power, bool lose_one) {
  bool crashed = true;
  for (int64_t n = 1; crashed; n += 1 + n / 12) {
    SCOPED_TRACE(name_of(setting) + ", dies at call " + std::to_string(n));
    World world(setting.scheme, setting.placement, setting.members);
    auto solo = exchange::make_solo();
    CrashModel model;
    {
      auto file = world.open(*solo, true);
      ASSERT_TRUE(file.ok());
      std::mt19937_64 random(3);
      const Bytes first = random_bytes(random, 2 * world.identity.geometry.row_bytes() + 77);
      const Extent extent{0, first.size()};
      ASSERT_TRUE((*file)->write(std::span(&extent, 1), first).ok());
      ASSERT_TRUE((*file)->close().ok());
      model.sync(first);
    }
    world.gate->die_at = world.gate->calls + n;
    world.settings.cb_nodes = int(n % 4);
    run_job(world, 3, uint64_t(n), model);
    crashed = world.gate->dead();
    world.after_crash(power ? std::optional<uint64_t>(uint64_t(n) * 1000) : std::nullopt);
    if (lose_one) world.gone.insert(int(n % setting.members));
    auto reader = world.open(*solo, false, false);
    Bytes seen;
    read_after_crash(reader, model, seen);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST_P(RandomOperations, survive_a_job_of_three_ranks_that_dies_at_any_call) { job_of_ranks_dies(GetParam(), false, false); }

TEST_P(RandomOperations, survive_a_power_failure_under_a_job_of_three_ranks_together_with_a_target) {
  job_of_ranks_dies(GetParam(), true, std::string(GetParam().scheme) != "mirror:1");
}

TEST_P(RandomOperations, of_several_ranks_replay_from_their_seed) {
  auto order = [&](uint64_t seed) {
    World world(GetParam().scheme, GetParam().placement, GetParam().members);
    auto solo = exchange::make_solo();
    EXPECT_TRUE((*world.open(*solo, true))->close().ok());
    CrashModel model;
    return run_job(world, 3, seed, model);
  };
  EXPECT_EQ(order(11), order(11));
  EXPECT_NE(order(11), order(12));
}

TEST_P(RandomOperations, survive_a_process_that_dies_at_any_call) { crash_at_every_call(GetParam(), false, false); }

TEST_P(RandomOperations, survive_a_process_that_dies_together_with_a_target) {
  if (std::string(GetParam().scheme) == "mirror:1") return;  // bears no loss
  crash_at_every_call(GetParam(), false, true);
}

TEST_P(RandomOperations, of_a_process_that_dies_at_any_call_leave_nothing_after_a_repair) { crash_at_every_call(GetParam(), false, false, true); }

TEST_P(RandomOperations, survive_a_power_failure_at_any_call) { crash_at_every_call(GetParam(), true, false); }

INSTANTIATE_TEST_SUITE_P(Schemes, RandomOperations, ::testing::ValuesIn(all_settings), [](const auto& info) { return identifier_of(info.param); });

}  // namespace
}  // namespace holdfast::sim
