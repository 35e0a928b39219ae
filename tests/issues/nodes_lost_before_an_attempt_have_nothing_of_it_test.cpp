// A file that is protected by itself, in an attempt that had begun without more nodes than the scheme has data units. Its second truncating open failed: those nodes might have had
// something newer than what this attempt had written.
#include <gtest/gtest.h>

#include <fcntl.h>

#include "base/node_path.hpp"
#include "checkpoint/local.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "sim/pool_on_site.hpp"

namespace holdfast::sim {
namespace {

struct LostBefore : PoolOnSite {
  static constexpr int nodes = 6, lost = 3;
  LostBefore() : PoolOnSite(1, nodes) {
    settings.protect = "rs:2+1";
    settings.checkpoint = {"/data/results/*.dat"};
    const std::vector<std::string> left(settings.local.begin() + lost, settings.local.end());
    for (int node = 0; node < lost; ++node) site.gate->fail(Site::gate_number(node), Kind::io);
    const checkpoint::Run run{.id = "00000000000000ab", .attempt = 2, .from = {}, .nodes = left};
    front = frontend::posix::Checkpoints::make(settings, *checkpoint::Patterns::parse(settings.checkpoint), run, {0, 2, left.front()});
    files.emplace(parse_node_path(left.front()).path, run.id, run.attempt);
  }
  std::unique_ptr<frontend::posix::Checkpoints> front;
  std::optional<checkpoint::LocalFiles> files;
};

TEST(LostBefore, have_nothing_newer_than_what_this_attempt_has_written) {
  LostBefore world;
  const auto file = world.front->match("/data/results/a.dat");
  ASSERT_TRUE(file.has_value());
  for (int time = 1; time <= 3; ++time) {
    Status status;
    const int fd = world.front->open_to_write(*file, O_WRONLY | O_CREAT | O_TRUNC, 0644, status);
    ASSERT_GE(fd, 0) << "the open of number " << time << ": " << status.sentence();
    world.site.close(fd);
    (void)world.front->closed(fd);
    for (const checkpoint::LocalName& name : world.files->list(checkpoint::State::closed))
      EXPECT_TRUE(world.files->move(name, checkpoint::State::closed, checkpoint::State::kept).ok());
  }
}

}  // namespace
}  // namespace holdfast::sim
