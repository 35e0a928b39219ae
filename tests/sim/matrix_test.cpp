// Every kind of damage, on every kind of object, within and beyond what the scheme bears: what reads give, what status and
// verify say, what repair does.
#include <gtest/gtest.h>

#include <cstring>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

enum class Damage { erase, corrupt, truncate, stale_return, unmount, error };
enum class What { data, sums, manifest };
const char* name_of(Damage damage) {
  const char* names[] = {"erased", "corrupt", "truncated", "stale", "gone", "failing"};
  return names[int(damage)];
}
const char* name_of(What what) { return what == What::data ? "data" : what == What::sums ? "sums" : "manifest"; }

struct Case {
  const char* scheme;
  layout::Placement placement;
  int members;
};
const Case cases[] = {{"mirror:3", layout::Placement::separate, 3},
                      {"mirror:2", layout::Placement::interleaved, 2},
                      {"rs:4+2", layout::Placement::interleaved, 6},
                      {"rs:2+2", layout::Placement::separate, 5},
                      {"rs:3+1", layout::Placement::interleaved, 7}};

class Matrix : public ::testing::TestWithParam<std::tuple<Case, Damage, What>> {
 protected:
  Matrix() : world(std::get<0>(GetParam()).scheme, std::get<0>(GetParam()).placement, std::get<0>(GetParam()).members) {
    std::mt19937_64 random(3);
    content = random_bytes(random, 7 * world.identity.geometry.row_bytes() + 777);
    auto solo = exchange::make_solo();
    auto file = world.open(*solo, true);
    EXPECT_TRUE(file.ok());
    // An older content first, so that there is something stale to come back.
    Bytes older = random_bytes(random, content.size());
    const Extent all{0, content.size()};
    EXPECT_TRUE((*file)->write(std::span(&all, 1), older).ok());
    EXPECT_TRUE((*file)->close().ok());
    for (auto& directory : world.directories) snapshots.push_back(directory->snapshot());
    file = world.open(*solo);
    EXPECT_TRUE((*file)->write(std::span(&all, 1), content).ok());
    EXPECT_TRUE((*file)->close().ok());
  }

  std::vector<std::string> victims(int member) const {
    const What what = std::get<2>(GetParam());
    const catalog::Located located = const_cast<World&>(world).locate();
    if (what == What::sums) return {located.meta_name(member, "sums")};
    if (what == What::manifest) return {located.meta_name(member, "manifest")};
    std::vector<std::string> names;
    for (int object = 0; object < layout::object_count(world.identity.geometry); ++object)
      if (layout::holds(world.identity.geometry, member, object)) names.push_back(located.data_name(object));
    return names;
  }

  void damage(int member) {
    auto& directory = *world.directories[member];
    switch (std::get<1>(GetParam())) {
      case Damage::erase:
        for (const std::string& name : victims(member)) directory.remove_object(name);
        break;
      case Damage::corrupt:
        for (const std::string& name : victims(member))
          for (uint64_t bit = 5; directory.flip_bit(name, bit); bit += 8 * 100) {
          }
        break;
      case Damage::truncate:
        for (const std::string& name : victims(member)) directory.truncate_object(name, 10);
        break;
      case Damage::stale_return: directory.restore(snapshots[member]); break;
      case Damage::unmount: world.gone.insert(member); break;
      case Damage::error: world.gate->fail(member, Kind::io); break;
    }
  }
  void come_back(int member) {
    if (world.gone.contains(member)) world.replace(member);
    world.gate->heal(member);
  }

  // Members that hold a unit of every row, so that so many damaged ones are one too many for some row.
  std::vector<int> some_members(int count) const {
    std::vector<int> members;
    const auto& g = world.identity.geometry;
    for (int unit = 0; unit < count; ++unit) members.push_back(layout::place(g, 0, unit).member);
    return members;
  }

  World world;
  Bytes content;
  std::vector<target::MemoryDirectory::Snapshot> snapshots;
};

