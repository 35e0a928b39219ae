#include "redundant/twins/hub_answers.hpp"

#include <gtest/gtest.h>

namespace holdfast::redundant {
namespace {

Frame answer(Word word, uint64_t number, int64_t told) {
  Frame frame;
  frame.word = word, frame.subject = 7, frame.number = number;
  frame.payload = bytes_of({reinterpret_cast<const char*>(&told), sizeof told});
  return frame;
}

TEST(HubAnswers, a_locks_answer_is_no_pointers_where_both_calls_have_one_number) {
  HubAnswers answers;
  const HubAnswers::Call pointer{Word::pointer, 7, 1}, lock{Word::locks, 7, 1};
  answers.expect(pointer);
  answers.expect(lock);
  answers.take(answer(Word::locks, 1, 1));
  EXPECT_EQ(answers.fetch(pointer), std::nullopt);
  EXPECT_EQ(answers.fetch(lock), 1);
  answers.take(answer(Word::pointer, 1, 4096));
  EXPECT_EQ(answers.fetch(pointer), 4096);
}

TEST(HubAnswers, what_nobody_waits_for_is_not_kept) {
  HubAnswers answers;
  answers.take(answer(Word::pointer, 1, 4096));
  answers.expect({Word::pointer, 7, 1});
  EXPECT_EQ(answers.fetch({Word::pointer, 7, 1}), std::nullopt);
}

TEST(HubAnswers, one_that_is_cut_says_that_nothing_is_known) {
  HubAnswers answers;
  answers.expect({Word::pointer, 7, 1});
  Frame cut = answer(Word::pointer, 1, 4096);
  cut.payload.resize(3);
  answers.take(cut);
  EXPECT_EQ(answers.fetch({Word::pointer, 7, 1}), -1);
  EXPECT_EQ(answers.fetch({Word::pointer, 7, 1}), std::nullopt) << "once";
}

}  // namespace
}  // namespace holdfast::redundant
