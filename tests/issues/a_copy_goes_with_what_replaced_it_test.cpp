// A program wrote a file of the checkpoint anew that its attempt had begun with. When that checkpoint had given way to newer ones, the copy of before was
// still there on the nodes that had read it, and was shown: older bytes than were written last.
#include <fcntl.h>

#include "catalog/user_files.hpp"
#include "sim/two_ranks.hpp"

namespace holdfast::checkpoint {
namespace {

class Replaced : public TwoRanks {
 protected:
  Replaced() : TwoRanks("/data/ck.{step}.{rank}") {}

  void write(uint32_t rank, uint64_t step, const std::string& text) {
    Status status;
    const int fd = fronts[rank]->open_to_write(*fronts[rank]->match(path_of(step, rank)), O_WRONLY | O_CREAT | O_TRUNC, 0644, status);
    ASSERT_GE(fd, 0) << status.sentence();
    EXPECT_EQ(site.write(fd, text.data(), text.size()), ssize_t(text.size()));
    site.close(fd);
    (void)fronts[rank]->closed(fd);
    protectors[rank].work();
  }
  void write_all(uint64_t step) {
    for (const uint32_t rank : {0, 1}) write(rank, step, "any");
  }
  // Rank 0's file of step 1, by a rank.
  std::string read_by(uint32_t rank) {
    const auto sight = fronts[rank]->look(*fronts[rank]->match(path_of(1, 0)));
    if (!sight) return sight.status().sentence();
    return sight->what == Front::Sight::local ? *catalog::read_beginning(sight->path, 100) : "absent";
  }
  static std::string path_of(uint64_t step, uint32_t rank) { return "/data/ck." + std::to_string(step) + "." + std::to_string(rank); }
};

TEST_F(Replaced, as_the_attempt_began_with_it) {
  write(0, 1, "before"), write(1, 1, "any");
  begin_again_with(1);
  EXPECT_EQ(read_by(0), "before");
  EXPECT_EQ(read_by(1), "before");
  write(0, 1, "now");
  write_all(2), write_all(3);
  drop_as_run_does(to_drop(all(), run.id, 1));
  EXPECT_EQ(read_by(0), "absent");
  EXPECT_EQ(read_by(1), "absent");
}

TEST_F(Replaced, as_another_node_has_read_it) {
  write(0, 1, "before"), write(1, 1, "any");
  EXPECT_EQ(read_by(1), "before");
  write(0, 1, "now");
  write_all(2), write_all(3);
  drop_as_run_does(to_drop(all(), run.id, 1));
  EXPECT_EQ(read_by(0), "absent");
  EXPECT_EQ(read_by(1), "absent");
}

}  // namespace
}  // namespace holdfast::checkpoint
