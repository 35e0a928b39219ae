// A leader answers for a thread of its own that does not ask: threads that ask the time until they are ended do so unlike often in each replica.
#include <gtest/gtest.h>

#include "redundant/decisions/decisions.hpp"
#include "redundant/subjects.hpp"

namespace holdfast::redundant::test {
namespace {

const uint64_t clock = clock_of_thread(uint64_t(Subject::seconds), 3);

std::string next(Decisions& of, uint64_t subject = clock) {
  Bytes answer(1);
  return of.next(subject, answer) ? std::string(text_of(answer)) : "";
}

void deliver(Decisions& from, std::vector<Decisions*> to) {
  Outbox out, answers;
  from.send_batch(out);
  for (const auto& [team, frame] : out)
    if (to[size_t(team)]) to[size_t(team)]->take(frame, answers);
}

TEST(ClocksOfThreads, have_numbers_of_their_own) {
  EXPECT_EQ(clock_of_thread(uint64_t(Subject::seconds), 0), uint64_t(Subject::seconds));
  EXPECT_NE(clock, clock_of_thread(uint64_t(Subject::seconds), 4));
  EXPECT_EQ(thread_of(clock), 3u);
  EXPECT_EQ(clock_of(clock), uint64_t(Subject::seconds));
  EXPECT_TRUE(is_clock(clock));
  EXPECT_TRUE(is_clock(clock_of_thread(clock_subject(1), (1u << thread_bits) - 1)));
  EXPECT_FALSE(is_clock(clock_of_thread(uint64_t(Subject::random), 3)));
  EXPECT_EQ(thread_of(name_subject(~uint64_t(0))), 0u);
  EXPECT_EQ(thread_of(clock_subject(-6)), 0u);  // of another process
}

TEST(ClocksOfThreads, are_answered_ahead_and_told_the_same_where_they_ask) {
  Decisions leader(0, 3), one(1, 3), two(2, 3);
  (void)leader.decided(clock, bytes_of("a"));
  deliver(leader, {nullptr, &one, &two});
  EXPECT_EQ(next(one), "a");
  EXPECT_FALSE(leader.may_answer_ahead(clock, 1));  // that is on its way
  EXPECT_FALSE(leader.may_answer_ahead(clock, 3));
  EXPECT_FALSE(one.may_answer_ahead(clock, 2));
  ASSERT_TRUE(leader.may_answer_ahead(clock, 2));
  (void)leader.answered_ahead(clock, bytes_of("b"));
  deliver(leader, {nullptr, &one, &two});
  EXPECT_EQ(next(one), "b");
  EXPECT_EQ(next(two), "a");
  EXPECT_EQ(next(two), "b");
  EXPECT_FALSE(leader.decides(clock));
  EXPECT_EQ(next(leader), "b");
  EXPECT_TRUE(leader.decides(clock));
}

TEST(ClocksOfThreads, are_united_after_a_loss_with_what_was_answered_ahead) {
  Decisions leader(0, 3), heir(1, 3), other(2, 3);
  (void)leader.answered_ahead(clock, bytes_of("a"));
  deliver(leader, {nullptr, nullptr, &other});  // the heir has not heard of it
  EXPECT_EQ(next(other), "a");
  Outbox of_heir, of_other;
  heir.live(1, 6, 1, of_heir);
  other.live(1, 6, 1, of_other);
  EXPECT_FALSE(heir.may_answer_ahead(clock, 1));  // it does not know yet what others have been told
  for (const auto& [team, frame] : of_other) heir.take(frame, of_heir);
  EXPECT_FALSE(heir.decides(clock));
  EXPECT_EQ(next(heir), "a");
  EXPECT_TRUE(heir.may_answer_ahead(clock, 2));
}

TEST(ClocksOfThreads, that_have_ended_keep_nothing) {
  Decisions leader(0, 2), follower(1, 2);
  const uint64_t its_other = clock_of_thread(clock_subject(1), 3), of_next = clock_of_thread(uint64_t(Subject::seconds), 4);
  for (const uint64_t subject : {clock, its_other, of_next}) (void)leader.decided(subject, bytes_of("a"));
  deliver(leader, {nullptr, &follower});
  EXPECT_EQ(follower.learned(), 3u);
  follower.thread_ends(3);
  EXPECT_TRUE(follower.has_ended(3));
  EXPECT_EQ(follower.learned(), 1u);
  (void)leader.decided(clock, bytes_of("b"));
  deliver(leader, {nullptr, &follower});
  EXPECT_EQ(follower.learned(), 1u);
  EXPECT_EQ(follower.number(clock), 2u);  // a next leader goes on from there
  EXPECT_EQ(next(follower, of_next), "a");
  follower.thread_begins(3);
  (void)leader.decided(clock, bytes_of("c"));
  deliver(leader, {nullptr, &follower});
  EXPECT_EQ(next(follower), "c");
}

}  // namespace
}  // namespace holdfast::redundant::test
