// A rank had written a file of all ranks alone, and then all had truncated and written it. A node that was cut off meanwhile kept the record of what was truncated. When
// the file was a version, and had given way to a newer one, that node came back: when the job had ended well, what one rank had written was a version.
#include <gtest/gtest.h>

#include <fcntl.h>

#include "catalog/versions.hpp"
#include "checkpoint/shared.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "sim/pool_on_site.hpp"

namespace holdfast::sim {
namespace {

using Front = frontend::posix::Checkpoints;
using checkpoint::SharedFiles;

struct AwayMeanwhile : PoolOnSite {
  static constexpr int nodes = 4;
  explicit AwayMeanwhile(int step) : PoolOnSite(1, nodes), path("/data/ck." + std::to_string(step)) {
    settings.protect = "mirror:2";
    settings.striping_unit = 4096;
    settings.checkpoint = {"shared:/data/ck.{step}"};
    run = {.id = "00000000000000ab", .attempt = 1, .from = {}, .nodes = settings.local};
    for (uint32_t rank = 0; rank < 2; ++rank)
      fronts.push_back(Front::make(settings, *checkpoint::Patterns::parse(settings.checkpoint), run, {rank, 2, settings.local[rank]}));
  }
  void write(uint32_t rank, const Front::Shared& shared) {
    ASSERT_TRUE(fronts[rank]->shared_written(shared).ok());
    const auto alone = exchange::make_solo();
    auto file = engine::ProtectedFile::open(checkpoint::locate_shared(shared.manifest, settings), {.read = true, .write = true}, settings, *alone);
    ASSERT_TRUE(file.ok()) << file.status().sentence();
    const Extent extent{rank * 100, 100};
    EXPECT_TRUE((*file)->write({&extent, 1}, Bytes(100, std::byte('a'))).ok());
    EXPECT_TRUE((*file)->close().ok());
    fronts[rank]->shared_closed(shared, true, true);
  }
  Result<Front::Shared> open(uint32_t rank) { return fronts[rank]->open_shared(*fronts[rank]->match(path), O_WRONLY | O_CREAT | O_TRUNC, 0644); }
  // As a protector does.
  void complete() {
    auto all = SharedFiles::look(run, settings);
    ASSERT_TRUE(all.ok() && all->take_turn(path).ok());
    const auto found = all->find(path);
    ASSERT_TRUE(found.ok() && !found->empty());
    EXPECT_TRUE(all->seal(found->back()).ok());
    all->settle_older_than(found->back(), *found);
  }
  size_t versions() {
    const auto all = catalog::VersionList().look(settings.local, settings.deadline_ms);
    return all ? all->size() : 99;
  }
  const std::string path;
  checkpoint::Run run;
  std::vector<std::unique_ptr<Front>> fronts;
};

// Which nodes keep a record its path says. Those of the ranks are not cut off.
TEST(AwayMeanwhile, brings_no_version_that_was_truncated_meanwhile) {
  int brought = 0;
  for (int at = 0; at < 16; ++at) {
    const int node = 2 + at % 2;
    SCOPED_TRACE(at);
    AwayMeanwhile world(1 + at / 2);
    const auto before = world.open(0);
    ASSERT_TRUE(before.ok()) << before.status().sentence();
    world.write(0, *before);
    world.site.gate->fail(Site::gate_number(node), Kind::io);
    const auto first = world.open(1), second = world.open(0);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_NE(first->name, before->name);
    EXPECT_EQ(first->name, second->name);
    world.write(1, *first), world.write(0, *second);
    world.complete();
    EXPECT_EQ(world.versions(), 1u);
    world.site.gate->heal(Site::gate_number(node));
    const auto now = SharedFiles::look(world.run, world.settings);
    const auto left = now.ok() ? now->find_all() : Result<std::vector<checkpoint::SharedFile>>(now.status());
    ASSERT_TRUE(left.ok());
    for (const checkpoint::SharedFile& one : *left) brought += one.name.number == before->name.number;
    (void)checkpoint::seal_left(world.run, world.settings, true);
    EXPECT_EQ(world.versions(), 1u);
  }
  EXPECT_EQ(brought, 0);
}

}  // namespace
}  // namespace holdfast::sim
