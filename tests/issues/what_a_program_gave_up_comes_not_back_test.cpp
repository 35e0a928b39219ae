// A program found its newest checkpoint bad, removed it and failed. Each attempt began with it again. Where one is left that was not removed that serves now.
// Where there is none, or something newer was begun, the newest serves as before.
#include <gtest/gtest.h>

#include <set>

#include "checkpoint/attempt.hpp"
#include "checkpoint/protector.hpp"
#include "checkpoint/unread.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "sim/pool_on_site.hpp"

namespace holdfast::checkpoint {
namespace {

using Front = frontend::posix::Checkpoints;

class GivenUp : public ::testing::Test {
 protected:
  GivenUp() {
    pool.settings.protect = "rs:2+1", pool.settings.checkpoint = {"/data/ck.{step}.{rank}"};
    job = checkpoint::Run{"00000000000000ab", 1, {}, {}, pool.settings.local};
    front = Front::make(pool.settings, *Patterns::parse(pool.settings.checkpoint), job, {0, 1, "n1:/n1"});
  }
  static std::string path_of(uint64_t step) { return "/data/ck." + std::to_string(step) + ".0"; }
  int begin(uint64_t step) {
    Status status;
    const int fd = front->open_to_write(*front->match(path_of(step)), O_WRONLY | O_CREAT | O_TRUNC, 0600, status);
    EXPECT_GE(fd, 0) << status.sentence();
    return fd;
  }
  void write(uint64_t step) {
    const int fd = begin(step);
    ASSERT_EQ(pool.site.write(fd, "bytes", 5), 5);
    pool.site.close(fd);
    (void)front->closed(fd);
    Protector protector(pool.settings, job, "n1:/n1", [](const std::string& sentence) { ADD_FAILURE() << sentence; });
    ASSERT_TRUE(protector.begin().ok());
    (void)protector.work();
  }
  void remove(uint64_t step) {
    const Status gone = front->remove(*front->match(path_of(step)));
    ASSERT_TRUE(gone.ok()) << gone.sentence();
  }
  // The step; 0 for the start.
  uint64_t begins_with() {
    std::set<std::string> damaged;
    const auto survey = survey_to_begin(job.id, pool.settings, damaged);
    if (!survey) return ~uint64_t(0);
    const Beginning beginning = beginning_of(*survey, job.id);
    return beginning.from ? beginning.from->step : 0;
  }

  sim::PoolOnSite pool{1, 4};
  checkpoint::Run job;
  std::unique_ptr<Front> front;
};

TEST_F(GivenUp, the_one_before_takes_its_place) {
  write(1), write(2);
  EXPECT_EQ(begins_with(), 2u);
  remove(2);
  EXPECT_EQ(begins_with(), 1u);
}

TEST_F(GivenUp, where_none_is_left_the_newest_serves) {
  write(1), write(2);
  remove(1), remove(2);
  EXPECT_EQ(begins_with(), 2u);
}

TEST_F(GivenUp, the_only_one_serves) {
  write(1);
  remove(1);
  EXPECT_EQ(begins_with(), 1u);
}

TEST_F(GivenUp, what_is_removed_for_a_newer_one_serves_until_that_is_whole) {
  write(1), write(2);
  (void)begin(3);
  remove(2);
  EXPECT_EQ(begins_with(), 2u);
}

TEST_F(GivenUp, one_after_another_goes) {
  write(1), write(2), write(3);
  remove(3), remove(2);
  EXPECT_EQ(begins_with(), 1u);
}

}  // namespace
}  // namespace holdfast::checkpoint
