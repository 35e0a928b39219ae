// How long a simulated process waits, and what others do meanwhile.
#include <gtest/gtest.h>

#include "sim/openers_site.hpp"
#include "sim/schedule.hpp"

namespace holdfast::sim {
namespace {

using std::chrono::milliseconds;

// A protector that codes a file makes some hundred calls. It was given up as too slow where one long wait left it as few turns as a short one.
TEST(Waits, that_are_long_leave_others_more_turns_than_short_ones) {
  Site site(1);
  const catalog::ReplacedEnvironment in_site(site);
  const auto calls_during = [&](milliseconds time) {
    Schedule schedule(1);
    bool is_over = false;
    uint64_t calls = 0;
    schedule.add([&] {
      site.wait(time);
      is_over = true;
    });
    schedule.add([&] {
      for (; !is_over; ++calls) Schedule::yield();
    });
    schedule.run();
    return calls;
  };
  const uint64_t in_a_short_one = calls_during(milliseconds(10)), in_a_long_one = calls_during(milliseconds(500));
  EXPECT_GE(in_a_long_one, 10 * in_a_short_one);
  EXPECT_GE(in_a_long_one, 100u);
}

TEST(Waits, of_several_at_once_last_as_long_as_the_longest) {
  Site site(1);
  const catalog::ReplacedEnvironment in_site(site);
  const auto begun = site.now();
  Schedule schedule(1);
  for (const int time : {100, 300, 500}) schedule.add([&site, time] { site.wait(milliseconds(time)); });
  schedule.run();
  EXPECT_EQ(site.now() - begun, milliseconds(500));
}

}  // namespace
}  // namespace holdfast::sim
