// Files of more members than a set can have. The record of a row lies on the row's own members alone; each of the others still has room for it.
#include <gtest/gtest.h>

#include <algorithm>

#include "layout/row_record.hpp"
#include "sim/replacement.hpp"

namespace holdfast::sim {
namespace {

class Wide : public ::testing::TestWithParam<Setting> {
 protected:
  static constexpr uint64_t rows = 40;

  Wide() : world(GetParam().scheme, GetParam().placement, GetParam().members) {}

  const layout::Geometry& geometry() const { return world.identity.geometry; }
  uint64_t row_bytes() const { return geometry().row_bytes(); }
  int bears() const { return geometry().scheme.m; }
  size_t slot_bytes() const { return layout::record_slot_bytes(geometry()); }
  std::string sums() const { return world.identity.directory + "/sums"; }
  std::vector<int> members_of(uint64_t row) const {
    std::vector<int> members;
    for (int unit = 0; unit < geometry().scheme.width(); ++unit) members.push_back(layout::place(geometry(), row, unit).member);
    return members;
  }

  void write(engine::ProtectedFile& file, uint64_t offset, const Bytes& bytes) {
    const Extent extent{offset, bytes.size()};
    const Status status = file.write(std::span(&extent, 1), bytes);
    ASSERT_TRUE(status.ok()) << status.sentence();
    model.write(offset, bytes);
  }
  void write_and_close(uint64_t offset, uint64_t bytes, bool fresh = false) {
    auto file = world.open(*solo, fresh);
    ASSERT_TRUE(file.ok()) << file.status().sentence();
    write(**file, offset, random_bytes(random, bytes));
    const Status closed = (*file)->close();
    ASSERT_TRUE(closed.ok()) << closed.sentence();
  }
  Result<Bytes> read(uint64_t offset, uint64_t bytes) {
    auto reader = world.open(*solo, false, false);
    if (!reader.ok()) return reader.status();
    Bytes seen(bytes);
    const Extent extent{offset, bytes};
    auto got = (*reader)->read(std::span(&extent, 1), seen);
    if (!got.ok()) return got.status();
    seen.resize(*got);
    return seen;
  }
  void expect_model() {
    auto seen = read(0, model.bytes.size() + 1);
    ASSERT_TRUE(seen.ok()) << seen.status().sentence();
    ASSERT_TRUE(*seen == model.bytes) << "the bytes differ";
  }
  void expect_sound() {
    auto checked = engine::verify(world.locate(), world.settings, nullptr);
    ASSERT_TRUE(checked.ok()) << checked.status().sentence();
    ASSERT_EQ(checked->finding_count, 0u) << checked->findings[0].what << " " << checked->findings[0].detail;
    EXPECT_EQ(checked->status.health, engine::Health::healthy);
    expect_model();
  }
  void expect_repairable() {
    auto located = world.locate();
    auto report = engine::repair(located, world.settings, nullptr);
    ASSERT_TRUE(report.ok()) << report.status().sentence();
    EXPECT_TRUE(report->lost_rows.empty());
    EXPECT_TRUE(report->left.empty()) << report->left[0];
    expect_sound();
  }

