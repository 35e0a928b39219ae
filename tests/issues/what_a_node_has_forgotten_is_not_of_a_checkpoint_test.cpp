// The job had ended well. One of its nodes lost power then, with the note that a file was removed, and its protector was not started anew before the end of `run`. So
// nothing said that names may be gone there. The removed file was listed as one of its checkpoint, which was whole with it. Found by the simulator.
#include "catalog/user_files.hpp"
#include "checkpoint/roll.hpp"
#include "sim/two_ranks.hpp"

namespace holdfast::checkpoint {
namespace {

class Forgotten : public TwoRanks {
 protected:
  Forgotten() : TwoRanks("/data/{step}/*.{rank}") {
    for (const char* name : {"a", "b"})
      for (const uint32_t rank : {0, 1}) write_file(rank, "/data/1/" + std::string(name) + "." + std::to_string(rank));
    EXPECT_TRUE(fronts[0]->remove(*fronts[0]->match("/data/1/b.0")).ok());
    for (const uint32_t rank : {0, 1}) write_file(rank, "/data/2/a." + std::to_string(rank));
    EXPECT_EQ(files_of_first(), 3u);
    protectors[0].work();
    forget_removals_of_the_first_node();
  }
  size_t files_of_first() {
    for (const Checkpoint& one : all())
      if (one.step == 1 && one.whole()) return one.files.size();
    return 0;
  }
  void forget_removals_of_the_first_node() {
    const std::string hidden = "/n1/" + directory_of_attempt(run.id, run.attempt) + "/" + state_name(State::hidden);
    const auto names = catalog::list_directory(hidden);
    ASSERT_TRUE(names.ok() && names->size() == 1);
    ASSERT_TRUE(catalog::unlink_file(hidden + "/" + names->front()).ok());
  }
};

TEST_F(Forgotten, where_nobody_can_say_so_nothing_is_listed) {
  const auto remarks = roll_ended(run, settings, {settings.local.front()});
  EXPECT_FALSE(remarks.empty()) << "of the second checkpoint";
  EXPECT_EQ(files_of_first(), 3u);
}

TEST_F(Forgotten, where_its_protector_is_there_all_is_listed) {
  EXPECT_TRUE(roll_ended(run, settings, {}).empty());
  EXPECT_EQ(whole(), (std::vector<uint64_t>{1, 2}));
}

}  // namespace
}  // namespace holdfast::checkpoint
