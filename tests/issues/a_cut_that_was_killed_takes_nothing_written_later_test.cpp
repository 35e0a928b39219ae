// A program was killed in MPI_File_set_size, between the manifest that says the new size and the cut of the objects. Another, which had the file
// open already, left the cut for later, committed rows behind it, and made it then: its own synced rows were gone.
#include <gtest/gtest.h>

#include "engine/object_sizes.hpp"
#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

constexpr uint64_t rows_before = 4, cut_row = 1, row_of_the_other = 6, row_of_the_lone = 8;

enum class Lone { closes, dies, writes };

// The first opener may write whole rows at any time. The second one is killed while it cuts; the third one writes behind the cut.
class KilledCut : public testing::TestWithParam<Setting> {
 protected:
  KilledCut() : world_(make_world()) {}
  static World make_world() { return World(GetParam().scheme, GetParam().placement, GetParam().members); }
  uint64_t row_bytes() const { return world_.identity.geometry.row_bytes(); }
  uint64_t new_size() const { return cut_row * row_bytes() + row_bytes() / 3; }

  void write(engine::ProtectedFile& file, uint64_t row, uint64_t rows, int value) {
    const Bytes bytes(rows * row_bytes(), std::byte(value));
    const Extent extent{row * row_bytes(), bytes.size()};
    EXPECT_TRUE(file.write({&extent, 1}, bytes).ok());
  }
  static void expect_ok(const Status& status, const char* what) { EXPECT_TRUE(status.ok()) << what << ": " << status.sentence(); }
  void make_the_file() {
    auto solo = exchange::make_solo();
    auto file = world_.open(*solo, true);
    ASSERT_TRUE(file.ok()) << file.status().sentence();
    write(**file, 0, rows_before, 7);
    expect_ok((*file)->close(), "close");
  }

  // Killed at its n-th call on storage; true where it came to its end before.
  bool run(int64_t calls, Lone how) {
    Schedule schedule{uint64_t(calls)};
    const auto wait_for = [](const auto& what) {
      while (!what()) Schedule::yield(true);
    };
    bool lone_open = false, lone_is_ready = false, other_open = false, other_done = false;
    int lone = -1, cutter = -1;
    const auto cutter_gone = [&] { return cutter >= 0 && (schedule.is_dead(cutter) || schedule.has_ended(cutter)); };
    lone = schedule.add([&] {
      auto solo = exchange::make_solo();
      auto file = world_.open(*solo);
      ASSERT_TRUE(file.ok()) << file.status().sentence();
      lone_open = true;
      wait_for(cutter_gone);
      if (how == Lone::writes) {
        write(**file, row_of_the_lone, 1, 8);
        lone_is_ready = true;
        wait_for([&] { return other_done; });
      }
      if (how == Lone::dies) schedule.kill(lone);
      else expect_ok((*file)->close(), "close of the first");
      lone_is_ready = true;
    });
    schedule.add([&] {
      auto solo = exchange::make_solo();
      wait_for([&] { return lone_open; });
      auto file = world_.open(*solo);
      ASSERT_TRUE(file.ok()) << file.status().sentence();
      other_open = true;
      wait_for([&] { return cutter_gone() && lone_is_ready; });
      write(**file, row_of_the_other, 1, 9);
      expect_ok((*file)->sync(), "sync");
      other_done = true;
      expect_ok((*file)->close(), "close of the third");
    });
    bool finished = false;
    cutter = schedule.add([&] {
      auto solo = exchange::make_solo();
      wait_for([&] { return other_open; });
      auto file = world_.open(*solo);
      ASSERT_TRUE(file.ok()) << file.status().sentence();
      schedule.kill_after(cutter, calls);
      finished = (*file)->set_size(new_size()).ok() && !Schedule::dead();
      (void)(*file)->close();
    });
    schedule.run();
    return finished;
  }

  // Of what was cut off nothing or all is there.
  void expect_all(bool was_cut, Lone how) {
    const uint64_t row = row_bytes();
    auto solo = exchange::make_solo();
    auto file = world_.open(*solo, false, false);
    ASSERT_TRUE(file.ok()) << file.status().sentence();
    Bytes seen((how == Lone::writes ? row_of_the_lone : row_of_the_other) * row + row);
    const Extent whole{0, seen.size()};
    auto got = (*file)->read({&whole, 1}, seen);
    ASSERT_TRUE(got.ok()) << got.status().sentence();
    EXPECT_EQ(*got, seen.size());
    Bytes expected(seen.size());
    const auto lay = [&](uint64_t from, uint64_t to, int value) {
      std::fill(expected.begin() + long(from), expected.begin() + long(to), std::byte(value));
    };
    const bool cut = was_cut || seen[new_size()] == std::byte(0);
    lay(0, cut ? new_size() : rows_before * row, 7);
    lay(row_of_the_other * row, (row_of_the_other + 1) * row, 9);
    if (how == Lone::writes) lay(row_of_the_lone * row, (row_of_the_lone + 1) * row, 8);
    for (uint64_t at = 0; at < seen.size(); ++at) ASSERT_EQ(seen[at], expected[at]) << "byte " << at << " of row " << at / row;
    expect_copies(**file, expected);
  }
  // Whoever follows the link at the path reads a copy as it lies there.
  void expect_copies(const engine::ProtectedFile& file, const Bytes& expected) {
    const auto& located = file.located();
    for (int object = 0; object < layout::object_count(located.manifest.geometry) && engine::is_plain(located.manifest.geometry, object); ++object) {
      auto copy = world_.directories[size_t(object)]->snapshot_object(located.data_name(object));
      ASSERT_TRUE(copy.ok());
      ASSERT_EQ(copy->size(), expected.size());
      Bytes bytes(expected.size());
      copy->read(0, bytes);
      for (uint64_t at = 0; at < bytes.size(); ++at) ASSERT_EQ(bytes[at], expected[at]) << "byte " << at << " of copy " << object;
    }
  }

  World world_;
};

TEST_P(KilledCut, takes_nothing_written_later) {
  for (const Lone how : {Lone::closes, Lone::dies, Lone::writes}) {
    bool finished = false;
    for (int64_t calls = 1; calls < most_calls && !finished; ++calls) {
      world_ = make_world();
      make_the_file();
      finished = run(calls, how);
      expect_all(finished, how);
      ASSERT_FALSE(HasFailure()) << "killed at its call " << calls << ", the first opener's way is " << int(how);
    }
    EXPECT_TRUE(finished) << "it never came to its end";
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, KilledCut,
                         testing::Values(Setting{"mirror:2", layout::Placement::separate, 2}, Setting{"mirror:2", layout::Placement::interleaved, 2},
                                         Setting{"rs:2+1", layout::Placement::interleaved, 3}, Setting{"rs:4+2", layout::Placement::interleaved, 6}),
                         [](const auto& info) { return identifier_of(info.param); });

}  // namespace
}  // namespace holdfast::sim