  World world;
  Model model;
  std::mt19937_64 random{5};
  std::unique_ptr<exchange::Exchange> solo = exchange::make_solo();
};

TEST_P(Wide, records_lie_on_the_rows_own_members_and_all_have_room_for_the_last_one) {
  write_and_close(0, rows * row_bytes() - 333, true);
  const uint64_t key = layout::file_key(world.identity.file_id);
  for (int member = 0; member < geometry().members; ++member) {
    auto object = world.directories[size_t(member)]->snapshot_object(sums());
    ASSERT_TRUE(object.ok()) << member << ": " << object.status().sentence();
    ASSERT_EQ(object->size(), rows * slot_bytes()) << member;
    for (uint64_t row = 0; row < rows; ++row) {
      Bytes slot(slot_bytes());
      object->read(row * slot_bytes(), slot);
      auto record = layout::decode_record(geometry(), key, row, slot);
      ASSERT_TRUE(record.ok());
      EXPECT_EQ(record->generation != 0, layout::record_holders(geometry(), row).has(member)) << "row " << row << " on " << member;
    }
  }
  expect_sound();
}

TEST_P(Wide, files_bear_the_loss_of_any_members_that_their_scheme_bears) {
  write_and_close(0, rows * row_bytes() + 333, true);
  for (int first = 0; first < geometry().members; first += 7) {
    SCOPED_TRACE(first);
    for (int i = 0; i < bears(); ++i) world.gate->fail((first + i) % geometry().members, Kind::io);
    expect_model();
    write_and_close(uint64_t(first) % rows * row_bytes() + 5, row_bytes());  // over what is there: through a journal
    expect_model();
    for (int i = 0; i < bears(); ++i) world.gate->heal((first + i) % geometry().members);
    auto status = engine::file_status(world.locate(), world.settings);
    ASSERT_TRUE(status.ok());
    EXPECT_EQ(status->members[size_t(first)].state, "stale");
    expect_repairable();
    if (HasFatalFailure()) return;
  }
  for (int i = 0; i <= bears(); ++i) world.gate->fail(members_of(7)[size_t(i)], Kind::io);
  EXPECT_EQ(read(7 * row_bytes(), row_bytes()).status().kind(), Kind::lost) << "one more than it bears";
  EXPECT_EQ(world.open(*solo).status().kind(), Kind::lost) << "to write";
}

TEST_P(Wide, what_nobody_wrote_reads_as_zeros_whoever_is_lost) {
  write_and_close(0, row_bytes(), true);
  write_and_close((rows - 1) * row_bytes(), row_bytes());
  expect_sound();
  for (const uint64_t hole : {uint64_t(1), rows / 2}) {
    for (int i = 0; i < bears(); ++i) world.gate->fail(members_of(hole)[size_t(i)], Kind::io);
    expect_model();
    for (int i = 0; i < bears(); ++i) world.gate->heal(members_of(hole)[size_t(i)]);
  }
  // Cut, and longer again.
  auto file = world.open(*solo);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->set_size(3 * row_bytes() + 17).ok());
  ASSERT_TRUE((*file)->set_size(rows * row_bytes()).ok());
  ASSERT_TRUE((*file)->close().ok());
  model.bytes.resize(3 * row_bytes() + 17);
  model.bytes.resize(rows * row_bytes());
  expect_sound();
}

TEST_P(Wide, records_that_are_cut_off_are_missed_and_no_holes) {
  write_and_close(0, rows * row_bytes(), true);
  const uint64_t row = 9;
  for (int i = 0; i < bears(); ++i) ASSERT_TRUE(world.directories[size_t(members_of(row)[size_t(i)])]->truncate_object(sums(), row * slot_bytes()));
  expect_model();
  auto status = engine::file_status(world.locate(), world.settings);
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->health, engine::Health::degraded);
  expect_repairable();
  for (const int member : members_of(row)) ASSERT_TRUE(world.directories[size_t(member)]->truncate_object(sums(), row * slot_bytes()));
  const auto seen = read(row * row_bytes(), row_bytes());
  EXPECT_EQ(seen.status().kind(), Kind::lost) << "all of its members have lost it: zeros would be wrong";
}

TEST_P(Wide, a_member_with_an_old_disk_is_found_out) {
  write_and_close(0, rows * row_bytes(), true);
  const int member = members_of(4)[1];
  const auto before = world.directories[size_t(member)]->snapshot();
  write_and_close(0, rows * row_bytes());
  world.directories[size_t(member)]->restore(before);
  expect_model();
  expect_repairable();
}

TEST_P(Wide, an_empty_disk_takes_a_members_place) {
  write_and_close(0, rows * row_bytes(), true);
  for (const int member : {0, geometry().members - 1}) {
    world.gone.insert(member);
    const EmptyTarget fresh{member};
    auto located = world.locate();
    fresh.offer(located);
    auto report = engine::repair(located, world.settings, nullptr);
    ASSERT_TRUE(report.ok()) << report.status().sentence();
    EXPECT_TRUE(located.replacements.empty());
    fresh.move_in(world);
    world.gone.erase(member);
    expect_sound();
  }
}

