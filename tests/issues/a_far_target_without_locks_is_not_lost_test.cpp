// Who makes a file over agents asks for its directory and for the opener's lock at once. Where a target made the directory and gave no lock, as a file system
// without locks does, it was lost to the new file.
#include <gtest/gtest.h>

#include "catalog/catalog.hpp"
#include "sim/openers_site.hpp"

namespace holdfast::sim {
namespace {

TEST(FarWithoutLocks, is_a_member_of_a_new_file) {
  for (const bool far : {false, true}) {
    Site site(1);
    const catalog::ReplacedEnvironment in_site(site);
    const Settings settings = site.add_set("rs:2+1", {"/t0", "/t1", "/t2"});
    Schedule schedule(1);
    schedule.add([&] {
      ASSERT_TRUE(catalog::create("/data/first", settings, 0644, true).ok());  // makes the set, under its locks
      site.gate->far = far, site.gate->lockless = 0;
      const auto located = catalog::create("/data/f", settings, 0644, true);
      ASSERT_TRUE(located.ok()) << located.status().sentence();
      for (const catalog::Member& member : located->members) EXPECT_TRUE(member.usable()) << member.path << ": " << member.lost.sentence();
    });
    schedule.run();
  }
}

}  // namespace
}  // namespace holdfast::sim
