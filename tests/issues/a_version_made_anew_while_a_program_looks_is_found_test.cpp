// The version of a file is made anew on other nodes while a program looks for it: it had asked these before they had the new one, and the others after the old
// one had gone. It saw neither, and the file was not there.
#include <gtest/gtest.h>

#include <algorithm>

#include "catalog/pool.hpp"
#include "catalog/user_files.hpp"
#include "checkpoint/protect.hpp"
#include "checkpoint/protector.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "sim/pool_on_site.hpp"

namespace holdfast::checkpoint {
namespace {

using Front = frontend::posix::Checkpoints;

// One order of turns of the program's look and the protector that makes the file anew.
void look_beside_renewals(uint64_t seed, int times) {
  sim::simulated_clock.begin_anew();
  sim::PoolOnSite pool(seed, 5);
  sim::Site& site = pool.site;
  Settings& settings = pool.settings;
  settings.checkpoint = {"/data/ck.{step}"};
  {
    const catalog::Descriptor file(site.openat(AT_FDCWD, "/data/plain", O_WRONLY | O_CREAT, 0600));
    ASSERT_EQ(site.write(file.get(), "some bytes", 10), 10);
  }
  const layout::Version version{"00000000000000ab", 1, 1, 0, 1, 1, "/data/ck.1", 1};
  ASSERT_TRUE(protect("/data/plain", version, "n5:/n5", settings).ok());
  site.change_disk(3, nullptr);  // the nodes of the old one: n5, and one that has lost its part; the group's are n3, n4, n5
  site.change_disk(2, nullptr);
  ASSERT_TRUE(catalog::open_pool(settings).ok());

  const Run run{"00000000000000ab", 2, Run::From{1, 1}, false, settings.local};
  const auto front = Front::make(settings, *Patterns::parse(settings.checkpoint), run, {0, 1, "n2:/n2"});
  const auto file = front->match("/data/ck.1");
  sim::Schedule schedule(seed);
  schedule.add([&] {
    Protector protector(settings, run, "n1:/n1", [](const std::string& said) { FAIL() << said; });
    ASSERT_TRUE(protector.begin().ok());
    protector.work();
    // And by those of other attempts.
    for (int again = 1; again < times; ++again) {
      const auto found = catalog::VersionList().look(settings.local, settings.deadline_ms);
      ASSERT_TRUE(found.ok());
      for (const catalog::FoundVersion& one : *found) ASSERT_TRUE(renew(one.manifest, settings.local, settings).ok());
    }
  });
  schedule.add([&] {
    const auto sight = front->look(*file);
    ASSERT_TRUE(sight.ok()) << "seed " << seed << ": " << sight.status().sentence();
    EXPECT_EQ(sight->what, Front::Sight::local) << "seed " << seed;
  });
  schedule.run();
}

TEST(MadeAnew, a_version_is_found_by_who_looks_meanwhile) {
  constexpr uint64_t orders = 100;
  for (uint64_t seed = 1; seed <= orders && !testing::Test::HasFailure(); ++seed) look_beside_renewals(seed, 1);
}

TEST(MadeAnew, a_version_is_found_while_it_is_made_anew_again_and_again) {
  constexpr uint64_t orders = 100;
  for (uint64_t seed = 1; seed <= orders && !testing::Test::HasFailure(); ++seed) look_beside_renewals(seed, 3);
}

// A file that is protected by itself has two versions, and the newer one is made anew at the n-th call of a look on any node. How many there should be nobody knows:
// the older one looks like an answer. False where the look has fewer calls.
bool look_for_single_at_call(int n) {
  sim::PoolOnSite pool(1, 5);
  sim::Site& site = pool.site;
  Settings& settings = pool.settings;
  settings.protect = "rs:3+1";
  settings.checkpoint = {"/data/*.dat"};
  for (uint32_t number = 1; number <= 2; ++number) {
    const std::string plain = "/data/plain" + std::to_string(number), bytes = "bytes " + std::to_string(number);
    const catalog::Descriptor file(site.openat(AT_FDCWD, plain.c_str(), O_WRONLY | O_CREAT, 0600));
    EXPECT_EQ(site.write(file.get(), bytes.data(), bytes.size()), ssize_t(bytes.size()));
    EXPECT_TRUE(protect(plain, {"00000000000000ab", 1, 0, 0, 0, number, "/data/one.dat", number}, "n5:/n5", settings).ok());
  }
  const auto found = catalog::VersionList().look(settings.local, settings.deadline_ms);
  const auto newer = std::find_if(found->begin(), found->end(), [](const auto& one) { return one.manifest.version->number == 2; });
  const Run run{"00000000000000ab", 2, Run::From{1, 0}, false, settings.local};
  const auto front = Front::make(settings, *Patterns::parse(settings.checkpoint), run, {0, 1, "n2:/n2"});
  int calls = 0;
  site.gate->way = [&](int) {
    if (++calls == n) EXPECT_TRUE(renew(newer->manifest, settings.local, settings).ok());
    return Status();
  };
  const auto sight = front->look(*front->match("/data/one.dat"));
  EXPECT_TRUE(sight.ok()) << "call " << n << ": " << sight.status().sentence();
  const auto bytes = sight.ok() ? catalog::read_small(sight->path, 100) : Result<std::string>("");
  EXPECT_EQ(bytes.ok() ? *bytes : "", "bytes 2") << "call " << n;
  return calls >= n;
}

TEST(MadeAnew, of_a_file_by_itself_no_older_version_is_found_by_who_looks_meanwhile) {
  int n = 1;
  while (look_for_single_at_call(n)) ++n;
  EXPECT_GT(n, 10);
}

}  // namespace
}  // namespace holdfast::checkpoint
