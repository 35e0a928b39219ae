// A checkpoint was dropped while a node was away that had some of its files. The node came back before the job ended, and what it had was listed then as all that
// belongs to the checkpoint: it was whole again, with a part of its files. Found by the simulator.
#include "checkpoint/roll.hpp"
#include "sim/two_ranks.hpp"

namespace holdfast::checkpoint {
namespace {

// Two files of each step and rank.
class HalfDropped : public TwoRanks {
 protected:
  HalfDropped() : TwoRanks("/data/{step}/*.{rank}") {}

  void write(uint64_t step) {
    for (const uint32_t rank : {0, 1})
      for (const char* name : {"a", "b"}) write_file(rank, "/data/" + std::to_string(step) + "/" + name + "." + std::to_string(rank));
  }
  void drop_while_the_second_node_is_away(uint64_t step) {
    site.gate->fail(sim::Site::gate_number(1), Kind::timed_out);
    (void)all();
    for (const catalog::FoundVersion& one : surveyor.last_versions())
      if (one.manifest.version->step == step) (void)drop(one.manifest, run.attempt, settings);
    site.heal(sim::Site::gate_number(1));
  }
};

TEST_F(HalfDropped, is_not_completed_by_the_end_of_the_job) {
  write(1), write(2);
  EXPECT_EQ(whole(), std::vector<uint64_t>{1});
  drop_while_the_second_node_is_away(1);
  EXPECT_EQ(whole(), std::vector<uint64_t>{});
  EXPECT_TRUE(roll_ended(run, settings, {}).empty());
  EXPECT_EQ(whole(), std::vector<uint64_t>{2}) << "of the first one the second node alone has what it had";
}

TEST_F(HalfDropped, is_completed_where_its_files_are_written_anew) {
  write(1), write(2);
  drop_while_the_second_node_is_away(1);
  write(1);
  EXPECT_TRUE(roll_ended(run, settings, {}).empty());
  EXPECT_EQ(whole(), (std::vector<uint64_t>{2, 1})) << "as they were written";
}

}  // namespace
}  // namespace holdfast::checkpoint
