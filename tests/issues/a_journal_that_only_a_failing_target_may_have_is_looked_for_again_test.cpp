// A reader had read a manifest that named two journals. Until it came to them a writer had put them in their places and had begun to take
// them away. One target failed for the reader: the journal that was gone everywhere else counted as one that is there. The row was read as
// the first journal had it, without the bytes that the second had synced.
#include <gtest/gtest.h>

#include "engine/journal_overlay.hpp"
#include "sim/world.hpp"

namespace holdfast {
namespace {

TEST(AJournalThatIsGone, is_not_there_because_a_target_fails) {
  sim::World world("rs:2+1");
  auto solo = exchange::make_solo();
  auto file = *world.open(*solo, true);
  const Bytes content(3 * 8192, std::byte(7));
  const Extent extent{0, content.size()};
  ASSERT_TRUE(file->write({&extent, 1}, content).ok() && file->close().ok());

  const auto located = world.locate();
  engine::Members members(located, world.settings);
  engine::RecordStore records(members, located);
  engine::JournalOverlay journals(members, records, located);
  EXPECT_FALSE(journals.add("9.0")) << "nobody has it";
  world.gate->fail(1, Kind::io);
  EXPECT_FALSE(journals.add("9.0")) << "nobody has shown it";
}

}  // namespace
}  // namespace holdfast