TEST_P(Matrix, up_to_m_are_invisible_named_and_mended) {
  const int m = world.identity.geometry.scheme.m;
  for (int member : some_members(m)) damage(member);
  auto solo = exchange::make_solo();
  Bytes seen(content.size());
  const Extent all{0, content.size()};
  {
    auto reader = world.open(*solo, false, false);
    ASSERT_TRUE(reader.ok()) << reader.status().sentence();
    auto got = (*reader)->read(std::span(&all, 1), seen);
    ASSERT_TRUE(got.ok()) << got.status().sentence();
    ASSERT_EQ(seen, content);
    // In order and in small steps too: what is read or rebuilt ahead is the same.
    std::fill(seen.begin(), seen.end(), std::byte(0));
    for (uint64_t at = 0; at < seen.size(); at += 3000) {
      const Extent part{at, std::min<uint64_t>(3000, seen.size() - at)};
      got = (*reader)->read(std::span(&part, 1), ByteSpan(seen).subspan(at, part.length));
      ASSERT_TRUE(got.ok()) << got.status().sentence();
    }
    ASSERT_EQ(seen, content);
  }
  auto verified = engine::verify(world.locate(), world.settings, nullptr);
  ASSERT_TRUE(verified.ok()) << verified.status().sentence();
  EXPECT_EQ(verified->status.health, engine::Health::degraded);
  EXPECT_EQ(verified->lost_rows, 0u);
  for (int member : some_members(m)) EXPECT_NE(verified->status.members[member].state, "ok") << member;

  for (int member : some_members(m)) come_back(member);
  auto located = world.locate();
  auto repaired = engine::repair(located, world.settings, nullptr);
  ASSERT_TRUE(repaired.ok()) << repaired.status().sentence();
  EXPECT_EQ(repaired->status.health, engine::Health::healthy);
  verified = engine::verify(world.locate(), world.settings, nullptr);
  ASSERT_TRUE(verified.ok());
  EXPECT_EQ(verified->finding_count, 0u) << verified->findings[0].what << " " << verified->findings[0].detail;

  // Whole again means: it bears the loss of m others.
  const int count = world.identity.geometry.members;
  for (int i = 0; i < m; ++i) world.gone.insert((some_members(m).back() + 1 + i) % count);
  auto again = world.open(*solo, false, false);
  ASSERT_TRUE(again.ok()) << again.status().sentence();
  std::fill(seen.begin(), seen.end(), std::byte(0));
  auto got = (*again)->read(std::span(&all, 1), seen);
  ASSERT_TRUE(got.ok()) << got.status().sentence();
  EXPECT_EQ(seen, content);
}

TEST_P(Matrix, more_than_m_give_the_truth_or_an_error_but_never_other_bytes) {
  const int m = world.identity.geometry.scheme.m;
  for (int member : some_members(m + 1)) damage(member);
  auto solo = exchange::make_solo();
  auto reader = world.open(*solo, false, false);
  if (!reader.ok()) return;  // refused as a whole
  const uint64_t step = 1000;
  for (uint64_t at = 0; at < content.size(); at += step) {
    Bytes seen(std::min<uint64_t>(step, content.size() - at));
    const Extent part{at, seen.size()};
    auto got = (*reader)->read(std::span(&part, 1), seen);
    if (!got.ok()) {
      EXPECT_NE(got.status().sentence().find(world.identity.path), std::string::npos) << got.status().sentence();
      continue;
    }
    ASSERT_EQ(std::memcmp(seen.data(), content.data() + at, seen.size()), 0) << "at " << at;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Matrix,
                         ::testing::Combine(::testing::ValuesIn(cases),
                                            ::testing::Values(Damage::erase, Damage::corrupt, Damage::truncate, Damage::stale_return, Damage::unmount,
                                                              Damage::error),
                                            ::testing::Values(What::data, What::sums, What::manifest)),
                         [](const auto& info) {
                           std::string name = std::string(std::get<0>(info.param).scheme) + "_" +
                                              layout::placement_name(std::get<0>(info.param).placement) + "_" + name_of(std::get<2>(info.param)) +
                                              "_" + name_of(std::get<1>(info.param));
                           for (char& c : name)
                             if (!isalnum(c)) c = '_';
                           return name;
                         });

// As a job in which every rank opens the file on MPI_COMM_SELF, or as two jobs at once.
TEST(SeveralOpeners, that_write_different_parts_of_the_same_rows_lose_nothing) {
  for (uint64_t seed = first_seed(); seed < first_seed() + 10; ++seed) {
    World world("rs:2+1");
    const uint64_t row = world.identity.geometry.row_bytes();
    {
      auto solo = exchange::make_solo();
      auto file = world.open(*solo, true);
      ASSERT_TRUE(file.ok());
      ASSERT_TRUE((*file)->close().ok());
    }
    const uint64_t piece = row / 5 + seed;
    const int openers = 4, pieces = 24;
    std::mt19937_64 random(seed);
    Bytes content = random_bytes(random, piece * pieces);
    std::vector<std::thread> threads;
    for (int opener = 0; opener < openers; ++opener)
      threads.emplace_back([&, opener] {
        auto solo = exchange::make_solo();
        for (int round = 0; round < 2; ++round) {
          auto file = world.open(*solo);
          ASSERT_TRUE(file.ok()) << file.status().sentence();
          for (int i = opener; i < pieces; i += openers) {
            if ((i / openers) % 2 != round) continue;
            const Extent extent{uint64_t(i) * piece, piece};
            Status status = (*file)->write(std::span(&extent, 1), ByteView(content).subspan(extent.offset, piece));
            ASSERT_TRUE(status.ok()) << status.sentence();
            if (i % 3 == 0) {
              ASSERT_TRUE((*file)->sync().ok());
            }
          }
          Status status = (*file)->close();
          ASSERT_TRUE(status.ok()) << status.sentence();
        }
      });
    for (auto& thread : threads) thread.join();
    auto solo = exchange::make_solo();
    auto reader = world.open(*solo, false, false);
    ASSERT_TRUE(reader.ok());
    ASSERT_EQ(*(*reader)->size(), content.size());
    Bytes seen(content.size());
    const Extent all{0, seen.size()};
    ASSERT_TRUE((*reader)->read(std::span(&all, 1), seen).ok());
    for (size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], content[i]) << "byte " << i << " of piece " << i / piece << ", seed " << seed;
    auto verified = engine::verify(world.locate(), world.settings, nullptr);
    ASSERT_TRUE(verified.ok());
    EXPECT_EQ(verified->finding_count, 0u);
  }
}

