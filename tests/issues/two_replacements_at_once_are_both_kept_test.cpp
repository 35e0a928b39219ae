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

}  // namespace
}  // namespace holdfast::sim
