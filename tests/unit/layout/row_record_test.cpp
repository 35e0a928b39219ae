#include "layout/row_record.hpp"

#include <gtest/gtest.h>

#include <random>

namespace holdfast::layout {
namespace {

constexpr uint64_t key = 0x1234567890abcdef;

Geometry geometry_of(int k, int m, uint64_t unit_bytes) {
  Geometry g;
  g.scheme = {k, m, false};
  g.members = k + m;
  g.unit_bytes = unit_bytes;
  g.block_bytes = block_bytes_for(unit_bytes);
  return g;
}

RowRecord random_record(const Geometry& g, uint64_t row, uint64_t generation) {
  std::mt19937_64 random(row * 31 + generation);
  RowRecord record{row, generation, {}};
  record.checksums.resize(size_t(g.scheme.width()) * g.blocks_per_unit());
  for (auto& checksum : record.checksums) checksum = random();
  return record;
}

Bytes slot_of(const Geometry& g, const RowRecord& record) {
  Bytes slot(record_slot_bytes(g), std::byte{0xee});
  encode_record(g, key, record, slot.data());
  return slot;
}

TEST(RowRecord, what_is_written_is_read_back) {
  for (auto [k, m, unit] : {std::tuple{4, 2, 1 << 20}, {1, 0, 4096}, {32, 8, 65536}, {3, 1, 12288}}) {
    const Geometry g = geometry_of(k, m, uint64_t(unit));
    EXPECT_EQ(record_slot_bytes(g) % 64, 0u);
    for (uint64_t row : {0ull, 1ull, 1ull << 40}) {
      const RowRecord record = random_record(g, row, row + 3);
      auto read = decode_record(g, key, row, slot_of(g, record));
      ASSERT_TRUE(read.ok()) << read.status().sentence();
      EXPECT_EQ(*read, record);
    }
  }
}

TEST(RowRecord, a_dropped_row_is_a_hole_with_a_generation) {
  const Geometry g = geometry_of(4, 2, 4096);
  auto read = decode_record(g, key, 7, slot_of(g, RowRecord{7, 12, {}}));
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read->hole());
  EXPECT_EQ(read->generation, 12u);
}

TEST(RowRecord, zeros_and_the_end_of_the_object_are_a_row_that_was_never_written) {
  const Geometry g = geometry_of(4, 2, 4096);
  for (size_t bytes : {record_slot_bytes(g), size_t(0), size_t(5)}) {
    auto read = decode_record(g, key, 7, Bytes(bytes));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->generation, 0u);
    EXPECT_EQ(read->row, 7u);
  }
}

TEST(RowRecord, every_altered_bit_is_noticed) {
  const Geometry g = geometry_of(2, 1, 4096);
  Bytes slot = slot_of(g, random_record(g, 5, 9));
  for (size_t bit = 0; bit < 8 * slot.size(); ++bit) {
    slot[bit / 8] ^= std::byte(1 << bit % 8);
    ASSERT_EQ(decode_record(g, key, 5, slot).status().kind(), Kind::corrupt) << "bit " << bit;
    slot[bit / 8] ^= std::byte(1 << bit % 8);
  }
}

TEST(RowRecord, every_cut_and_every_torn_write_is_noticed) {
  const Geometry g = geometry_of(4, 2, 32768);
  const Bytes before = slot_of(g, random_record(g, 5, 9)), after = slot_of(g, random_record(g, 5, 10));
  for (size_t bytes = 1; bytes < before.size(); ++bytes) {
    EXPECT_EQ(decode_record(g, key, 5, ByteView(before).first(bytes)).status().kind(), Kind::corrupt);
    Bytes torn = after;
    std::copy(before.begin() + long(bytes), before.end(), torn.begin() + long(bytes));
    if (torn == before || torn == after) continue;  // the cut fell where both are the same
    ASSERT_EQ(decode_record(g, key, 5, torn).status().kind(), Kind::corrupt) << bytes;
  }
}

TEST(RowRecord, another_files_and_another_rows_record_are_refused) {
  const Geometry g = geometry_of(4, 2, 4096);
  const Bytes slot = slot_of(g, random_record(g, 5, 9));
  EXPECT_EQ(decode_record(g, key + 1, 5, slot).status().kind(), Kind::corrupt);
  EXPECT_EQ(decode_record(g, key, 6, slot).status().kind(), Kind::corrupt);
}

TEST(RowRecord, another_geometrys_record_is_refused) {
  const Geometry narrow = geometry_of(4, 2, 4096), wide = geometry_of(6, 2, 4096);
  ASSERT_EQ(record_slot_bytes(narrow), record_slot_bytes(wide));
  EXPECT_EQ(decode_record(wide, key, 5, slot_of(narrow, random_record(narrow, 5, 9))).status().kind(), Kind::corrupt);
}

}  // namespace
}  // namespace holdfast::layout
