// Checkpoints of a pattern without {rank}: a program changed a file of an older one in place, or only its times, and that counted as the newest. Or it emptied the older
// file to free its room: a restart began with that.
#include "sim/two_ranks.hpp"

namespace holdfast::checkpoint {
namespace {

class OlderFileOfAll : public TwoRanks {
 protected:
  OlderFileOfAll() : TwoRanks("/data/ck.{step}") { write(1, O_WRONLY | O_CREAT | O_TRUNC, "one"), write(2, O_WRONLY | O_CREAT | O_TRUNC, "two"); }
  void write(uint64_t step, int flags, const std::string& text) {
    Status status;
    const int fd = fronts[0]->open_to_write(*fronts[0]->match("/data/ck." + std::to_string(step)), flags, 0644, status);
    ASSERT_GE(fd, 0) << status.sentence();
    EXPECT_EQ(site.pwrite(fd, text.data(), text.size(), 0), ssize_t(text.size()));
    site.close(fd);
    fronts[0]->closed(fd);
    protectors[0].work();
  }
  uint64_t newest() {
    const auto now = all();
    const Checkpoint* const one = newest_whole(now, run.id);
    return one ? one->step : 0;
  }
};

TEST_F(OlderFileOfAll, that_is_updated_stays_older) {
  EXPECT_EQ(newest(), 2u);
  write(1, O_RDWR, "uno");
  EXPECT_EQ(newest(), 2u);
  write(1, O_WRONLY | O_CREAT | O_TRUNC, "anew");
  EXPECT_EQ(newest(), 1u) << "slots are written in turn";
  write(1, O_RDWR, "anew, again");
  EXPECT_EQ(newest(), 1u);
}

TEST_F(OlderFileOfAll, that_is_emptied_is_not_begun_with) {
  write(1, O_WRONLY | O_TRUNC, "");
  EXPECT_EQ(newest(), 2u);
  EXPECT_TRUE(to_drop(all(), run.id, 1).empty() || newest() == 2u);
  write(2, O_WRONLY | O_TRUNC, "");
  EXPECT_EQ(newest(), 2u) << "there is nothing else";
}

}  // namespace
}  // namespace holdfast::checkpoint
