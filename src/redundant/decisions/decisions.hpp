// What the outside world answers: clocks, random numbers. The leader asks and pushes its answers in batches; the others repeat them in the
// same order. Answers are numbered by subject, so that two threads that ask different things do not disturb each other.
//
// After a leader's loss its successor first gets what any survivor remembers (Word::unite): an answer that one of them has used holds for
// all. What nobody has got is void and decided anew.
//
// Pure, as meetings.hpp is.
#pragma once
#include <deque>
#include <map>
#include <optional>

#include "redundant/compare/meetings.hpp"

namespace holdfast::redundant {

class Decisions {
 public:
  Decisions(int team, int teams) : team_(team), teams_(teams) {}

  // Whether this replica asks the world now. Else `next` has an answer, or one is still to come.
  bool decides(uint64_t subject) const;
  // The leader's answer, which is its own and everybody's. True: it is the first of a batch, which somebody should send soon.
  bool decided(uint64_t subject, ByteView answer);
  // The leader's next answer, where it has come and is of this size.
  bool next(uint64_t subject, ByteSpan answer);
  void send_batch(Outbox& out);
  size_t unsent_bytes() const { return batch_.size(); }

  void take(const Frame& frame, Outbox& out);
  // After the meetings have heard of the same epoch.
  void live(uint32_t epoch, uint64_t living, int leader, Outbox& out);
  // A leader's answers began behind what this replica has: they cannot be repeated.
  bool is_torn() const { return torn_; }

 private:
  struct One {
    uint64_t subject = 0, number = 0;
    Bytes answer;
  };
  struct Subject {
    uint64_t known = 0;  // answers that this replica made or got
    std::deque<Bytes> waiting;
  };
  static void append(Bytes& batch, const One& one);
  template <class Each>
  static void each(ByteView batch, Each take_one);
  void remember(One one);
  void learn(ByteView batch);
  void take_over(Outbox& out);

  const int team_, teams_;
  int leader_ = 0;
  uint32_t epoch_ = 0;
  uint64_t living_ = ~uint64_t(0), not_united_ = 0;
  std::map<uint64_t, Subject> subjects_;
  Bytes batch_;
  std::deque<One> remembered_;  // where there are more than two replicas
  std::map<int, Frame> united_early_;
  bool takes_over_ = false, torn_ = false;
};

}  // namespace holdfast::redundant
