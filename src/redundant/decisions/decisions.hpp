// What the outside world answers: clocks, random numbers, which message came first. The leader asks and pushes its answers in batches; the
// others repeat them in the same order. Answers are numbered by subject, so that two threads that ask different things do not disturb each
// other.
//
// What a rank does next may tell other ranks of its team which message came. So answers about messages are acknowledged, and the leader's next
// send waits until they have arrived (has_arrived). A clock may decide whether a rank sends at all, and another rank may then be told that this message
// came. So from await_all() on, which is before any rank is told of a message, all answers are acknowledged: no answer about messages rests on one that is
// lost with the leader.
//
// After a leader's loss its successor first gets what any survivor remembers (Word::unite): an answer that one of them has got holds for all, used or not.
// What nobody has got is void and decided anew.
//
// Pure, as meetings.hpp is.
#pragma once
#include <atomic>
#include <bit>
#include <deque>
#include <list>
#include <map>
#include <optional>

#include "redundant/compare/meetings.hpp"

namespace holdfast::redundant {

class Decisions {
 public:
  Decisions(int team, int teams) : Decisions(team, first_teams(teams), 0, nullptr) {}
  Decisions(int team, uint64_t living, int leader, Keeper* keeper)
      : team_(team), keeper_(keeper), remembers_(std::popcount(living) > 2 || keeper), leader_(leader), living_(living | team_bit(team)) {}

  // Whether this replica asks the world now. Else `next` has an answer, or one is still to come.
  bool decides(uint64_t subject) const;
  // The leader's answer, which is its own and everybody's. True: it is the first of a batch, which somebody should send soon.
  bool decided(uint64_t subject, ByteView answer);
  // The leader's next answer, where it has come and is of this size.
  bool next(uint64_t subject, ByteSpan answer);
  // Of a clock that a thread of the program asks (subjects.hpp). A thread of a follower may wait for an answer that the leader's own thread never asks
  // for. Then the leader answers for it: whether it may, as nobody has made that answer. Its own thread is told the same, when it asks.
  bool may_answer_ahead(uint64_t subject, uint64_t number) const;
  bool answered_ahead(uint64_t subject, ByteView answer);
  // What a thread that has ended has not asked for is kept no longer. Another one may have its number.
  void thread_begins(uint32_t thread);
  void thread_ends(uint32_t thread);
  bool has_ended(uint32_t thread) const { return thread < ended_threads_.size() && ended_threads_[thread]; }
  void send_batch(Outbox& out) { send(out, false); }
  // Before this replica leaves, after which it is not heard any more. All that it has sent has been taken when has_arrived() says so.
  void send_last(Outbox& out) { send(out, true); }
  // So much waits to be sent that whoever asks next waits for that: replicas are less apart than what they remember.
  bool is_full() const;

  // About messages: answers of any size; and a question that may be asked again and again until the answer is no longer `no`. Noes are
  // counted, not kept one by one.
  enum class Known : uint8_t { nothing, no, yes };
  bool decided_message(uint64_t subject, ByteView answer);
  // True: nothing else waits to be sent, and nobody hurries.
  bool decided_no(uint64_t subject);
  // Noes without the lock under which all else here is called, by any thread: a program may ask all the time. Where neither of these is true the calls
  // under the lock say how it stands. Lives as long as the decisions.
  class Noes {
   public:
    // The next answer is a no of the leader's, which is repeated by that.
    bool repeats() { return take_one(to_repeat_); }
    // This replica asks the world, as decides() has said.
    bool is_asked() const { return asked_.load(std::memory_order_acquire); }
    // One more, where one is counted already that has not been sent: nothing else is to be done for it.
    bool adds();

   private:
    friend class Decisions;
    static bool take_one(std::atomic<uint64_t>& count);
    std::atomic<uint64_t> said_{0};       // the leader's, that are in no answer yet
    std::atomic<uint64_t> to_repeat_{0};  // before what waits
    std::atomic<bool> asked_{false};
  };
  // Where it decides, or has something to repeat.
  Noes& noes(uint64_t subject);
  Known next_message(uint64_t subject, Bytes& answer);
  // All that this leader has decided about messages is with all who live. Likewise what came before send_last(), and all from await_all() on.
  bool has_arrived() const;
  // What has been decided until now has to arrive as well: when it has, has_begun_to_await() is true once.
  void await_all(Outbox& out);
  bool has_begun_to_await();
  void await_all_from_the_beginning() { awaits_all_ = true; }
  bool awaits_all() const { return awaits_all_; }

  // Out of the log of the one that is followed.
  void learn(uint64_t subject, uint64_t number, ByteView answer);
  // One that was made before the place at which this team joins, and is not asked for here.
  void pass(uint64_t subject, uint64_t number, ByteView answer);
  // Of those that were learned and not asked for: each subject, and the number of the first one.
  Bytes waiting() const;
  size_t learned() const { return learned_; }  // and not asked for yet
  // Of the last answer on a subject that this replica made or got.
  uint64_t number(uint64_t subject) const {
    const auto found = subjects_.find(subject);
    return found == subjects_.end() ? 0 : found->second.known;
  }
  void take(const Frame& frame, Outbox& out);
  // After the meetings have heard of the same epoch.
  void live(uint32_t epoch, uint64_t living, int leader, Outbox& out);
  // A leader's answers began behind what this replica has: they cannot be repeated, and nothing is told here any more.
  bool is_torn() const { return torn_; }
  bool is_alone() const;  // nobody is left to hear it

 private:
  struct One {
    uint64_t subject = 0, number = 0;
    Bytes answer;
  };
  struct Subject {
    uint64_t known = 0;        // answers that this replica made or got
    std::list<Bytes> waiting;  // takes no room while it is empty: there are as many subjects as names that the program asks about
    Noes noes;
  };
  void add(uint64_t subject, Subject& one, Bytes answer);
  void keep_until_asked(uint64_t subject, Subject& one, Bytes answer);
  void add_noes(uint64_t subject, Subject& one);
  static void append(Bytes& batch, const One& one);
  template <class Each>
  static void each(ByteView batch, Each take_one);
  void remember(One one);
  void learn_all(ByteView batch);
  bool learn(One one);
  void asks_no_more();
  void take_over(Outbox& out);
  void send(Outbox& out, bool last);

  const int team_;
  Keeper* const keeper_;
  const bool remembers_;  // where there may be more than two replicas
  int leader_;
  uint32_t epoch_ = 0;
  uint64_t living_, not_united_ = 0;
  size_t learned_ = 0;
  std::map<uint64_t, Subject> subjects_;
  Bytes batch_;
  size_t batch_answers_ = 0;
  bool batch_is_awaited_ = false, awaits_all_ = false, begins_to_await_ = false;
  std::vector<uint64_t> with_noes_;  // subjects
  uint64_t asked_ = 0;               // batches that are acknowledged
  std::array<uint64_t, most_teams> arrived_{};
  std::deque<One> remembered_;
  std::map<int, Frame> united_early_;
  bool takes_over_ = false, torn_ = false;
  std::vector<bool> ended_threads_;  // by number
};

}  // namespace holdfast::redundant
