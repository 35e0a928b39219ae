// More nodes were lost than the scheme bears, and all others answered: a file that is protected by itself could not be read any more, and not be written anew
// either. Found by the simulator, seed 300330 of Checkpoints.singles_*.
#include <gtest/gtest.h>

#include <fcntl.h>

#include "catalog/pool.hpp"
#include "checkpoint/protect.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "sim/pool_on_site.hpp"

namespace holdfast::sim {
namespace {

struct LostForGood : PoolOnSite {
  static constexpr const char* path = "/data/results/a.dat";
  LostForGood() : PoolOnSite(1, 4) {
    settings.protect = "rs:2+1";
    settings.checkpoint = {"/data/results/*.dat"};
    const catalog::Descriptor file(site.openat(AT_FDCWD, "/data/plain", O_WRONLY | O_CREAT | O_TRUNC, 0600));
    EXPECT_EQ(site.write(file.get(), "some bytes", 10), 10);
    layout::Version version;
    version.run = "00000000000000ab", version.attempt = 1, version.ranks = 0, version.number = 1, version.file = path;
    EXPECT_TRUE(version.is_single());
    EXPECT_TRUE(checkpoint::protect("/data/plain", version, "n1:/n1", settings).ok());
    const auto found = catalog::VersionList().look(settings.local, settings.deadline_ms);
    EXPECT_EQ(found->size(), 1u);
    for (int node = 0; node < 2; ++node) site.tree.remove(*site.disks[size_t(node)].root, found->front().manifest.directory);
    const checkpoint::Run run{.id = version.run, .attempt = 2, .from = checkpoint::Run::From{1, 0}, .nodes = settings.local};
    front = frontend::posix::Checkpoints::make(settings, *checkpoint::Patterns::parse(settings.checkpoint), run, {0, 2, "n4:/n4"});
  }
  int open(int flags) {
    status = Status();
    return front->open_to_write(*front->match(path), flags, 0644, status);
  }
  std::unique_ptr<frontend::posix::Checkpoints> front;
  Status status;
};

TEST(LostForGood, is_written_anew) {
  LostForGood world;
  EXPECT_LT(world.open(O_RDWR | O_CREAT), 0);
  EXPECT_EQ(world.status.kind(), Kind::lost) << world.status.sentence();
  EXPECT_LT(world.open(O_WRONLY | O_CREAT | O_EXCL | O_TRUNC), 0) << "it was there";
  const int fd = world.open(O_WRONLY | O_CREAT | O_TRUNC);
  ASSERT_GE(fd, 0) << world.status.sentence();
  world.site.close(fd);
  (void)world.front->closed(fd);
}

TEST(LostForGood, is_not_written_anew_while_a_node_that_may_have_it_is_silent) {
  LostForGood world;
  world.site.gate->fail(Site::gate_number(1), Kind::timed_out);
  EXPECT_LT(world.open(O_WRONLY | O_CREAT | O_TRUNC), 0);
}

}  // namespace
}  // namespace holdfast::sim
