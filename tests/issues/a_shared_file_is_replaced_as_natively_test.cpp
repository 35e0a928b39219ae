// A file was renamed to the name of one that all ranks write, and that is no version yet: what the ranks had written was read still. And who truncated such a file by an
// open without O_CREAT left it with no permissions at all.
#include <gtest/gtest.h>

#include <fcntl.h>

#include "catalog/user_files.hpp"
#include "checkpoint/shared.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "sim/pool_on_site.hpp"

namespace holdfast::sim {
namespace {

struct ReplacedShared : PoolOnSite {
  using Front = frontend::posix::Checkpoints;
  ReplacedShared() {
    settings.checkpoint = {"shared:/data/ck.{step}"};
    const checkpoint::Run run{.id = "00000000000000ab", .attempt = 1, .from = {}, .nodes = settings.local};
    front = Front::make(settings, *checkpoint::Patterns::parse(settings.checkpoint), run, {0, 1, settings.local[0]});
  }
  Front::File file(int step = 1) { return *front->match("/data/ck." + std::to_string(step)); }
  layout::Manifest write(int flags, mode_t mode, int step = 1) {
    const auto shared = front->open_shared(file(step), flags, mode);
    EXPECT_TRUE(shared.ok()) << shared.status().sentence();
    EXPECT_TRUE(front->shared_written(*shared).ok());
    const auto alone = exchange::make_solo();
    auto opened = engine::ProtectedFile::open(checkpoint::locate_shared(shared->manifest, settings), {.read = true, .write = true}, settings, *alone);
    const Extent extent{0, 3};
    EXPECT_TRUE(opened.ok() && (*opened)->write({&extent, 1}, Bytes(3, std::byte('a'))).ok() && (*opened)->close().ok());
    front->shared_closed(*shared, true, true);
    return shared->manifest;
  }
  std::unique_ptr<Front> front;
};

TEST(ReplacedShared, by_a_rename_shows_what_was_renamed) {
  ReplacedShared world;
  world.write(O_WRONLY | O_CREAT, 0644);
  {
    const catalog::Descriptor plain(world.site.openat(AT_FDCWD, "/data/tmp", O_WRONLY | O_CREAT, 0600));
    ASSERT_EQ(world.site.write(plain.get(), "renamed", 7), 7);
  }
  const Status taken = world.front->take("/data/tmp", world.file());
  ASSERT_TRUE(taken.ok()) << taken.sentence();
  const auto shared = world.front->find_shared(world.file());
  EXPECT_TRUE(shared.ok() && !*shared);
  const auto sight = world.front->look(world.file());
  ASSERT_TRUE(sight.ok() && sight->what == ReplacedShared::Front::Sight::local) << sight.status().sentence();
  EXPECT_EQ(*catalog::read_beginning(sight->path, 100), "renamed");
}

TEST(ReplacedShared, by_a_truncation_keeps_its_permissions) {
  ReplacedShared world;
  const auto first = world.write(O_WRONLY | O_CREAT, 0640);
  EXPECT_EQ(first.mode, 0640u);
  const auto second = world.write(O_WRONLY | O_TRUNC, 0);
  EXPECT_NE(second.file_id, first.file_id);
  EXPECT_EQ(second.mode, 0640u);
}

// A program that keeps its newest one removes the one before, right after it has written the next. That serves until the next one is whole: it was given up, and a
// restart began from the start.
TEST(ReplacedShared, and_removed_when_all_have_gone_on_is_a_version) {
  ReplacedShared world;
  const auto first = world.write(O_WRONLY | O_CREAT, 0644);
  world.write(O_WRONLY | O_CREAT, 0644, 2);
  ASSERT_TRUE(world.front->remove(world.file()).ok());
  const auto shared = world.front->find_shared(world.file());
  EXPECT_TRUE(shared.ok() && !*shared);
  const auto versions = catalog::VersionList().look(world.settings.local, world.settings.deadline_ms);
  ASSERT_TRUE(versions.ok());
  ASSERT_EQ(versions->size(), 1u);
  EXPECT_EQ(versions->front().manifest.file_id, first.file_id);
}

}  // namespace
}  // namespace holdfast::sim
