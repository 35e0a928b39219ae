// Two ranks wrote the same row whole without a sync between, which MPI leaves unsaid but does not forbid. On one target the units were of the one
// rank and the record of the other; as long as another record was read first, nobody saw it. Then that target was lost, and the row with it.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

constexpr uint64_t rows = 3;

class OneRecord : public testing::TestWithParam<const char*> {
 protected:
  void write_from_both(World& world, uint64_t seed, int lost_meanwhile) {
    on_ranks(2, seed, [&](int rank, exchange::Exchange& ranks) {
      auto file = world.open(ranks, true);
      ASSERT_TRUE(file.ok()) << file.status().sentence();
      ranks.barrier();
      if (rank == 0 && lost_meanwhile >= 0) world.gate->fail_later(lost_meanwhile, 3 + int64_t(seed % 11), Kind::io);
      const Bytes data(rows * row_bytes(world), std::byte(7 + rank));
      const Extent extent{0, data.size()};
      EXPECT_TRUE((*file)->write({&extent, 1}, data).ok());
      const Status synced = (*file)->sync(), closed = (*file)->close();
      EXPECT_TRUE(synced.ok() && closed.ok()) << synced.sentence() << closed.sentence();
    });
  }
  static uint64_t row_bytes(const World& world) { return world.identity.geometry.row_bytes(); }

  static std::string read_without(World& world, int member, bool zeros_too = false) {
    world.gate->fail(member, Kind::io);
    auto solo = exchange::make_solo();
    auto reader = world.open(*solo, false, false);
    Bytes seen(rows * row_bytes(world));
    const Extent whole{0, seen.size()};
    const Status status = reader.ok() ? (*reader)->read({&whole, 1}, seen).status() : reader.status();
    world.gate->heal(member);
    if (!status.ok()) return status.sentence();
    for (const std::byte byte : seen)
      if (byte != std::byte(7) && byte != std::byte(8) && !(zeros_too && byte == std::byte(0))) return "a byte that nobody wrote";
    return "";
  }
};

TEST_P(OneRecord, whichever_target_is_lost) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    World world(GetParam());
    write_from_both(world, seed, -1);
    for (int member = 0; member < world.identity.geometry.members; ++member)
      ASSERT_EQ(read_without(world, member), "") << "without target " << member << ", seed " << seed;
  }
}

class OneRecordOfTwoLosses : public OneRecord {};

// Of two targets that may go the first one goes while the ranks write. What lay there of both may be zeros: these bytes are unsaid.
TEST_P(OneRecordOfTwoLosses, after_a_target_was_lost_on_the_way) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    World world(GetParam());
    const int lost = int(seed) % world.identity.geometry.members;
    write_from_both(world, seed, lost);
    for (int member = 0; member < world.identity.geometry.members; ++member)
      if (member != lost) {
        ASSERT_EQ(read_without(world, member, true), "") << "without targets " << lost << " and " << member << ", seed " << seed;
      }
  }
}

std::string name_of(const testing::TestParamInfo<const char*>& info) { return identifier_of(info.param); }

INSTANTIATE_TEST_SUITE_P(Schemes, OneRecord, testing::Values("mirror:2", "mirror:3", "rs:2+1", "rs:4+2"), name_of);
INSTANTIATE_TEST_SUITE_P(Schemes, OneRecordOfTwoLosses, testing::Values("mirror:3", "rs:4+2"), name_of);

}  // namespace
}  // namespace holdfast::sim
