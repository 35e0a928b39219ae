// An opener's locks were on the first M + 1 members only. If it lost just the sessions with these members' agents while it was idle, it counted as
// dead, and others put synced rows in place. It had noticed nothing, and its next whole row went over them on all other members: more than may be lost.
#include <gtest/gtest.h>

#include "sim/file_on_nodes.hpp"

namespace holdfast::sim {
namespace {

// It has the file open and does nothing. Another one writes a row and closes the file.
TEST(LostLocks, of_an_idle_opener_cost_others_no_synced_row) {
  for (unsigned lost = 0; lost < 1u << FileOnNodes::members; ++lost) {
    FileOnNodes world(lost + 1);
    bool idle = false, synced = false;
    Status of_idle, of_other(Kind::io, "never ended");
    std::string there;
    const int first = world.schedule.add([&] {
      auto file = world.open(true, true);
      ASSERT_TRUE(file.ok()) << file.status().sentence();
      idle = true;
      while (!synced) Schedule::yield(true);
      of_idle = write(**file, 0, row_of(**file), 1);
      const Status closed = (*file)->close();
      if (of_idle.ok()) of_idle = closed;
      file->reset();
      there = world.read_row();
    });
    world.schedule.add([&] {
      while (!idle) Schedule::yield(true);
      world.lose_sessions(first, lost);
      auto file = world.open(true);
      ASSERT_TRUE(file.ok()) << file.status().sentence();
      of_other = write(**file, 0, row_of(**file), 2);
      if (of_other.ok()) of_other = (*file)->close();
      synced = true;
    });
    world.schedule.run();
    const std::string told =
        fmt::format("sessions lost with {}; the idle one: {}; the other: {}", names_of(lost), of_idle.sentence(), of_other.sentence());
    EXPECT_EQ(world.wrong(), "") << told;
    EXPECT_TRUE(of_other.ok()) << told;
    EXPECT_TRUE(there == "11" || (there == "22" && !of_idle.ok())) << there << "; " << told;
  }
}

// It is stopped in a commit, and does not reach the sidecar any more, or the other one does not: the members' locks alone keep them apart.
void stop_in_a_commit(uint64_t call, unsigned lost, bool hide_from_other, bool& reached) {
  FileOnNodes world(call + 1);
  bool made = false, begins = false, there_is_another = false, first_done = false, other_done = false;
  Status of_first, of_other(Kind::io, "never ended");
  std::string there;
  const int first = world.schedule.add([&] {
    auto file = world.open(true, true);
    ASSERT_TRUE(file.ok()) << file.status().sentence();
    ASSERT_TRUE(write(**file, 0, row_of(**file), 9).ok() && (*file)->sync().ok());
    made = true;
    while (!there_is_another) Schedule::yield(true);
    of_first = write(**file, 0, row_of(**file) / 2, 1);
    begins = true;
    const Status closed = (*file)->close();
    if (of_first.ok()) of_first = closed;
    first_done = true;
    while (!other_done) Schedule::yield(true);
    file->reset();
    world.show_path();
    there = world.read_row();
  });
  const int other = world.schedule.add([&] {
    while (!made) Schedule::yield(true);
    auto file = world.open(true);
    ASSERT_TRUE(file.ok()) << file.status().sentence();
    there_is_another = true;
    while (!begins) Schedule::yield(true);
    const uint64_t begin = world.requests();
    while (world.requests() < begin + call && !first_done) Schedule::yield(true);
    reached |= !first_done;
    world.schedule.stop(first, 2000);
    world.lose_sessions(first, lost);
    of_other = write(**file, row_of(**file) / 2, row_of(**file), 2);
    const Status closed = (*file)->close();
    if (of_other.ok()) of_other = closed;
    world.schedule.stop(first, 0);
    other_done = true;
  });
  world.schedule.add([&] {
    while (!begins) Schedule::yield(true);
    world.hide_path_from(hide_from_other ? other : first);
  });
  world.schedule.run();
  const std::string told = fmt::format("stopped at call {}; sessions lost with {}; the path is hidden from the {}; first: {}; other: {}; there: {}",
                                       call, names_of(lost), hide_from_other ? "other" : "first", of_first.sentence(), of_other.sentence(), there);
  EXPECT_EQ(world.wrong(), "") << told;
  EXPECT_TRUE(of_other.ok()) << told;
  ASSERT_EQ(there.size(), 2u) << told;
  EXPECT_TRUE(there[0] == '1' || (there[0] == '9' && !of_first.ok())) << told;
  EXPECT_EQ(there[1], '2') << told;
}

TEST(LostLocks, of_who_is_stopped_in_a_commit_cost_others_no_synced_row) {
  for (const unsigned lost : {0b000111u, 0b001111u, 0b111000u})
    for (const bool hide_from_other : {false, true}) {
      bool reached = true;
      for (uint64_t call = 0; reached && !HasFailure(); call += 3) {
        reached = false;
        stop_in_a_commit(call, lost, hide_from_other, reached);
      }
    }
}

}  // namespace
}  // namespace holdfast::sim
