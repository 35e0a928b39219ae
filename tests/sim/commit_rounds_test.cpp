// How often a commit over node agents waits for one of them. Members are asked side by side, so that what one member is waited for is what the commit
// takes at least, in round trips.
#include <gtest/gtest.h>

#include "catalog/catalog.hpp"
#include "catalog/pool.hpp"
#include "engine/protected_file.hpp"
#include "sim/openers_site.hpp"

namespace holdfast::sim {
namespace {

TEST(CommitRounds, of_a_small_file_over_agents_stay_few) {
  Site site(1);
  const catalog::ReplacedEnvironment in_site(site);
  site.by_agents = true, site.gated = false;
  Settings settings = site.add_set("rs:4+2", {"/t0", "/t1", "/t2", "/t3", "/t4", "/t5"});
  settings.striping_unit = 65536;
  Schedule schedule(1);
  // Found or made, opened, written, and durable when it is closed. How often the member that is asked most was waited for, from its connection on.
  const auto commit = [&](const char* path, bool make) -> uint64_t {
    site.agents.count_anew();
    auto located = make ? catalog::create(path, settings, 0644, true) : catalog::locate(path, settings);
    EXPECT_TRUE(located.ok()) << located.status().sentence();
    auto alone = exchange::make_solo();
    auto file = engine::ProtectedFile::open(std::move(*located), {true, true, make}, settings, *alone);
    EXPECT_TRUE(file.ok()) << file.status().sentence();
    const Bytes bytes(65536, std::byte(7));
    const Extent whole{0, bytes.size()};
    EXPECT_TRUE((*file)->write({&whole, 1}, bytes).ok() && (*file)->close().ok());
    return site.agents.most_round_trips();
  };
  // Whoever needs fewer says so here; whoever needs more has made each small file over a network slower.
  schedule.add([&] {
    EXPECT_EQ(commit("/data/f", true), 16u) << "with the target set";
    EXPECT_EQ(commit("/data/g", true), 7u) << "in the set that is there";
    EXPECT_EQ(commit("/data/g", false), 20u) << "over what is there: through a journal";
  });
  schedule.run();
}

// No member is asked more often than one of six: most have nothing of a small file but its manifest.
TEST(CommitRounds, of_a_small_file_on_two_hundred_nodes_stay_few) {
  constexpr int nodes = 200;
  Site site(1);
  const catalog::ReplacedEnvironment in_site(site);
  site.by_agents = true, site.gated = false;
  Settings settings;
  settings.protect = "rs:4+2";
  settings.striping_unit = 65536;
  settings.striping_factor = nodes;
  for (int node = 0; node < nodes; ++node) settings.local.push_back(site.places[size_t(site.add_place("/t" + std::to_string(node)))].path);
  Schedule schedule(1);
  const auto commit = [&](bool make) -> std::pair<uint64_t, uint64_t> {
    site.agents.count_anew();
    auto located = make ? catalog::create("/data/g", settings, 0644, true) : catalog::locate("/data/g", settings);
    EXPECT_TRUE(located.ok()) << located.status().sentence();
    EXPECT_EQ(located->manifest.geometry.members, nodes);
    auto alone = exchange::make_solo();
    auto file = engine::ProtectedFile::open(std::move(*located), {true, true, make}, settings, *alone);
    EXPECT_TRUE(file.ok()) << file.status().sentence();
    const Bytes bytes(65536, std::byte(7));
    const Extent whole{0, bytes.size()};
    EXPECT_TRUE((*file)->write({&whole, 1}, bytes).ok() && (*file)->close().ok());
    return {site.agents.most_round_trips(), site.agents.all_round_trips() / nodes};
  };
  schedule.add([&] {
    ASSERT_TRUE(catalog::open_pool(settings).ok());
    const auto [made, each_made] = commit(true);
    EXPECT_EQ(made, 7u) << "of the member that is asked most";
    EXPECT_EQ(each_made, 7u) << "of a member, on average";
    const auto [again, each_again] = commit(false);
    EXPECT_EQ(again, 19u) << "over what is there: through a journal";
    EXPECT_EQ(each_again, 16u) << "one of them says that the opener lives";
  });
  schedule.run();
}

}  // namespace
}  // namespace holdfast::sim
