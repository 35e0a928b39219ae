// A checkpoint was drained once more, and a node with a full disk kept its record of the first drain. That one stood for both: the files had other times, the
// checkpoint did not count as drained, and an attempt began with nothing. Found by the simulator, seed 2636.
#include <gtest/gtest.h>

#include "catalog/user_files.hpp"
#include "checkpoint/drain.hpp"
#include "checkpoint/protect.hpp"
#include "checkpoint/survey.hpp"
#include "sim/pool_on_site.hpp"

namespace holdfast::checkpoint {
namespace {

TEST(DrainedTwice, is_known_also_where_a_node_has_the_first_record) {
  sim::PoolOnSite pool;
  sim::Site& site = pool.site;
  Settings& settings = pool.settings;
  ASSERT_TRUE(catalog::replace_file("/data/source", "/data/source.new", "content", 0600, false).ok());
  const std::string run = "00000000000000ab";
  ASSERT_TRUE(protect("/data/source", {run, 1, 10, 0, 1, 1, "/data/ck.10.0", 1, 1}, settings.local[0], settings));
  Surveyor surveyor(settings.local, settings.deadline_ms);
  const auto drain_it = [&] {
    const auto all = surveyor.look_at_versions();
    const auto files = manifests_of(all->front(), surveyor.last_versions());
    ASSERT_TRUE(drain(files, own_place, settings, [](uint64_t, uint64_t) { return true; }));
    (void)keep_record(*drained_now(files, all->front().ages()), settings.local, settings.deadline_ms);
  };
  const auto drained = [&] { return Surveyor(settings.local, settings.deadline_ms).look(run)->drained.size(); };
  drain_it();
  EXPECT_EQ(drained(), 1u);
  site.disks[2].full = true;
  drain_it();
  EXPECT_EQ(drained(), 1u);
}

}  // namespace
}  // namespace holdfast::checkpoint
