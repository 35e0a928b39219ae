// How often a commit over node agents waits for one of them. Members are asked side by side, so that what one member is waited for is what the commit
// takes at least, in round trips.
#include <gtest/gtest.h>

#include "catalog/catalog.hpp"
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
    EXPECT_EQ(commit("/data/g", false), 27u) << "over what is there: through a journal";
  });
  schedule.run();
}

}  // namespace
}  // namespace holdfast::sim
