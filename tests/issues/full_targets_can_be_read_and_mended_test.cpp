// Where all targets are full, opening for writing failed with a sentence about lost targets, and so did the repair that would have made
// room: dead writers' journals and spills stayed.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast {
namespace {

class FullTargets : public ::testing::Test {
 protected:
  FullTargets() {
    model.bytes = Bytes(40000, std::byte(7));
    auto file = *world.open(*solo, true);
    const Extent extent{0, model.bytes.size()};
    EXPECT_TRUE(file->write({&extent, 1}, model.bytes).ok() && file->close().ok());
  }
  void leave(const std::string& name) {
    for (auto& directory : world.directories)
      ASSERT_TRUE(target::make_memory_target(directory, "t")->put(world.identity.directory + "/" + name, Bytes(20000), true).ok());
  }
  void fill() {
    for (auto& directory : world.directories) {
      const target::Space space = *target::make_memory_target(directory, "t")->space();
      directory->set_capacity(space.total_bytes - space.free_bytes + 100);
    }
  }
  bool holds(const std::string& name) {
    const auto names = world.directories[0]->object_names();
    return std::find(names.begin(), names.end(), world.identity.directory + "/" + name) != names.end();
  }

  sim::World world{"rs:2+1"};
  sim::Model model;
  std::unique_ptr<exchange::Exchange> solo = exchange::make_solo();
};

TEST_F(FullTargets, can_be_read_and_say_what_hinders_writing) {
  fill();
  auto writer = world.open(*solo);
  ASSERT_FALSE(writer.ok());
  EXPECT_EQ(writer.status().kind(), Kind::no_space);
  for (const char* word : {"no space left on", "/t0", "/t1", "/t2", "make room"})
    EXPECT_NE(writer.status().sentence().find(word), std::string::npos) << writer.status().sentence();
  auto reader = world.open(*solo, false, false);
  ASSERT_TRUE(reader.ok()) << reader.status().sentence();
  Bytes seen(model.bytes.size());
  const Extent whole{0, seen.size()};
  ASSERT_TRUE((*reader)->read({&whole, 1}, seen).ok());
  EXPECT_TRUE(seen == model.bytes);
  auto checked = engine::verify(world.locate(), world.settings, nullptr);
  ASSERT_TRUE(checked.ok());
  EXPECT_EQ(checked->finding_count, 0u);
}

TEST_F(FullTargets, get_room_by_a_repair_that_removes_what_dead_writers_left) {
  leave("spill.0123.0");
  leave("journal.77.0");
  fill();
  ASSERT_EQ(world.open(*solo).status().kind(), Kind::no_space);
  auto located = world.locate();
  auto report = engine::repair(located, world.settings, nullptr);
  ASSERT_TRUE(report.ok()) << report.status().sentence();
  EXPECT_FALSE(holds("spill.0123.0"));
  EXPECT_FALSE(holds("journal.77.0"));
  EXPECT_TRUE(world.open(*solo).ok());
}

}  // namespace
}  // namespace holdfast
