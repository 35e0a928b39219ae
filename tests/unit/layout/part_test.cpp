// What replicas write to their parts, as bytes: what is whole is read again, what is not is told from it.
#include <gtest/gtest.h>

#include <random>

#include "layout/part.hpp"

namespace holdfast::layout::test {
namespace {

PartRecord some_record(std::mt19937_64& random, size_t extents) {
  PartRecord record{.id = random(), .number = random() % 1000, .begin = random() % 5000, .checksum = random()};
  uint64_t at = random() % 100;
  for (size_t i = 0; i < extents; ++i) {
    const Extent extent{at, 1 + random() % 9000};
    record.extents.push_back(extent);
    record.bytes += extent.length;
    at = extent.end() + random() % 100;
  }
  record.call_bytes = record.begin + record.bytes + random() % 1000;
  return record;
}

TEST(PartRecords, come_back_and_take_whole_pages) {
  std::mt19937_64 random(1);
  for (const size_t extents : {1u, 2u, 251u, 252u, 253u, 5000u}) {
    const PartRecord record = some_record(random, extents);
    const Bytes head = encode(record);
    EXPECT_EQ(head.size(), part_head_bytes(extents));
    EXPECT_EQ(head.size() % part_page, 0u);
    const auto bytes = part_head_of(ByteView(head).first(part_page));
    ASSERT_TRUE(bytes);
    EXPECT_EQ(*bytes, head.size());
    const auto back = decode_part_record(head);
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, record);
  }
}

TEST(PartRecords, that_are_not_whole_are_refused) {
  std::mt19937_64 random(2);
  const PartRecord record = some_record(random, 3);
  const Bytes head = encode(record);
  const size_t said = part_fixed_bytes + 3 * sizeof(Extent);
  for (size_t at = 0; at < said; ++at) {
    Bytes damaged = head;
    damaged[at] ^= std::byte(1 << random() % 8);
    EXPECT_FALSE(decode_part_record(damaged)) << at;
  }
  for (size_t bytes = 0; bytes < said; ++bytes) EXPECT_FALSE(decode_part_record(ByteView(head).first(bytes))) << bytes;
  EXPECT_FALSE(part_head_of(Bytes(part_page)));
  EXPECT_FALSE(part_head_of(ByteView(head).first(12)));
}

TEST(PartNotes, come_back_also_where_what_changes_is_torn) {
  const PartNote note{.id = 17, .teams = 5, .rank = 3, .parts = "/a/.file.holdfast-parts-0011", .main = {1, 2, 3, 4}};
  Bytes bytes = encode(note);
  EXPECT_LE(bytes.size(), most_note_bytes);
  auto back = decode_part_note(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, note);
  const Bytes other = encode_main(17, {1, 2, 30, 40});
  std::copy(other.begin(), other.end(), bytes.begin() + ptrdiff_t(note_main_at));
  back = decode_part_note(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->main, (PathState{1, 2, 30, 40}));
  bytes[note_main_at + 20] ^= std::byte(1);
  back = decode_part_note(bytes);
  ASSERT_TRUE(back);
  EXPECT_FALSE(back->main.known());
  EXPECT_EQ(back->teams, 5u);
  bytes[30] ^= std::byte(1);
  EXPECT_FALSE(decode_part_note(bytes));
  EXPECT_FALSE(decode_part_note(Bytes(10)));
  EXPECT_FALSE(decode_part_note(ByteView(encode(note)).first(note_main_at - 1)));
}

}  // namespace
}  // namespace holdfast::layout::test
