// A row that a killed writer never synced was left on a target that was away since. That target came back while the row was once more
// one that nobody had synced, and its record of before was left there: its generation had been closed meanwhile, so the row counted as
// synced, and as lost.
#include <gtest/gtest.h>

#include "layout/row_record.hpp"
#include "sim/replacement.hpp"

namespace holdfast {
namespace {

class NeverSyncedRow : public ::testing::Test {
 protected:
  static constexpr uint64_t rows = 4, unit_bytes = 4096, row_bytes = 2 * unit_bytes, row = 1;

  // Member 2 has a record of the row, of a writer that was killed; it is away when that one's generation is closed.
  NeverSyncedRow() {
    {
      auto maker = *world.open(*solo, true);
      EXPECT_TRUE(maker->set_size(rows * row_bytes).ok() && maker->close().ok());
    }
    {
      auto writer = *world.open(*solo);
      write_row(*writer, 7);
      kill_all();
    }
    world.after_crash();
    for (int member : {0, 1}) forget_record(member);
    world.gone.insert(2);
    auto located = locate();
    auto report = engine::repair(located, world.settings, nullptr);
    EXPECT_TRUE(report.ok()) << report.status().sentence();
    if (report.ok()) {
      EXPECT_EQ(report->sessions_folded, 1u);
    }
    EXPECT_TRUE(located.manifest.members[2].stale);
    world.gone.clear();
  }

  // With the manifest that the members have.
  catalog::Located locate() {
    catalog::Located located = world.locate();
    auto status = engine::file_status(located, world.settings);
    EXPECT_TRUE(status.ok()) << status.status().sentence();
    if (status.ok()) located.manifest = status->manifest;
    return located;
  }
  void kill_all() { world.gate->die_at = world.gate->calls.load(); }
  void write_row(engine::ProtectedFile& file, int value) {
    const Bytes bytes(row_bytes, std::byte(value));
    const Extent extent{row * row_bytes, row_bytes};
    const Status status = file.write({&extent, 1}, bytes);
    EXPECT_TRUE(status.ok()) << status.sentence();
  }
  // As a power failure does: what was not synced is gone.
  void forget_record(int member) {
    auto object =
        target::make_memory_target(world.directories[size_t(member)], "t")->open(world.identity.directory + "/sums", target::OpenMode::create);
    ASSERT_TRUE(object.ok()) << object.status().sentence();
    Bytes zeros(layout::record_slot_bytes(world.identity.geometry));
    const iovec from{zeros.data(), zeros.size()};
    ASSERT_TRUE((*object)->write(row * zeros.size(), {&from, 1}).ok());
  }
  // The row's units; and zeros before and after it.
  void expect_units(int first, int second) {
    auto reader = world.open(*solo, false, false);
    ASSERT_TRUE(reader.ok()) << reader.status().sentence();
    Bytes seen(rows * row_bytes, std::byte(1));
    const Extent whole{0, seen.size()};
    auto got = (*reader)->read({&whole, 1}, seen);
    ASSERT_TRUE(got.ok()) << got.status().sentence();
    Bytes expected(rows * row_bytes);
    std::fill_n(expected.begin() + row * row_bytes, unit_bytes, std::byte(first));
    std::fill_n(expected.begin() + row * row_bytes + unit_bytes, unit_bytes, std::byte(second));
    EXPECT_TRUE(seen == expected) << "the units begin with " << int(seen[row * row_bytes]) << " and " << int(seen[row * row_bytes + unit_bytes]);
  }
  sim::World world{"rs:2+1"};
  std::unique_ptr<exchange::Exchange> solo = exchange::make_solo();
  const sim::EmptyTarget fresh{1};
};

// What was written again is left on the member that is replaced, and the record of it there alone.
class NeverSyncedRowReplaced : public NeverSyncedRow {
 protected:
  NeverSyncedRowReplaced() {
    {
      auto writer = *world.open(*solo);
      write_row(*writer, 9);
      kill_all();
    }
    world.after_crash();
    forget_record(0);
  }
  void replace() {
    auto located = locate();
    fresh.offer(located);
    auto report = engine::repair(located, world.settings, nullptr);
    ASSERT_TRUE(report.ok()) << report.status().sentence();
    EXPECT_EQ(report->left, std::vector<std::string>());
    EXPECT_TRUE(report->lost_rows.empty());
    fresh.move_in(world);
  }
};

TEST_F(NeverSyncedRowReplaced, goes_along_where_it_verifies) {
  replace();
  expect_units(9, 9);
}

TEST_F(NeverSyncedRowReplaced, is_what_verifies_where_it_is_torn) {
  ASSERT_TRUE(world.directories[0]->flip_bit(world.identity.directory + "/data", 8 * unit_bytes * row));
  replace();
  expect_units(9, 0);
}

TEST_F(NeverSyncedRow, is_a_hole_where_it_came_back_beside_who_wrote_it_again) {
  {
    auto writer = *world.open(*solo);
    write_row(*writer, 9);
    auto located = locate();
    auto report = engine::repair(located, world.settings, nullptr);
    ASSERT_TRUE(report.ok()) << report.status().sentence();
    ASSERT_EQ(report->left.size(), 1u);
    EXPECT_NE(report->left[0].find("/t2 is not brought up to date: it holds rows that were given up"), std::string::npos) << report->left[0];
    kill_all();
  }
  world.after_crash();
  for (int member : {0, 1}) forget_record(member);
  expect_units(0, 0);
}

}  // namespace
}  // namespace holdfast