// Atomic mode: what one rank has written, the others read at once, without a sync.
TEST(AtomicMode, a_write_is_seen_by_other_ranks_when_it_has_returned) {
  World world("rs:2+1");
  const uint64_t row = world.identity.geometry.row_bytes();
  on_ranks(3, 1, [&](int rank, exchange::Exchange& ranks) {
    auto file = world.open(ranks, true);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->set_atomic(true).ok());
    for (int step = 0; step < 12; ++step) {
      const int writer = step % 3;
      const Extent extent{uint64_t(step) * row / 4, row / 2};
      const Bytes data(extent.length, std::byte(step + 1));
      if (rank == writer) {
        Status status = (*file)->write(std::span(&extent, 1), data);
        ASSERT_TRUE(status.ok()) << status.sentence();
      }
      ranks.barrier();
      Bytes seen(extent.length);
      auto got = (*file)->read(std::span(&extent, 1), seen);
      ASSERT_TRUE(got.ok()) << got.status().sentence();
      ASSERT_EQ(*got, extent.length);
      ASSERT_EQ(seen, data) << "step " << step << " rank " << rank;
      ranks.barrier();
    }
    ASSERT_TRUE((*file)->close().ok());
  });
}

// Two writers: one that is killed and one that runs on while the file is repaired.
TEST(Sessions, of_a_writer_that_runs_are_left_alone_by_a_repair) {
  World world("rs:2+1");
  const uint64_t row = world.identity.geometry.row_bytes();
  auto solo = exchange::make_solo();
  auto writer = world.open(*solo, true);
  ASSERT_TRUE(writer.ok());
  std::mt19937_64 random(first_seed());
  const Bytes data = random_bytes(random, 2 * row);
  const Extent all{0, data.size()};
  ASSERT_TRUE((*writer)->write(std::span(&all, 1), data).ok());
  auto located = world.locate();
  auto report = engine::repair(located, world.settings, nullptr);
  ASSERT_TRUE(report.ok()) << report.status().sentence();
  EXPECT_EQ(report->sessions_folded, 0u);
  EXPECT_EQ(report->status.manifest.open_generations.size(), 1u);
  ASSERT_TRUE((*writer)->close().ok());
  auto reader = world.open(*solo, false, false);
  ASSERT_TRUE(reader.ok());
  Bytes seen(data.size());
  ASSERT_TRUE((*reader)->read(std::span(&all, 1), seen).ok());
  EXPECT_EQ(seen, data);
}

// More killed writers than a manifest can list are refused with the mend, and one repair makes the file writable again.
TEST(Sessions, of_many_killed_writers_are_folded_away_by_one_repair) {
  World world("mirror:2");
  Status refused;
  int killed = 0;
  for (; killed < 5000 && refused.ok(); ++killed) {
    auto solo = exchange::make_solo();
    auto file = world.open(*solo, killed == 0);
    refused = file.status();
    world.gate->die_at = 0;
    if (file.ok()) file->reset();
    world.after_crash();
  }
  EXPECT_EQ(refused.kind(), Kind::busy);
  EXPECT_NE(refused.sentence().find("holdfast repair"), std::string::npos) << refused.sentence();
  auto located = world.locate();
  auto report = engine::repair(located, world.settings, nullptr);
  ASSERT_TRUE(report.ok()) << report.status().sentence();
  EXPECT_EQ(report->sessions_folded, uint64_t(killed - 1));
  auto solo = exchange::make_solo();
  EXPECT_TRUE(world.open(*solo).ok());
}

}  // namespace
}  // namespace holdfast::sim
