// Ranks that write by interleaved views bring a row in thousands of pieces. Beyond 64 of them all were put together anew at each further one: a time that grew with the
// square of their number, and the order of all of them was lost.
#include "engine/pending.hpp"
#include "unit/engine/scene.hpp"

namespace holdfast::engine {
namespace {

constexpr uint64_t row_bytes = 1 << 16, piece_bytes = 4;

class ManyPieces : public ::testing::Test {
 protected:
  void add(uint64_t offset, int value) {
    const Bytes bytes(piece_bytes, std::byte(value));
    ASSERT_TRUE(pending.add(0, offset, bytes.data(), bytes.size()).ok());
  }
  sim::World world{"rs:2+1"};
  catalog::Located located = world.locate();
  Members members{located};
  Spill spill{members, located, 0};
  Pending pending{row_bytes, uint64_t(1) << 30, spill};
};

TEST_F(ManyPieces, beside_each_other_have_a_time_each) {
  constexpr uint64_t count = 5000;
  for (uint64_t i = 0; i < count; ++i) add(i * 2 * piece_bytes, int(i));
  const Pending::Row& row = *pending.find(0);
  ASSERT_EQ(row.pieces.size(), count);
  EXPECT_LT(row.pieces.front().time_ns, row.pieces.back().time_ns);
  EXPECT_TRUE(std::is_sorted(row.pieces.begin(), row.pieces.end(), [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; }));
  EXPECT_EQ(row.covered.bytes(), count * piece_bytes);
  EXPECT_EQ(pending.memory_bytes(), count * piece_bytes);
}

TEST_F(ManyPieces, over_each_other_stay_few) {
  for (int i = 0; i < 5000; ++i) add(uint64_t(i % 2) * 100, i);
  const Pending::Row& row = *pending.find(0);
  EXPECT_LE(row.pieces.size(), 64u);
  EXPECT_EQ(row.covered.bytes(), 2 * piece_bytes);
}

}  // namespace
}  // namespace holdfast::engine