TEST_P(Wide, a_writer_that_dies_at_any_call_leaves_the_old_or_the_new) {
  bool died = true;
  for (int64_t n = 1; died; n += 1 + n / 12) {
    SCOPED_TRACE(n);
    world = World(GetParam().scheme, GetParam().placement, GetParam().members);
    model = {};
    write_and_close(0, 6 * row_bytes() + 99, true);
    const Bytes before = model.bytes;
    world.gate->die_at = world.gate->calls + n;
    if (auto file = world.open(*solo); file.ok()) {
      const Bytes bytes = random_bytes(random, 3 * row_bytes());
      const Extent extent{5 * row_bytes() + 7, bytes.size()};
      model.write(extent.offset, bytes);
      (void)(*file)->write(std::span(&extent, 1), bytes);
      (void)(*file)->close();
    }
    died = world.gate->dead();
    world.after_crash(uint64_t(n) * 7);
    auto seen = read(0, model.bytes.size() + 1);
    ASSERT_TRUE(seen.ok()) << seen.status().sentence();
    ASSERT_TRUE(*seen == before || *seen == model.bytes) << "half of each";
    model.bytes = *seen;
    expect_repairable();
    if (HasFatalFailure()) return;
  }
}

TEST_P(Wide, a_writer_that_dies_while_it_cuts_leaves_what_it_was_at_some_time) {
  bool died = true;
  for (int64_t n = 1; died; n += 1 + n / 12) {
    SCOPED_TRACE(n);
    world = World(GetParam().scheme, GetParam().placement, GetParam().members);
    model = {};
    write_and_close(0, 6 * row_bytes() + 99, true);
    std::vector<Bytes> states{model.bytes};
    world.gate->die_at = world.gate->calls + n;
    if (auto file = world.open(*solo); file.ok()) {
      for (const uint64_t bytes : {3 * row_bytes() + 17, 9 * row_bytes(), 2 * row_bytes(), 5 * row_bytes() + 1}) {
        model.bytes.resize(bytes);
        states.push_back(model.bytes);
        (void)(*file)->set_size(bytes);
      }
      (void)(*file)->close();
    }
    died = world.gate->dead();
    world.after_crash(uint64_t(n) * 7);
    auto seen = read(0, 10 * row_bytes());
    ASSERT_TRUE(seen.ok()) << seen.status().sentence();
    ASSERT_TRUE(std::find(states.begin(), states.end(), *seen) != states.end()) << seen->size() << " bytes";
    model.bytes = *seen;
    write_and_close(4 * row_bytes(), row_bytes());  // what was cut short is finished
    expect_repairable();
    if (HasFatalFailure()) return;
  }
}

TEST_P(Wide, a_cut_that_waits_for_a_killed_opener_leaves_room_for_all_records) {
  write_and_close(0, 6 * row_bytes(), true);
  {
    auto lone = world.open(*solo), second = world.open(*solo);
    ASSERT_TRUE(lone.ok() && second.ok());
    ASSERT_TRUE((*second)->set_size(3 * row_bytes()).ok());
    ASSERT_TRUE((*second)->set_size(rows * row_bytes()).ok());
    ASSERT_TRUE((*second)->close().ok());
    world.gate->die_at = world.gate->calls.load();  // the first one
  }
  world.after_crash();
  model.bytes.resize(3 * row_bytes());
  model.bytes.resize(rows * row_bytes());
  expect_model();
  write_and_close(5 * row_bytes(), row_bytes());  // the cut is made by who comes next
  expect_sound();
}

TEST_P(Wide, halves_of_a_network_write_nothing) {
  write_and_close(0, rows * row_bytes(), true);
  for (const bool upper : {false, true}) {
    for (int member = 0; member < geometry().members; ++member)
      if ((member >= geometry().members / 2) == upper) world.gate->fail(member, Kind::io);
    EXPECT_EQ(world.open(*solo).status().kind(), Kind::lost);
    for (int member = 0; member < geometry().members; ++member) world.gate->heal(member);
  }
  expect_sound();
}

constexpr Setting wide_settings[] = {{"rs:4+2", layout::Placement::interleaved, 100},
                                     {"mirror:3", layout::Placement::interleaved, 70},
                                     {"rs:2+1", layout::Placement::separate, 65}};
INSTANTIATE_TEST_SUITE_P(Schemes, Wide, ::testing::ValuesIn(wide_settings), [](const auto& info) { return identifier_of(info.param); });

}  // namespace
}  // namespace holdfast::sim
