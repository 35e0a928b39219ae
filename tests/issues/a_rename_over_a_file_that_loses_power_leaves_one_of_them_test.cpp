// A protected file is renamed over another one, and the power fails. The names of the two and of what belongs to them could change in any order: what led to
// the new file stood beside the old one's sidecar, and the path was refused as another file's though both files were whole.
#include <gtest/gtest.h>

#include "sim/openers_site.hpp"
#include "sim/whole_file.hpp"

namespace holdfast::sim {
namespace {

constexpr const char *renamed = "/data/f.new", *over = "/data/f", *aside = "/data/.f.aside";

class RenameOver : public testing::TestWithParam<const char*> {
 protected:
  static Bytes content(char of) { return Bytes(9000, std::byte(of)); }
  static void make(const char* path, char of, const Settings& settings) { write_whole(path, content(of), settings, true); }
  static void expect_one_of_them(const Settings& settings) {
    const auto seen = read_whole(over, content('o').size(), settings);
    ASSERT_TRUE(seen) << "it is not there";
    EXPECT_TRUE(*seen == content('o') || *seen == content('n')) << "neither the old file's bytes nor the new one's";
  }
};

TEST_P(RenameOver, that_loses_power_leaves_one_of_them) {
  bool finished = false;
  for (int64_t calls = 1; calls < most_calls && !finished; ++calls)
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      SCOPED_TRACE("killed at call " + std::to_string(calls) + ", seed " + std::to_string(seed));
      Site site(seed);
      const catalog::ReplacedEnvironment in_site(site);
      Settings settings = site.add_set(GetParam(), {"/t0", "/t1", "/t2"});
      settings.striping_unit = 4096;
      settings.placement = "interleaved";  // notes at both paths
      make(over, 'o', settings);
      make(renamed, 'n', settings);
      if (HasFatalFailure()) return;
      Schedule schedule(seed);
      int renamer = -1;
      renamer = schedule.add([&] {
        schedule.kill_after(renamer, calls);
        const Status replaced = catalog::replace(renamed, over, aside, settings);
        finished = replaced.ok() && !Schedule::dead();
        if (replaced.ok()) (void)catalog::remove(aside, settings);
      });
      schedule.run();
      site.power_loss(seed);
      expect_one_of_them(settings);
      if (HasFailure()) return;
    }
  EXPECT_TRUE(finished) << "it has more calls than were tried";
}

INSTANTIATE_TEST_SUITE_P(OverTargets, RenameOver, testing::Values("mirror:2", "rs:2+1"), [](const auto& info) { return identifier_of(info.param); });

}  // namespace
}  // namespace holdfast::sim
