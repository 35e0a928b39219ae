// A file of all nodes was closed on one whose protector had died. Who opened it elsewhere to go on with it waited for ten minutes, and who opened it to read for ten seconds.
#include "sim/two_ranks.hpp"

namespace holdfast::checkpoint {
namespace {

class GoesOn : public TwoRanks {
 protected:
  GoesOn() : TwoRanks("/data/ck.{step}"), file(*fronts[1]->match("/data/ck.1")) {}

  void close_on_the_first_node() {
    Status status;
    const int fd = fronts[0]->open_to_write(file, O_WRONLY | O_CREAT, 0644, status);
    ASSERT_GE(fd, 0) << status.sentence();
    site.close(fd);
    fronts[0]->closed(fd);
  }
  Status open_on_the_third_node() {
    Status status;
    if (const int fd = fronts[1]->open_to_write(file, O_WRONLY, 0644, status); fd >= 0) site.close(fd), fronts[1]->closed(fd);
    return status;
  }
  std::chrono::milliseconds since(std::chrono::steady_clock::time_point before) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(site.now() - before);
  }

  const Front::File file;
};

TEST_F(GoesOn, no_longer_than_a_deadline_where_nobody_protects) {
  close_on_the_first_node();
  const auto before = site.now();
  const Status refused = open_on_the_third_node();
  EXPECT_EQ(refused.to_errno(), EBUSY);
  EXPECT_NE(refused.sentence().find("was closed on node n1 and is not protected yet"), std::string::npos) << refused.sentence();
  EXPECT_LT(since(before), std::chrono::milliseconds(2 * settings.deadline_ms));
  const auto again = site.now();
  EXPECT_EQ(open_on_the_third_node().to_errno(), EBUSY);
  EXPECT_LT(since(again).count(), 1000) << "it was waited for in vain";
  protectors[0].work();
  EXPECT_TRUE(open_on_the_third_node().ok());
}

TEST_F(GoesOn, not_from_what_was_removed) {
  close_on_the_first_node();
  EXPECT_TRUE(fronts[0]->remove(file).ok());
  EXPECT_EQ(open_on_the_third_node().to_errno(), ENOENT);
}

}  // namespace
}  // namespace holdfast::checkpoint
