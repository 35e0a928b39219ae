#include "target/filters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "target/lane.hpp"
#include "target/memory.hpp"

namespace holdfast::target::filters_tests {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using testing::ElementsAre;

Bytes bytes(const std::string& text) {
  Bytes all(text.size());
  std::memcpy(all.data(), text.data(), text.size());
  return all;
}
Status write(Object& object, uint64_t offset, const std::string& text) {
  const iovec one{const_cast<char*>(text.data()), text.size()};
  return object.write(offset, std::span<const iovec>(&one, 1));
}
std::string read(Object& object, uint64_t offset, size_t count) {
  std::string into(count, '?');
  const iovec one{into.data(), into.size()};
  auto got = object.read(offset, std::span<const iovec>(&one, 1));
  if (!got.ok()) return "error";
  into.resize(*got);
  return into;
}

class Filters : public testing::Test {
 protected:
  std::shared_ptr<MemoryDirectory> directory_ = std::make_shared<MemoryDirectory>();
  std::shared_ptr<FaultPlan> plan_ = std::make_shared<FaultPlan>();
  std::shared_ptr<Target> target_ = make_filtered(make_memory_target(directory_, "t"), plan_);
  std::shared_ptr<Object> object_ = target_->open("o", OpenMode::create).value();
};

TEST_F(Filters, the_nth_call_of_a_kind_fails_with_the_errno_and_no_other) {
  plan_->add({.kind = CallKind::write, .nth = 2, .sys_errno = ENOSPC});
  EXPECT_TRUE(write(*object_, 0, "a").ok());
  EXPECT_EQ(read(*object_, 0, 9), "a");
  EXPECT_EQ(write(*object_, 0, "b").kind(), Kind::no_space);
  EXPECT_TRUE(write(*object_, 1, "c").ok());
  EXPECT_EQ(read(*object_, 0, 9), "ac");
  EXPECT_EQ(plan_->fired(), 1u);
}

TEST_F(Filters, a_sweep_over_n_ends_when_the_fault_no_longer_fires) {
  uint64_t failures = 0, n = 1;
  for (;; ++n) {
    plan_->clear();
    plan_->add({.nth = n});
    bool ok = target_->put("m", bytes("x"), true).ok();
    ok &= target_->get("m", 9).ok();
    ok &= target_->check_identity().ok();
    if (!plan_->fired()) {
      EXPECT_TRUE(ok);
      break;
    }
    failures += !ok;
  }
  EXPECT_EQ(n, 4u);
  EXPECT_EQ(failures, 3u);
}

TEST_F(Filters, from_the_nth_on_every_kind_of_call_fails) {
  plan_->add({.nth = 2, .count = kForever, .sys_errno = ESTALE});
  EXPECT_TRUE(target_->space().ok());
  EXPECT_FALSE(target_->space().ok());
  EXPECT_FALSE(target_->open("o", OpenMode::read).ok());
  EXPECT_EQ(target_->put("m", {}, false).sys_errno(), ESTALE);
  EXPECT_FALSE(target_->get("m", 9).ok());
  EXPECT_FALSE(target_->make_directory("d").ok());
  EXPECT_FALSE(target_->remove("o").ok());
  EXPECT_FALSE(target_->remove_directory("d").ok());
  EXPECT_FALSE(target_->list("").ok());
  EXPECT_FALSE(target_->check_identity().ok());
  EXPECT_FALSE(target_->try_lock("l").ok());
  EXPECT_FALSE(write(*object_, 0, "x").ok());
  EXPECT_EQ(read(*object_, 0, 1), "error");
  EXPECT_FALSE(object_->sync().ok());
  EXPECT_FALSE(object_->truncate(0).ok());
  EXPECT_FALSE(object_->size().ok());
  EXPECT_FALSE(object_->still_there().ok());
  EXPECT_EQ(directory_->object_names(), std::vector<std::string>{"o"}) << "nothing arrived";
}

TEST_F(Filters, a_plan_that_is_off_neither_hits_nor_counts) {
  plan_->clear();
  plan_->add({.nth = 2});
  plan_->set_enabled(false);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(target_->space().ok());
  plan_->set_enabled(true);
  EXPECT_TRUE(target_->space().ok());
  EXPECT_FALSE(target_->space().ok());
  EXPECT_EQ(plan_->calls(), 2u);
  EXPECT_EQ(plan_->calls(CallKind::space), 2u);
}

TEST_F(Filters, a_fault_may_be_for_some_names_only) {
  auto other = target_->open("other", OpenMode::create).value();
  size_t fault = plan_->add({.kind = CallKind::write, .count = kForever, .name_contains = "oth"});
  EXPECT_TRUE(write(*object_, 0, "x").ok());
  EXPECT_FALSE(write(*other, 0, "x").ok());
  EXPECT_EQ(plan_->fired(fault), 1u);
}

TEST_F(Filters, targets_of_one_plan_share_its_counters) {
  auto second = make_filtered(make_memory_target(std::make_shared<MemoryDirectory>(), "u"), plan_);
  plan_->add({.kind = CallKind::put, .nth = 2});
  EXPECT_TRUE(target_->put("m", {}, false).ok());
  EXPECT_FALSE(second->put("m", {}, false).ok());
}

TEST_F(Filters, a_hang_on_an_inline_lane_sets_it_aside) {
  plan_->add({.kind = CallKind::write, .effect = Effect::time_out});
  auto lane = make_inline_lane();
  EXPECT_EQ(lane->run([&] { return write(*object_, 0, "x"); }).kind(), Kind::timed_out);
  EXPECT_TRUE(lane->set_aside());
}

TEST_F(Filters, a_hang_on_a_thread_lane_blocks_until_released_and_the_lane_is_then_readmitted) {
  plan_->add({.kind = CallKind::write, .count = kForever, .effect = Effect::hang});
  auto lane = make_companion_lane("t", 50ms);
  auto object = object_;
  EXPECT_EQ(lane->run([object] { return write(*object, 0, "late"); }).kind(), Kind::timed_out);
  EXPECT_EQ(plan_->hanging(), 1u);
  EXPECT_FALSE(lane->readmit());
  plan_->release();
  for (int i = 0; i < 2000 && !lane->readmit(); ++i) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(lane->set_aside());
  EXPECT_EQ(read(*object_, 0, 9), "late");
  EXPECT_TRUE(lane->run([object] { return write(*object, 0, "soon"); }).ok()) << "released hangs hang no more";
}

TEST_F(Filters, a_hang_for_a_time_ends_by_itself) {
  plan_->add({.kind = CallKind::read, .effect = Effect::hang, .hang_for = 60ms});
  auto begin = Clock::now();
  EXPECT_EQ(read(*object_, 0, 1), "");
  EXPECT_GE(Clock::now() - begin, 60ms);
}

TEST_F(Filters, a_short_write_leaves_its_first_half_and_says_so) {
  plan_->add({.kind = CallKind::write, .effect = Effect::short_write, .sys_errno = ENOSPC});
  EXPECT_EQ(write(*object_, 0, "abcdef").kind(), Kind::no_space);
  EXPECT_EQ(read(*object_, 0, 9), "abc");
  plan_->add({.kind = CallKind::put, .effect = Effect::short_write});
  EXPECT_FALSE(target_->put("m", bytes("whole"), false).ok());
  EXPECT_EQ(target_->get("m", 9).status().kind(), Kind::not_found) << "a put is whole or not at all";
}

TEST_F(Filters, bits_flip_in_what_is_written_or_only_in_what_is_read) {
  const std::string original = "abcdef";
  plan_->add({.kind = CallKind::write, .effect = Effect::flip_bit, .bit = 8 * 2});
  EXPECT_TRUE(write(*object_, 0, original).ok());
  EXPECT_EQ(original, "abcdef") << "the caller's buffer stays as it is";
  EXPECT_EQ(read(*object_, 0, 9), "abbdef");
  plan_->add({.kind = CallKind::read, .effect = Effect::flip_bit, .bit = 8 * 4});
  char first[3], second[9];
  iovec two[] = {{first, 3}, {second, 9}};
  EXPECT_EQ(object_->read(0, two).value(), 6u);
  EXPECT_EQ(std::string(first, 3) + std::string(second, 3), "abbddf");
  EXPECT_EQ(read(*object_, 0, 9), "abbdef") << "what lies there is unharmed";
  plan_->add({.kind = CallKind::put, .effect = Effect::flip_bit});
  plan_->add({.kind = CallKind::get, .nth = 2, .effect = Effect::flip_bit});
  EXPECT_TRUE(target_->put("m", bytes("a"), false).ok());
  EXPECT_EQ(target_->get("m", 9).value(), bytes("`"));
  EXPECT_EQ(target_->get("m", 9).value(), bytes("a"));
}

TEST_F(Filters, a_target_that_loses_writes_tells_so_at_sync_and_only_once) {
  plan_->add({.kind = CallKind::write, .effect = Effect::lose, .sys_errno = ENOTCONN});
  EXPECT_TRUE(write(*object_, 0, "abc").ok());
  EXPECT_EQ(read(*object_, 0, 9), "");
  EXPECT_EQ(object_->sync().sys_errno(), ENOTCONN);
  EXPECT_TRUE(object_->sync().ok());
  plan_->add({.kind = CallKind::put, .count = 2, .effect = Effect::lose});
  EXPECT_TRUE(target_->put("m", bytes("x"), false).ok());
  EXPECT_FALSE(target_->put("m", bytes("x"), true).ok());
  EXPECT_EQ(target_->get("m", 9).status().kind(), Kind::not_found);
}

TEST_F(Filters, a_target_that_loses_writes_silently_never_tells) {
  plan_->add({.kind = CallKind::write, .effect = Effect::lose_silently});
  EXPECT_TRUE(write(*object_, 0, "abc").ok());
  EXPECT_TRUE(object_->sync().ok());
  EXPECT_EQ(read(*object_, 0, 9), "");
}

TEST_F(Filters, the_log_has_every_call_with_its_place) {
  plan_->set_logging(true);
  EXPECT_TRUE(write(*object_, 7, "abc").ok());
  EXPECT_TRUE(object_->sync().ok());
  EXPECT_TRUE(target_->put("m", bytes("xy"), false).ok());
  EXPECT_THAT(plan_->log(), ElementsAre(CallRecord{"t", CallKind::write, "o", 7, 3}, CallRecord{"t", CallKind::sync, "o", 0, 0},
                                        CallRecord{"t", CallKind::put, "m", 0, 2}));
  plan_->clear_log();
  EXPECT_TRUE(plan_->log().empty());
}

TEST_F(Filters, latency_and_rate_slow_calls_down_by_what_they_say) {
  plan_->set_limits(20ms, 0);
  auto begin = Clock::now();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(target_->space().ok());
  EXPECT_GE(Clock::now() - begin, 60ms);

  plan_->set_limits(0us, 1000000);
  begin = Clock::now();
  std::vector<std::thread> threads;  // the rate is that of all together
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) EXPECT_TRUE(write(*object_, t * 5000, std::string(5000, 'x')).ok());
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_GE(Clock::now() - begin, 99ms);
  plan_->set_limits(0us, 0);
}

TEST_F(Filters, plans_may_change_while_calls_run) {
  std::atomic<bool> done{false};
  std::thread caller([&] {
    while (!done) (void)write(*object_, 0, "x");
  });
  for (int i = 0; i < 200; ++i) {
    plan_->add({.kind = CallKind::write, .count = 3});
    plan_->set_enabled(i % 2);
    if (i % 10 == 0) plan_->clear();
    (void)plan_->fired();
  }
  done = true;
  caller.join();
}

}  // namespace
}  // namespace holdfast::target::filters_tests
