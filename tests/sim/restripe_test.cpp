// A file that is written anew over the nodes that live: whoever does it dies at each of its calls with the power, and at every third without. What is at the path is the
// old file or the new one, whole, and the next repair ends it.
#include <gtest/gtest.h>

#include "engine/repair_file.hpp"
#include "sim/pool_on_site.hpp"
#include "sim/whole_file.hpp"

namespace holdfast::sim {
namespace {

constexpr const char* restriped = "/data/f";

class Restripe : public testing::TestWithParam<const char*> {
 protected:
  static Bytes content() {
    Bytes bytes(14000);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i * 7 / 5);
    return bytes;
  }
  static void write_file(const Settings& settings) { write_whole(restriped, content(), settings); }
  static void expect_content(const Settings& settings) {
    const auto seen = read_whole(restriped, content().size() + 1, settings);
    ASSERT_TRUE(seen) << "it is not there";
    ASSERT_EQ(*seen, content());
  }
  static Result<engine::FileRepair> repair(const Settings& settings) {
    return engine::repair_file(restriped, {}, false, settings, nullptr, &settings.local);
  }
  // Whether it came to its end.
  static bool killed_at(int64_t calls, uint64_t seed, bool with_power) {
    SCOPED_TRACE("killed at call " + std::to_string(calls) + ", seed " + std::to_string(seed));
    PoolOnSite pool(seed, 6);
    Settings& settings = pool.settings;
    settings.protect = GetParam();
    settings.striping_unit = 4096;
    settings.striping_factor = 6;
    write_file(settings);
    settings.striping_factor.reset();
    pool.site.change_disk(2, nullptr);
    Schedule schedule(seed);
    bool finished = false;
    int repairer = -1;
    repairer = schedule.add([&] {
      schedule.kill_after(repairer, calls);
      const auto report = repair(settings);
      finished = report.ok() && report->written_anew > 0 && !Schedule::dead();
    });
    schedule.run();
    if (with_power) pool.site.power_loss(seed);
    expect_content(settings);
    if (HasFailure()) return true;
    const auto report = repair(settings);
    EXPECT_TRUE(report.ok()) << report.status().sentence();
    if (report.ok()) {
      EXPECT_EQ(report->status.health, engine::Health::healthy);
    }
    expect_content(settings);
    return finished || HasFailure();
  }
};

TEST_P(Restripe, that_is_killed_leaves_the_old_file_or_the_new_one) {
  int64_t calls = 1;
  while (calls < 20 * most_calls && !killed_at(calls, 1, false)) calls += 3;
  EXPECT_LT(calls, 20 * most_calls) << "it has more calls than were tried";
  EXPECT_GT(calls, 20);
}

TEST_P(Restripe, that_loses_power_leaves_the_old_file_or_the_new_one) {
  bool finished = false;
  for (int64_t calls = 1; calls < 20 * most_calls && !finished; ++calls)
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      finished = killed_at(calls, seed, true);
      if (HasFailure()) return;
    }
  EXPECT_TRUE(finished) << "it has more calls than were tried";
}

INSTANTIATE_TEST_SUITE_P(Over, Restripe, testing::Values("mirror:2", "rs:2+1"), [](const auto& info) { return identifier_of(info.param); });

}  // namespace
}  // namespace holdfast::sim
