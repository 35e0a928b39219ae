// A version is made anew, and the old one goes when the new one is there. Who drops what is too old saw both, took the new one, of which not all copies of the manifest
// were written yet, for the older one, and dropped it. Then the old one went, and nothing of a whole checkpoint was left.
#include <gtest/gtest.h>

#include "catalog/pool.hpp"
#include "checkpoint/attempt.hpp"
#include "checkpoint/choice.hpp"
#include "checkpoint/protect.hpp"
#include "checkpoint/protector.hpp"
#include "sim/openers_site.hpp"

namespace holdfast::checkpoint {
namespace {

void make_anew_beside_drops(uint64_t seed) {
  sim::simulated_clock.begin_anew();
  sim::Site site(seed);
  const catalog::ReplacedEnvironment in_site(site);
  Settings settings;
  for (const char* name : {"n1", "n2", "n3", "n4"}) site.add_node_disk(name), settings.local.push_back(site.disks.back().address);
  settings.protect = "mirror:3";
  settings.checkpoint = {"/data/ck.{step}"};
  ASSERT_TRUE(catalog::open_pool(settings).ok());
  {
    const catalog::Descriptor file(site.openat(AT_FDCWD, "/data/plain", O_WRONLY | O_CREAT, 0600));
    ASSERT_EQ(site.write(file.get(), "some bytes", 10), 10);
  }
  const layout::Version version{"00000000000000ab", 1, 1, 0, 1, 1, "/data/ck.1", 1};
  ASSERT_TRUE(protect("/data/plain", version, "n2:/n2", settings).ok());
  site.change_disk(2, nullptr);  // n3: of n2, n3 and n4, which keep it
  ASSERT_TRUE(catalog::open_pool(settings).ok());

  const Run run{"00000000000000ab", 2, Run::From{1, 1}, false, settings.local};
  sim::Schedule schedule(seed);
  schedule.add([&] {
    Protector protector(settings, run, "n1:/n1", [](const std::string& said) { FAIL() << said; });
    ASSERT_TRUE(protector.begin().ok());
    protector.work();
  });
  schedule.add([&] {
    catalog::VersionList versions;
    for (int looks = 0; looks < 12; ++looks) {
      const auto found = versions.look(settings.local, settings.deadline_ms);
      ASSERT_TRUE(found.ok());
      for (const Protected& old : to_drop(checkpoints_of(protected_of(*found)), run.id, 2))
        for (const catalog::FoundVersion& one : *found)
          if (one.manifest.file_id == old.file_id) {
            ASSERT_TRUE(drop(one.manifest, run.attempt, settings).ok());
          }
    }
  });
  schedule.run();
  const auto left = catalog::VersionList().look(settings.local, settings.deadline_ms);
  ASSERT_TRUE(left.ok());
  EXPECT_TRUE(std::any_of(left->begin(), left->end(), [](const catalog::FoundVersion& one) { return one.readable(); }))
      << "seed " << seed << ": nothing is left";
}

TEST(MadeAnew, a_version_is_not_dropped_beside_the_one_that_it_was_made_from) {
  constexpr uint64_t orders = 300;
  for (uint64_t seed = 1; seed <= orders && !testing::Test::HasFailure(); ++seed) make_anew_beside_drops(seed);
}

}  // namespace
}  // namespace holdfast::checkpoint
