// The network between nodes is cut in two while a program writes. Where a scheme bears the loss of half of its members (mirrors, rs:4+4), each
// side has enough of them. One side alone reaches the sidecar; the other one's failure to write it was passed over, and both went on.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

struct Sides {
  const char* scheme;
  int first;              // members that the first process keeps; the second one has the others
  int reach_sidecar = 1;  // the process that does
};

class TwoHalves : public testing::TestWithParam<Sides> {
 protected:
  static constexpr int with_first = 1, with_second = 2;

  static Status write(engine::ProtectedFile& file, uint64_t offset, uint64_t count, int value) {
    const Bytes bytes(count, std::byte(value));
    const Extent extent{offset, count};
    return file.write({&extent, 1}, bytes);
  }
  static void cut(World& world) {
    const int members = world.identity.geometry.members;
    for (int member = 0; member < members; ++member) world.gate->fail_on_rank(member, member < GetParam().first ? 1 : 0, Kind::io);
    std::lock_guard guard(world.path->mutex);
    world.path->hidden_from.insert(1 - GetParam().reach_sidecar);
  }
  static void join(World& world) {
    for (int member = 0; member < world.identity.geometry.members; ++member) world.gate->heal(member);
    std::lock_guard guard(world.path->mutex);
    world.path->hidden_from.clear();
  }
  static void make(World& world) {
    auto solo = exchange::make_solo();
    auto file = world.open(*solo, true);
    ASSERT_TRUE(file.ok()) << file.status().sentence();
    ASSERT_TRUE(write(**file, 0, 2 * world.identity.geometry.row_bytes(), 9).ok());
    ASSERT_TRUE((*file)->close().ok());
  }
  // Each its own half of every row. What they were told: whether it is safe.
  static Status write_and_close(World& world, int value) {
    auto solo = exchange::make_solo();
    auto file = world.open(*solo);
    if (!file.ok()) return file.status();
    const uint64_t row = world.identity.geometry.row_bytes();
    const uint64_t half = value == with_first ? 0 : row / 2;
    const Status first = write(**file, half, row / 2, value), second = write(**file, row + half, row / 2, value);
    const Status closed = (*file)->close();
    return first.ok() ? second.ok() ? closed : second : first;
  }
  static std::string bytes_of(World& world) {
    auto solo = exchange::make_solo();
    auto file = world.open(*solo, false, false);
    if (!file.ok()) return file.status().sentence();
    const uint64_t row = world.identity.geometry.row_bytes();
    Bytes seen(2 * row);
    const Extent whole{0, seen.size()};
    if (auto got = (*file)->read({&whole, 1}, seen); !got.ok()) return got.status().sentence();
    return fmt::format("{}{}{}{}", int(seen[0]), int(seen[row / 2]), int(seen[row]), int(seen[row + row / 2]));
  }
};

TEST_P(TwoHalves, of_a_network_write_one_truth) {
  bool reached = true;
  for (int64_t call = 0; call < most_calls && reached; ++call) {
    World world(GetParam().scheme);
    make(world);
    const int members = world.identity.geometry.members;
    const int64_t begin = world.gate->calls;
    Status of_first(Kind::io, "never ended"), of_second(Kind::io, "never ended");
    bool done = false, was_cut = false;
    Schedule schedule{uint64_t(call)};
    schedule.add([&] {
      of_first = write_and_close(world, with_first);
      done = true;
    });
    schedule.add([&] {
      while (world.gate->calls < begin + call && !done) Schedule::yield(true);
      was_cut = !done;
      cut(world);
      while (!done) Schedule::yield(true);
      of_second = write_and_close(world, with_second);
    });
    schedule.run();
    reached = was_cut;
    join(world);
    const std::string there = bytes_of(world);
    const std::string told = fmt::format("cut at call {}; first: {}; second: {}; there: {}", call, of_first.sentence(), of_second.sentence(), there);
    ASSERT_EQ(there.size(), 4u) << told;  // no side's loss is more than it bears
    EXPECT_TRUE(!of_first.ok() || (there[0] == '1' && there[2] == '1')) << told;
    EXPECT_TRUE(!of_second.ok() || (there[1] == '2' && there[3] == '2')) << told;
    auto located = world.locate();
    const auto repaired = engine::repair(located, world.settings, nullptr);
    ASSERT_TRUE(repaired.ok()) << repaired.status().sentence() << "; " << told;
    for (int member = members - world.identity.geometry.scheme.m; member < members; ++member) world.gate->fail(member, Kind::io);
    ASSERT_EQ(bytes_of(world), there) << "after a repair, without the last members; " << told;
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_FALSE(reached) << "the program makes more calls than were tried";
}

INSTANTIATE_TEST_SUITE_P(Schemes, TwoHalves,
                         testing::Values(Sides{"mirror:2", 1}, Sides{"mirror:3", 1}, Sides{"mirror:3", 2}, Sides{"rs:2+2", 2}, Sides{"rs:4+4", 4},
                                         Sides{"rs:4+2", 4}, Sides{"rs:4+2", 3}, Sides{"mirror:2", 1, 0}, Sides{"mirror:3", 1, 0},
                                         Sides{"mirror:3", 2, 0}, Sides{"rs:4+4", 4, 0}),
                         [](const auto& info) {
                           return identifier_of(info.param.scheme) + "_" + std::to_string(info.param.first) +
                                  (info.param.reach_sidecar == 0 ? "_sidecar_with_the_first" : "");
                         });

// The half that cannot reach the sidecar may have tried more often, and be further in its epochs.
TEST(Halves, that_never_counted_are_passed_over_also_with_later_epochs) {
  World world("mirror:2");
  auto solo = exchange::make_solo();
  auto file = world.open(*solo, true);
  ASSERT_TRUE(file.ok()) << file.status().sentence();
  const Bytes bytes(100, std::byte(1));
  const Extent extent{0, bytes.size()};
  ASSERT_TRUE((*file)->write({&extent, 1}, bytes).ok() && (*file)->close().ok());
  const auto located = world.locate();
  const std::string name = located.meta_name(0, "manifest");
  const auto write = [&](int member, const layout::Manifest& manifest) {
    const std::string text = layout::encode(manifest);
    ASSERT_TRUE(located.members[size_t(member)].target->put(name, std::as_bytes(std::span(text.data(), text.size())), true).ok());
  };
  layout::Manifest counts = *world.path->manifest, never = counts;
  counts.epoch += 2, counts.members[0].stale = true;
  never.epoch += 10, never.members[1].stale = true, never.size = 7;
  counts.settled_epoch = counts.epoch, never.settled_epoch = never.epoch;
  write(0, never), write(1, counts);
  world.path->manifest = counts;
  auto again = world.open(*solo, false, false);
  ASSERT_TRUE(again.ok()) << again.status().sentence();
  EXPECT_EQ((*again)->located().manifest.epoch, counts.epoch);
  EXPECT_EQ(*(*again)->size(), 100u);
}

}  // namespace
}  // namespace holdfast::sim
