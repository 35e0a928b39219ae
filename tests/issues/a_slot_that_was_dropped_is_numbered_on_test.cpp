// Two slots in turn: when one was dropped its number began again at 1. A node that was away then came back with a file of the old one, which had the number of
// the new ones: the slot counted as whole with files of two rounds. Found by the simulator, seeds 9558 and 18112.
#include <algorithm>

#include "sim/two_ranks.hpp"

namespace holdfast::checkpoint {
namespace {

class DroppedSlot : public TwoRanks {
 protected:
  DroppedSlot() : TwoRanks("/data/ck.{step}.{rank}") {}

  void write(uint32_t rank, uint64_t step) { write_file(rank, "/data/ck." + std::to_string(step) + "." + std::to_string(rank)); }
  void drop_what_is_old() {
    for (const Protected& old : to_drop(all(), run.id, 1)) (void)drop(*surveyor.manifest_of(old.file_id), run.attempt, settings);
  }
  size_t remembered(uint32_t rank) { return protectors[rank].files().list(State::dropped).size(); }
};

TEST_F(DroppedSlot, is_numbered_on) {
  for (const uint64_t step : {1, 2})
    for (const uint32_t rank : {0, 1}) write(rank, step);
  EXPECT_EQ(whole(), (std::vector<uint64_t>{1, 2}));
  site.gate->fail(sim::Site::gate_number(3), Kind::timed_out);
  drop_what_is_old();
  EXPECT_EQ(whole(), std::vector<uint64_t>{2});
  write(0, 1);  // and the other rank dies before it writes
  site.heal(sim::Site::gate_number(3));
  EXPECT_EQ(whole(), std::vector<uint64_t>{2}) << "the fourth node has a file of the first round, the first node one of the third";
}

TEST_F(DroppedSlot, is_remembered_until_it_is_written_again_or_many_others_are_dropped) {
  for (uint64_t step = 1; step <= 50; ++step) {
    for (const uint32_t rank : {0, 1}) write(rank, step);
    drop_what_is_old();
  }
  EXPECT_EQ(remembered(0), 33u) << "the last one was dropped after the last look";
  write(0, 49);
  EXPECT_EQ(remembered(0), 32u);
  const auto dropped = protectors[0].files().list(State::dropped);
  EXPECT_TRUE(std::none_of(dropped.begin(), dropped.end(), [](const LocalName& name) { return name.step == 49; }));
}

// The newest version of a file was dropped, an older one not yet, when the program removed it. What was removed came back with a node that had been away. Found by the
// simulator, seed 2280.
TEST_F(DroppedSlot, is_removed_with_what_a_node_comes_back_with) {
  for (int time = 0; time < 2; ++time) write(0, 1);
  site.gate->fail(sim::Site::gate_number(1), Kind::timed_out);
  const auto slot = all().front();
  ASSERT_TRUE(drop(*surveyor.manifest_of(slot.files.begin()->second.file_id), run.attempt, settings).ok());
  const auto file = fronts[0]->match("/data/ck.1.0");
  EXPECT_TRUE(fronts[0]->remove(*file).ok()) << "the older one was to be seen";
  site.heal(sim::Site::gate_number(1));
  EXPECT_EQ(fronts[0]->look(*file)->what, Front::Sight::absent);
  const auto listing = fronts[0]->list("/data");
  EXPECT_FALSE((*listing)->names.contains("ck.1.0"));
}

// The copy has to go first: it is what makes room for the note.
TEST_F(DroppedSlot, is_remembered_on_a_disk_that_was_full_until_the_copy_went) {
  for (const uint64_t step : {1, 2})
    for (const uint32_t rank : {0, 1}) write(rank, step);
  for (const uint32_t rank : {0, 1}) {
    const auto kept = protectors[rank].files().list(State::kept);
    const auto oldest = std::find_if(kept.begin(), kept.end(), [](const LocalName& name) { return name.step == 1; });
    ASSERT_NE(oldest, kept.end());
    sim::NodeDisk& disk = site.disks[rank * 2];
    disk.full = true;
    const std::string at = protectors[rank].files().on_its_node(State::kept, *encode(*oldest));
    if (rank == 0) {
      ASSERT_NE(disk.full_until = site.tree.below(*disk.root, at), nullptr);
    }
  }
  drop_what_is_old();
  for (const uint32_t rank : {0, 1}) EXPECT_EQ(protectors[rank].files().list(State::kept).size(), 1u) << "the copy of rank " << rank;
  EXPECT_EQ(remembered(0), 1u);
  EXPECT_EQ(remembered(1), 0u) << "its disk is full still";
}

}  // namespace
}  // namespace holdfast::checkpoint
