// Several processes make files on targets that are no set yet.
#include <gtest/gtest.h>

#include "catalog/catalog.hpp"
#include "sim/openers_site.hpp"

namespace holdfast::sim {
namespace {

// One of them makes the set. Who had looked at a directory before its marker came, and at the others after, took it for a lost member.
TEST(Creators, of_files_on_a_set_in_the_making_miss_no_member) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Site site(seed);
    const catalog::ReplacedEnvironment in_site(site);
    const Settings settings = site.add_set("rs:2+1", {"/t0", "/t1", "/t2"});
    Schedule schedule(seed);
    for (const char* path : {"/data/a", "/data/b"})
      schedule.add([&settings, path] {
        auto made = catalog::create(path, settings, 0644);
        ASSERT_TRUE(made.ok()) << made.status().sentence();
        for (const catalog::Member& member : made->members) EXPECT_TRUE(member.usable()) << path << " lacks " << member.path;
      });
    schedule.run();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace holdfast::sim
