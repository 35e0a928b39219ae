// A removal takes away what leads to the file, for good, before the file itself goes. Where both stand in one directory, a power cut could take the
// file and leave what leads to it: a name that nobody could open, and that kept the file from being made anew.
#include <gtest/gtest.h>

#include "sim/openers_site.hpp"
#include "sim/whole_file.hpp"

namespace holdfast::sim {
namespace {

constexpr const char* path = "/data/f";

class Removal : public testing::TestWithParam<const char*> {
 protected:
  static Bytes content() { return Bytes(30000, std::byte(7)); }
  static void make_file(const Settings& settings) { write_whole(path, content(), settings); }
  static void expect_all_or_nothing(const Settings& settings) {
    const auto seen = read_whole(path, content().size(), settings);
    if (seen) {
      ASSERT_EQ(*seen, content());
    }
  }
};

TEST_P(Removal, that_loses_power_leaves_all_or_nothing) {
  bool finished = false;
  for (int64_t calls = 1; calls < most_calls && !finished; ++calls)
    for (uint64_t seed = 1; seed <= 24; ++seed) {
      SCOPED_TRACE("killed at call " + std::to_string(calls) + ", seed " + std::to_string(seed));
      Site site(seed);
      const catalog::ReplacedEnvironment in_site(site);
      Settings settings;
      settings.protect = GetParam();
      settings.allow_shared_target = true;
      settings.placement = "separate";  // a plain file at the path
      settings.striping_unit = 4096;
      make_file(settings);
      if (HasFatalFailure()) return;
      Schedule schedule(seed);
      int remover = -1;
      remover = schedule.add([&] {
        schedule.kill_after(remover, calls);
        finished = catalog::remove(path, settings).ok() && !Schedule::dead();
      });
      schedule.run();
      site.power_loss(seed);
      expect_all_or_nothing(settings);
      if (HasFailure()) return;
    }
  EXPECT_TRUE(finished) << "it has more calls than were tried";
}

INSTANTIATE_TEST_SUITE_P(InOneDirectory, Removal, testing::Values("mirror:2", "rs:2+1"), [](const auto& info) { return identifier_of(info.param); });

}  // namespace
}  // namespace holdfast::sim
