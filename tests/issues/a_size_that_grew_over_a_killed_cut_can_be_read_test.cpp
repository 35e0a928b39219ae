// A program was killed in MPI_File_set_size, before the objects were cut. Another one made the file longer again while a third had it open, which
// died: whoever made the cut then left the records shorter than the rows, and rows that nobody had written were lost.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

constexpr uint64_t rows_before = 4, cut_row = 1, rows_after = 12;

class GrownOverAKilledCut : public testing::TestWithParam<Setting> {
 protected:
  GrownOverAKilledCut() : world(GetParam().scheme, GetParam().placement, GetParam().members) {}

  uint64_t row_bytes() const { return world.identity.geometry.row_bytes(); }
  void write_and_close(uint64_t row, uint64_t rows, int value, bool fresh = false) {
    auto solo = exchange::make_solo();
    auto file = world.open(*solo, fresh);
    ASSERT_TRUE(file.ok()) << file.status().sentence();
    const Bytes bytes(rows * row_bytes(), std::byte(value));
    const Extent extent{row * row_bytes(), bytes.size()};
    ASSERT_TRUE((*file)->write({&extent, 1}, bytes).ok());
    ASSERT_TRUE((*file)->close().ok());
  }
  // The first is the lone opener; the second is killed at its n-th call while it cuts. True where it came to its end before.
  bool run(int64_t calls) {
    Schedule schedule{uint64_t(calls)};
    const auto wait_for = [](const auto& what) {
      while (!what()) Schedule::yield(true);
    };
    bool lone_open = false, grown = false, finished = false;
    int lone = -1, cutter = -1;
    lone = schedule.add([&] {
      auto solo = exchange::make_solo();
      auto file = world.open(*solo);
      ASSERT_TRUE(file.ok()) << file.status().sentence();
      lone_open = true;
      wait_for([&] { return grown; });
      schedule.kill(lone);
      (void)(*file)->size();
    });
    schedule.add([&] {
      auto solo = exchange::make_solo();
      wait_for([&] { return cutter >= 0 && (schedule.is_dead(cutter) || schedule.has_ended(cutter)); });
      auto file = world.open(*solo);
      ASSERT_TRUE(file.ok()) << file.status().sentence();
      const Status longer = (*file)->set_size(rows_after * row_bytes());
      EXPECT_TRUE(longer.ok()) << longer.sentence();
      EXPECT_TRUE((*file)->close().ok());
      grown = true;
    });
    cutter = schedule.add([&] {
      auto solo = exchange::make_solo();
      wait_for([&] { return lone_open; });
      auto file = world.open(*solo);
      ASSERT_TRUE(file.ok()) << file.status().sentence();
      schedule.kill_after(cutter, calls);
      finished = (*file)->set_size(cut_row * row_bytes() + row_bytes() / 3).ok() && !Schedule::dead();
    });
    schedule.run();
    return finished;
  }
  void expect_readable(const char* when) {
    auto solo = exchange::make_solo();
    auto file = world.open(*solo, false, false);
    ASSERT_TRUE(file.ok()) << when << ": " << file.status().sentence();
    Bytes seen(rows_after * row_bytes());
    const Extent whole{0, seen.size()};
    auto got = (*file)->read({&whole, 1}, seen);
    ASSERT_TRUE(got.ok()) << when << ": " << got.status().sentence();
    EXPECT_EQ(*got, seen.size()) << when;
    EXPECT_TRUE(std::all_of(seen.begin(), seen.begin() + long(cut_row * row_bytes()), [](std::byte b) { return b == std::byte(7); })) << when;
    EXPECT_TRUE(std::all_of(seen.begin() + long(rows_before * row_bytes()), seen.begin() + long((rows_after - 1) * row_bytes()), [](std::byte b) {
      return b == std::byte(0);
    })) << when;
  }

  World world;
};

TEST_P(GrownOverAKilledCut, can_be_read_before_and_after_the_cut_is_made) {
  bool finished = false;
  const bool many = GetParam().members > layout::max_members;
  for (int64_t calls = 1; !finished && calls < most_calls * GetParam().members; calls += many ? 1 + calls / 12 : 1) {
    SCOPED_TRACE(calls);
    world = World(GetParam().scheme, GetParam().placement, GetParam().members);
    write_and_close(0, rows_before, 7, true);
    finished = run(calls);
    world.after_crash();
    expect_readable("before");
    write_and_close(rows_after - 1, 1, 9);
    expect_readable("after");
    auto checked = engine::verify(world.locate(), world.settings, nullptr);
    ASSERT_TRUE(checked.ok()) << checked.status().sentence();
    EXPECT_EQ(checked->finding_count, 0u) << checked->findings[0].what << " " << checked->findings[0].detail;
    if (HasFailure()) return;
  }
  EXPECT_TRUE(finished) << "a cut makes more calls than were tried";
}

constexpr Setting settings[] = {{"rs:2+1", layout::Placement::interleaved, 3},
                                {"mirror:2", layout::Placement::separate, 2},
                                {"rs:2+1", layout::Placement::interleaved, 66}};
INSTANTIATE_TEST_SUITE_P(Schemes, GrownOverAKilledCut, testing::ValuesIn(settings),
                         [](const auto& info) { return identifier_of(name_of(info.param)); });

}  // namespace
}  // namespace holdfast::sim
