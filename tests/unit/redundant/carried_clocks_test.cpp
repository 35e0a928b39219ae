#include "redundant/decisions/carried_clocks.hpp"

#include <gtest/gtest.h>

namespace holdfast::redundant {
namespace {

constexpr int64_t ms = 1000000, year = int64_t(365) * 24 * 3600 * 1000 * ms;

TEST(CarriedTime, never_goes_back_behind_a_leader_that_had_computed_more) {
  CarriedTime time;
  time.told(500);
  EXPECT_EQ(time.of(20), 500);
  time.told(500);
  EXPECT_EQ(time.of(30), 510);
}

TEST(CarriedClock, of_a_leader_that_has_heard_nothing_is_its_own) {
  CarriedClock<int64_t> clock(ms);
  EXPECT_EQ(clock.of(7), 7);
  clock.said(7);
  EXPECT_EQ(clock.of(9), 9);
}

TEST(CarriedClock, goes_on_where_the_next_ones_node_began_earlier_or_later) {
  for (const int64_t apart : {year, -year}) {
    CarriedClock<int64_t> clock(ms);
    // Answers were on their way for 300, 5 and 80 ms.
    for (const auto& [at, late] : {std::pair{int64_t(0), 300 * ms}, {1000 * ms, 5 * ms}, {2000 * ms, 80 * ms}})
      clock.heard(year + at, year + at + late - apart);
    EXPECT_EQ(clock.of(year + 3000 * ms - apart), year + 2995 * ms) << apart;
    EXPECT_GE(clock.of(year + 2001 * ms - apart), year + 2000 * ms) << "not before what was said last";
  }
}

TEST(CarriedClock, of_one_node_is_its_clock) {
  CarriedClock<int64_t> clock(ms);
  clock.heard(10 * ms, 400 * ms);  // asked long after
  clock.heard(500 * ms, 500 * ms + 20000);
  EXPECT_EQ(clock.of(700 * ms), 700 * ms);
}

TEST(CarriedClock, counts_seconds_as_well) {
  CarriedClock<double> clock(1e-3);
  EXPECT_EQ(clock.of(0.1), 0.1);
  clock.heard(50.0, 1000.0);
  EXPECT_DOUBLE_EQ(clock.of(1001.0), 51.0);
}

}  // namespace
}  // namespace holdfast::redundant
