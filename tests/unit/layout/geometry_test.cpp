#include "layout/geometry.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <tuple>

namespace holdfast::layout {
namespace {

// Any geometry that check() lets pass.
rc::Gen<Geometry> any_geometry() {
  return rc::gen::exec([] {
    Geometry g;
    const bool mirror = *rc::gen::arbitrary<bool>();
    g.scheme.mirror = mirror;
    g.scheme.k = mirror ? 1 : *rc::gen::inRange(1, max_data_units + 1);
    g.scheme.m = mirror ? *rc::gen::inRange(0, max_mirrors) : *rc::gen::inRange(1, max_redundancy + 1);
    g.placement = *rc::gen::element(Placement::interleaved, Placement::separate);
    g.single_directory = *rc::gen::arbitrary<bool>();
    g.members = g.single_directory ? g.scheme.width() : *rc::gen::inRange(g.scheme.width(), max_pool_members + 1);
    g.start = *rc::gen::inRange(0, g.members);
    g.unit_bytes = min_unit_bytes * uint64_t(*rc::gen::inRange(1, 300));
    g.block_bytes = block_bytes_for(g.unit_bytes);
    return g;
  });
}

using Slot = std::tuple<int, int, uint64_t>;
Slot slot_of(const UnitPlace& p) { return {p.member, p.object, p.offset}; }

RC_GTEST_PROP(Geometry, what_the_generator_makes_is_sound, ()) {
  const Geometry g = *any_geometry();
  RC_ASSERT(g.check().ok());
}

RC_GTEST_PROP(Geometry, no_two_units_share_a_place_and_the_units_of_a_row_lie_on_distinct_members, ()) {
  const Geometry g = *any_geometry();
  const uint64_t first = *rc::gen::inRange<uint64_t>(0, 1u << 20);
  std::set<Slot> taken;
  for (uint64_t row = first; row < first + 40; ++row) {
    std::set<int> members;
    for (int unit = 0; unit < g.scheme.width(); ++unit) {
      const UnitPlace p = place(g, row, unit);
      RC_ASSERT(p.member >= 0 && p.member < g.members);
      RC_ASSERT(p.object >= 0 && p.object < object_count(g));
      RC_ASSERT(holds(g, p.member, p.object));
      RC_ASSERT(p.offset % g.unit_bytes == 0u);
      RC_ASSERT(taken.insert(slot_of(p)).second);
      members.insert(p.member);
    }
    RC_ASSERT(int(members.size()) == g.scheme.width());
  }
}

RC_GTEST_PROP(Geometry, in_one_address_space_units_of_different_members_do_not_overlap_either, ()) {
  // In a single directory several virtual members share an object: there the offset alone must be distinct.
  Geometry g = *any_geometry();
  g.single_directory = true;
  g.members = g.scheme.width();
  g.start = 0;
  std::set<std::pair<int, uint64_t>> taken;
  for (uint64_t row = 0; row < 40; ++row)
    for (int unit = 0; unit < g.scheme.width(); ++unit) {
      const UnitPlace p = place(g, row, unit);
      RC_ASSERT(taken.insert(std::pair(p.object, p.offset)).second);
    }
}

RC_GTEST_PROP(Geometry, objects_grow_densely_over_rows, ()) {
  // No member's object is longer than the rows that it holds a part of: nothing but redundancy files of a single directory is sparse.
  Geometry g = *any_geometry();
  RC_PRE(!g.single_directory);
  const uint64_t rows = uint64_t(g.members) * 2;  // every member has had its turn the same number of times
  std::map<std::pair<int, int>, std::set<uint64_t>> slots;
  for (uint64_t row = 0; row < rows; ++row)
    for (int unit = 0; unit < g.scheme.width(); ++unit) {
      const UnitPlace p = place(g, row, unit);
      slots[{p.member, p.object}].insert(p.offset / g.unit_bytes);
    }
  for (const auto& [where, offsets] : slots) RC_ASSERT(*offsets.rbegin() == offsets.size() - 1);
}

RC_GTEST_PROP(Geometry, a_rows_record_lies_on_all_members_or_in_a_wide_file_on_those_of_its_units, ()) {
  const Geometry g = *any_geometry();
  const uint64_t row = *rc::gen::inRange<uint64_t>(0, 1u << 20);
  const MemberSet holders = record_holders(g, row);
  MemberSet of_units;
  for (int unit = 0; unit < g.scheme.width(); ++unit) of_units.add(place(g, row, unit).member);
  RC_ASSERT(g.is_wide() == (g.members > max_members));
  RC_ASSERT(holders == (g.is_wide() ? of_units : MemberSet::first(g.members)));
  RC_ASSERT(holders.count() == (g.is_wide() ? g.scheme.width() : g.members));
}

TEST(Geometry, interleaved_in_one_file_is_the_papers_displacement_of_every_copy) {
  // Copy j of block i under R-fold replication lies at d = S*j + S*i*R (datatype D_j of the paper).
  for (int copies = 1; copies <= max_mirrors; ++copies) {
    Geometry g{{1, copies - 1, true}, Placement::interleaved, true, copies, 0, 65536, 32768};
    ASSERT_TRUE(g.check().ok());
    for (uint64_t i = 0; i < 100; ++i)
      for (int j = 0; j < copies; ++j) EXPECT_EQ(place(g, i, j), (UnitPlace{j, 0, 65536 * uint64_t(j) + 65536 * i * uint64_t(copies)}));
  }
}

TEST(Geometry, interleaved_over_directories_rotates_so_that_every_target_carries_data_and_redundancy) {
  const Geometry g{{4, 2, false}, Placement::interleaved, false, 7, 3, 4096, 4096};
  std::map<int, int> data, redundancy;
  for (uint64_t row = 0; row < 70; ++row)
    for (int unit = 0; unit < 6; ++unit) {
      const UnitPlace p = place(g, row, unit);
      // 7 rows fill 6 slots of every target; then the pattern begins one target further.
      EXPECT_EQ(p.member, int((3 + row * 6 + uint64_t(unit) + row / 7) % 7));
      ++(unit < 4 ? data : redundancy)[p.member];
    }
  for (int member = 0; member < 7; ++member) {
    EXPECT_EQ(data[member], 40);
    EXPECT_EQ(redundancy[member], 20);
  }
}

TEST(Geometry, redundancy_rotates_also_where_targets_and_units_have_a_common_divisor) {
  for (int members : {6, 8, 9, 12}) {
    const Geometry g{{4, 2, false}, Placement::interleaved, false, members, 0, 4096, 4096};
    std::map<int, int> redundancy;
    std::set<std::pair<int, uint64_t>> taken;
    const uint64_t rows = 36;
    for (uint64_t row = 0; row < rows; ++row)
      for (int unit = 0; unit < 6; ++unit) {
        const UnitPlace p = place(g, row, unit);
        EXPECT_TRUE(taken.emplace(p.member, p.offset).second) << "two units at one place";
        if (unit >= 4) ++redundancy[p.member];
      }
    for (int member = 0; member < members; ++member) EXPECT_EQ(redundancy[member], int(rows) * 2 / members) << members;
  }
  const Geometry g{{4, 2, false}, Placement::interleaved, false, 6, 0, 4096, 4096};
  EXPECT_EQ(place(g, 0, 0), (UnitPlace{0, 0, 0}));
  EXPECT_EQ(place(g, 0, 5), (UnitPlace{5, 0, 0}));
  EXPECT_EQ(place(g, 9, 2), (UnitPlace{5, 0, 9 * 4096}));
}

TEST(Geometry, separate_in_a_single_directory_keeps_the_data_a_plain_file) {
  const Geometry g{{4, 2, false}, Placement::separate, true, 6, 0, 4096, 4096};
  for (uint64_t row = 0; row < 50; ++row) {
    for (int unit = 0; unit < 4; ++unit) EXPECT_EQ(place(g, row, unit), (UnitPlace{unit, 0, row * g.row_bytes() + uint64_t(unit) * 4096}));
    EXPECT_EQ(place(g, row, 4), (UnitPlace{4, 1, row * g.row_bytes()}));
    EXPECT_EQ(place(g, row, 5), (UnitPlace{5, 2, row * g.row_bytes()}));
  }
}

TEST(Geometry, separate_mirrors_over_directories_are_whole_plain_copies) {
  const Geometry g{{1, 2, true}, Placement::separate, false, 5, 4, 4096, 4096};
  for (uint64_t row = 0; row < 50; ++row)
    for (int unit = 0; unit < 3; ++unit) EXPECT_EQ(place(g, row, unit), (UnitPlace{(4 + unit) % 5, unit, row * 4096}));
}

TEST(Geometry, what_is_not_a_scheme_is_refused_with_one_that_is) {
  for (const char* text : {"",
                           "mirror",
                           "mirror:",
                           "mirror:0",
                           "mirror:9",
                           "mirror:-1",
                           "mirror:3x",
                           "mirror: 3",
                           "rs:4",
                           "rs:4+",
                           "rs:+2",
                           "rs:0+2",
                           "rs:33+2",
                           "rs:4+0",
                           "rs:4+9",
                           "rs:4+2+1",
                           "rs:4-2",
                           "RS:4+2",
                           "rs:99999999999999999999+2",
                           "raid5",
                           "rs:4+2 "}) {
    auto scheme = Scheme::parse(text);
    EXPECT_EQ(scheme.status().kind(), Kind::invalid) << text;
    EXPECT_NE(scheme.status().sentence().find("rs:4+2"), std::string::npos) << text;
  }
}

TEST(Geometry, every_scheme_has_one_name) {
  for (int copies = 1; copies <= max_mirrors; ++copies) {
    const Scheme scheme{1, copies - 1, true};
    EXPECT_EQ(*Scheme::parse(scheme.name()), scheme);
  }
  for (int k = 1; k <= max_data_units; ++k)
    for (int m = 1; m <= max_redundancy; ++m) EXPECT_EQ(*Scheme::parse((Scheme{k, m, false}).name()), (Scheme{k, m, false}));
}

TEST(Geometry, what_cannot_be_is_refused_with_a_sentence) {
  const Geometry good{{4, 2, false}, Placement::interleaved, false, 6, 0, 65536, 32768};
  ASSERT_TRUE(good.check().ok());
  auto refused = [&](auto change) {
    Geometry g = good;
    change(g);
    const Status status = g.check();
    EXPECT_EQ(status.kind(), Kind::invalid);
    EXPECT_FALSE(status.sentence().empty());
  };
  refused([](Geometry& g) { g.scheme.k = 0; });
  refused([](Geometry& g) { g.scheme.k = 33; });
  refused([](Geometry& g) { g.scheme.m = 9; });
  refused([](Geometry& g) { g.scheme.m = -1; });
  refused([](Geometry& g) { g.scheme.m = 0; });          // rs:4+0 protects nothing and has no name
  refused([](Geometry& g) { g.scheme.mirror = true; });  // a mirror of four data units
  refused([](Geometry& g) { g.members = 5; });
  refused([](Geometry& g) { g.members = max_pool_members + 1; });
  refused([](Geometry& g) { g.start = 6; });
  refused([](Geometry& g) { g.start = -1; });
  refused([](Geometry& g) { g.unit_bytes = 0; });
  refused([](Geometry& g) { g.unit_bytes = 65536 + 512; });
  refused([](Geometry& g) { g.unit_bytes = 512ull << 20; });
  refused([](Geometry& g) { g.block_bytes = 0; });
  refused([](Geometry& g) { g.block_bytes = 131072; });
  refused([](Geometry& g) { g.unit_bytes = 4096; });  // the block does not fit
  refused([](Geometry& g) { g.single_directory = true, g.members = 7; });
  refused([](Geometry& g) { g.single_directory = true, g.start = max_start + 1; });
  EXPECT_NE(
      [&] {
        Geometry g = good;
        g.members = 3;
        return g.check().sentence();
      }()
          .find("rs:4+2 needs 6 targets and 3"),
      std::string::npos);
}

TEST(Geometry, the_checksum_block_divides_the_unit_and_is_at_most_32_KiB) {
  for (uint64_t unit = min_unit_bytes; unit <= (4 << 20); unit += min_unit_bytes) {
    const uint32_t block = block_bytes_for(unit);
    ASSERT_EQ(unit % block, 0u);
    ASSERT_TRUE(block >= 4096 && block <= 32768);
    ASSERT_TRUE(block == 32768 || unit % (2 * block) != 0);
  }
}

}  // namespace
}  // namespace holdfast::layout
