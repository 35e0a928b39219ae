// Two slots in turn. What an attempt had begun with gave way to the other slot, which was then written anew by some ranks and not yet by all. Just then a program opened a file
// of a new name in the first slot, and was refused: what was there could not be seen. Found by the simulator, seed 295 of the renamed ones.
#include "sim/two_ranks.hpp"

namespace holdfast::checkpoint {
namespace {

class GaveWay : public TwoRanks {
 protected:
  GaveWay() : TwoRanks("/data/{step}.*.{rank}") {
    write(1, "a"), write(2, "a"), write(1, "a");  // each step is said to be whole when the next one is begun
    EXPECT_EQ(whole(), std::vector<uint64_t>{2});
    begin_again_with(2);
    write(1, "a"), write(2, "a");
    EXPECT_EQ(all().back().step, 2u);
  }
  void write(uint64_t step, const std::string& name) {
    for (const uint32_t rank : {0, 1}) write_file(rank, path_of(step, name, rank));
  }
  static std::string path_of(uint64_t step, const std::string& name, uint32_t rank) {
    return "/data/" + std::to_string(step) + "." + name + "." + std::to_string(rank);
  }
  // As `run` does: step 1 of this attempt is whole, and step 2 of the one before goes.
  void drop_what_is_old() {
    const auto old = to_drop(all(), run.id, 1);
    EXPECT_TRUE(std::any_of(old.begin(), old.end(), [](const Protected& one) { return one.version.attempt.number == 1 && one.version.step == 2; }));
    drop_as_run_does(old);
  }
  Status open_a_new_name_in_the_second_slot() {
    Status status;
    if (const int fd = fronts[1]->open_to_write(*fronts[1]->match(path_of(2, "b", 1)), O_WRONLY | O_CREAT | O_TRUNC, 0644, status); fd >= 0)
      site.close(fd), fronts[1]->closed(fd);
    return status;
  }
};

TEST_F(GaveWay, while_the_newer_one_is_written_anew) {
  drop_what_is_old();
  write_file(0, path_of(1, "a", 0));
  EXPECT_EQ(whole(), std::vector<uint64_t>{}) << "one rank has written the other slot anew";
  const Status status = open_a_new_name_in_the_second_slot();
  EXPECT_TRUE(status.ok()) << status.sentence();
}

TEST_F(GaveWay, to_a_node_that_was_cut_off_when_it_went) {
  site.gate->fail(sim::Site::gate_number(2), Kind::timed_out);
  drop_what_is_old();
  site.heal(sim::Site::gate_number(2));
  write_file(0, path_of(1, "a", 0));
  const Status status = open_a_new_name_in_the_second_slot();
  EXPECT_TRUE(status.ok()) << status.sentence();
}

TEST_F(GaveWay, and_one_that_did_not_is_lost) {
  for (const auto& files : surveyor.stores_of(all().empty() ? std::vector<Protected>() : to_drop(all(), run.id, 1)))
    ASSERT_TRUE(drop(files, run.attempt, settings).ok());  // as if it had gone with its nodes
  write_file(0, path_of(1, "a", 0));
  EXPECT_EQ(open_a_new_name_in_the_second_slot().to_errno(), EIO);
}

}  // namespace
}  // namespace holdfast::checkpoint
