// Two `repair --replace` of different targets of one set at once: each read the set before it had the lock, so that the later one forgot what
// the earlier one had put into its place.
#include <gtest/gtest.h>

#include "catalog/catalog.hpp"
#include "sim/openers_site.hpp"

namespace holdfast::sim {
namespace {

TEST(TwoReplacements, at_once_are_both_kept) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Site site(seed);
    const catalog::ReplacedEnvironment in_site(site);
    const Settings settings = site.add_set("rs:2+1", {"/t0", "/t1", "/t2"});
    for (const char* path : {"/n0", "/n2"}) site.add_place(path);
    ASSERT_TRUE(catalog::create("/data/a", settings, 0644).ok());
    Schedule schedule(seed);
    // Each is led to the set by another member.
    for (const auto& [guide, from, to] : {std::array{"/t2", "/t0", "/n0"}, std::array{"/t1", "/t2", "/n2"}})
      schedule.add([&settings, guide = guide, from = from, to = to] {
        auto set = catalog::replace_member(guide, from, to, settings);
        EXPECT_TRUE(set.ok()) << set.status().sentence();
      });
    schedule.run();
    auto set = catalog::open_set({"/t1"}, settings);
    ASSERT_TRUE(set.ok()) << set.status().sentence();
    EXPECT_EQ(set->members[0].path, "/n0");
    EXPECT_EQ(set->members[2].path, "/n2");
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

// One was killed when only the newcomer knew that it is a member. The other brought the set to the epoch that the newcomer's marker has: it could
// never be told to the set any more, though a file may lie on it.
TEST(TwoReplacements, of_which_one_was_killed_can_both_be_ended) {
  bool killed = true;
  for (int64_t call = 1; killed && call < 200; ++call) {
    Site site(7);
    const catalog::ReplacedEnvironment in_site(site);
    const Settings settings = site.add_set("rs:2+1", {"/t0", "/t1", "/t2"});
    for (const char* path : {"/n0", "/n2"}) site.add_place(path);
    ASSERT_TRUE(catalog::create("/data/a", settings, 0644).ok());
    Schedule schedule{uint64_t(call)};
    schedule.add([&] { (void)catalog::replace_member("/t1", "/t0", "/n0", settings); });
    schedule.kill_after(0, call);
    schedule.run();
    killed = schedule.is_dead(0);
    for (const auto& [from, to] : {std::array{"/t2", "/n2"}, std::array{"/t0", "/n0"}}) {
      auto set = catalog::replace_member("/t1", from, to, settings);
      const bool done = !set.ok() && set.status().sentence().find("is not a member") != std::string::npos;
      EXPECT_TRUE(set.ok() || done) << set.status().sentence() << ", where the first one was killed at call " << call;
    }
    auto set = catalog::open_set({"/t1"}, settings);
    ASSERT_TRUE(set.ok()) << set.status().sentence();
    EXPECT_EQ(set->members[0].path, "/n0");
    EXPECT_EQ(set->members[2].path, "/n2");
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_FALSE(killed) << "it makes more calls than were tried";
}

}  // namespace
}  // namespace holdfast::sim
