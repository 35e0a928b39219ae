#include "target/lane_group.hpp"

#include <gtest/gtest.h>

#include <array>

namespace holdfast::target {
namespace {

using namespace std::chrono_literals;
using Clock = LaneGroup::Clock;

// A lane whose state the test says.
class ToldLane final : public Lane {
 public:
  std::shared_ptr<Ticket> submit(std::function<Status()>) override { return nullptr; }
  bool set_aside() const override { return aside; }
  bool readmit() override { return false; }
  void let_go(std::shared_ptr<const void>) override {}
  Pulse pulse() const override { return now; }
  bool aside = false;
  Pulse now;
};

// Six lanes of which two may be missed, a deadline of 10 s, at most 5 of them; a time of its own.
class SixLanes : public testing::Test {
 protected:
  SixLanes() {
    for (auto& lane : lanes_) lane = std::make_shared<ToldLane>();
    group_ = std::make_shared<LaneGroup>(std::vector<std::shared_ptr<Lane>>(lanes_.begin(), lanes_.end()), 2, 5);
  }
  // The first `count` lanes have begun a call now.
  void begin(int count) {
    begun_ = now_;
    for (int i = 0; i < count; ++i) lanes_[i]->now.busy_since = now_;
  }
  void end(int lane) { lanes_[lane]->now = {{}, now_}; }
  void pass(Clock::duration time) { now_ += time; }
  bool waits_on() { return group_->waits_on(now_ - begun_, 10s, now_); }

  std::array<std::shared_ptr<ToldLane>, 6> lanes_;
  std::shared_ptr<LaneGroup> group_;
  Clock::time_point now_ = Clock::time_point() + 1h, begun_;
};

TEST_F(SixLanes, as_many_as_may_be_missed_are_given_up_at_their_deadline) {
  begin(2);
  pass(10s);
  EXPECT_FALSE(waits_on());
}

TEST_F(SixLanes, more_than_may_be_missed_are_waited_for) {
  begin(3);
  pass(10s);
  EXPECT_TRUE(waits_on());
}

TEST_F(SixLanes, those_that_are_lost_or_set_aside_already_count) {
  group_->lose(5);
  lanes_[4]->aside = true;
  begin(1);
  pass(10s);
  EXPECT_TRUE(waits_on());
}

TEST_F(SixLanes, one_that_is_both_lost_and_set_aside_counts_once) {
  group_->lose(5);
  lanes_[5]->aside = true;
  begin(1);
  pass(10s);
  EXPECT_FALSE(waits_on());
}

TEST_F(SixLanes, calls_that_were_begun_just_now_are_not_late) {
  begin(2);
  pass(6s);
  for (int i = 2; i < 6; ++i) lanes_[i]->now.busy_since = now_;
  pass(4s);
  EXPECT_FALSE(waits_on());
}

TEST_F(SixLanes, where_none_comes_back_they_are_given_up_after_the_second_deadline) {
  begin(6);
  pass(10s);
  EXPECT_TRUE(waits_on());
  pass(10s);
  EXPECT_FALSE(waits_on());
}

TEST_F(SixLanes, while_any_comes_back_they_are_waited_for_as_long_as_patience_says) {
  begin(6);
  for (int deadline = 1; deadline < 5; ++deadline) {
    pass(9s);
    end(5);
    pass(1s);
    EXPECT_TRUE(waits_on()) << deadline;
    lanes_[5]->now.busy_since = now_;
  }
  pass(9s);
  end(5);
  pass(1s);
  EXPECT_FALSE(waits_on());
}

TEST_F(SixLanes, the_last_few_of_a_load_are_not_given_up_for_being_few) {
  begin(6);
  pass(10s);
  EXPECT_TRUE(waits_on());
  pass(1s);
  for (int i = 1; i < 6; ++i) end(i);
  pass(1s);
  EXPECT_TRUE(waits_on());
  pass(9s);  // the load was seen too long ago
  EXPECT_FALSE(waits_on());
}

}  // namespace
}  // namespace holdfast::target
