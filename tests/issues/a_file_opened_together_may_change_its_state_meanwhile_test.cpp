// A file that one rank has written is protected while ranks open it together: it goes from one directory of states to the next, and the open, which had seen it in the
// one before, found nothing there: the program got ENOENT for a file that is there.
#include <gtest/gtest.h>

#include "checkpoint/protector.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "sim/pool_on_site.hpp"

namespace holdfast::checkpoint {
namespace {

using Front = frontend::posix::Checkpoints;

// One order of turns of the ranks' open and the protector.
void open_beside_a_protector(uint64_t seed) {
  sim::simulated_clock.begin_anew();
  sim::PoolOnSite pool(seed);
  sim::Site& site = pool.site;
  Settings& settings = pool.settings;
  settings.checkpoint = {"/data/ck.{step}"};
  const Run run{"00000000000000ab", 1, {}, false, settings.local};
  const auto front = Front::make(settings, *Patterns::parse(settings.checkpoint), run, {0, 1, "n1:/n1"});
  const auto file = front->match("/data/ck.1");
  Status status;
  const int fd = front->open_to_write(*file, O_WRONLY | O_CREAT, 0600, status);
  ASSERT_GE(fd, 0) << status.sentence();
  ASSERT_EQ(site.write(fd, "some bytes", 10), 10);
  site.close(fd);
  front->closed(fd);

  sim::Schedule schedule(seed);
  schedule.add([&] {
    Protector protector(settings, run, "n1:/n1", [](const std::string&) {});
    ASSERT_TRUE(protector.begin().ok());
    protector.work();
  });
  schedule.add([&] {
    const auto together = front->begin_together(*file, O_RDWR, 0600, settings);
    ASSERT_TRUE(together.ok()) << "seed " << seed << ": " << together.status().sentence();
    EXPECT_FALSE(together->fresh);
    EXPECT_TRUE(front->end_together(*together, true).ok());
  });
  schedule.run();
}

TEST(OpenedTogether, a_file_is_found_in_whatever_state_it_is_by_now) {
  constexpr uint64_t orders = 100;
  for (uint64_t seed = 1; seed <= orders && !testing::Test::HasFatalFailure(); ++seed) open_beside_a_protector(seed);
}

}  // namespace
}  // namespace holdfast::checkpoint
