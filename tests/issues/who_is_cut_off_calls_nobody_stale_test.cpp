// A program was cut off from more members than may be lost, all at once, while it asked them something. It noticed one loss, wrote that member down as
// stale on those it still reached, and only then noticed the others: its commit failed, and the file had one loss less to spare until a repair.
#include <gtest/gtest.h>

#include "sim/file_on_nodes.hpp"

namespace holdfast::sim {
namespace {

// Cut off at that call of its commit. Whether there was such a call.
bool cut_off_in_a_commit(uint64_t call, unsigned from, Kind how) {
  FileOnNodes world(call + 1);
  bool writes = false, done = false, was_cut = false;
  Status told;
  std::string stale;
  const int process = world.schedule.add([&] {
    auto file = world.open(true, true);
    ASSERT_TRUE(file.ok()) << file.status().sentence();
    ASSERT_TRUE(write(**file, 0, row_of(**file), 9).ok() && (*file)->sync().ok());
    ASSERT_TRUE(write(**file, 0, row_of(**file) / 2, 1).ok());
    writes = true;
    told = (*file)->sync();
    done = true;
    file->reset();
    world.mend_ways();
    auto seen = world.open(false);
    ASSERT_TRUE(seen.ok()) << seen.status().sentence();
    for (const auto& member : (*seen)->located().manifest.members)
      if (member.stale) stale += " " + member.path + " (" + member.why + ")";
  });
  world.schedule.add([&] {
    while (!writes) Schedule::yield(true);
    const uint64_t begin = world.requests();
    while (world.requests() < begin + call && !done) Schedule::yield(true);
    was_cut = !done;
    if (was_cut) world.cut(process, from, how);
  });
  world.schedule.run();
  const std::string how_it_was =
      fmt::format("cut off from {} at call {}, {}; told: {}", names_of(from), call, how == Kind::io ? "at once" : "in time", told.sentence());
  EXPECT_EQ(world.wrong(), "") << how_it_was;
  EXPECT_EQ(stale, "") << how_it_was;
  return was_cut;
}

TEST(CutOff, from_too_many_members_it_calls_nobody_stale) {
  for (const unsigned from : {0b000111u, 0b111000u})
    for (const Kind how : {Kind::io, Kind::timed_out}) {
      bool reached = true;
      for (uint64_t call = 0; reached && !HasFailure(); ++call) reached = cut_off_in_a_commit(call, from, how);
    }
}

}  // namespace
}  // namespace holdfast::sim
