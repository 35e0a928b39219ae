// This process as one of the replicas of its rank: what it is for those who serve the program's calls. Three threads of its own beside
// the program's. One hears the hub and the twins, one sends what may wait a moment, one tells the hub that this process lives.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>

#include "redundant/compare/meetings.hpp"
#include "redundant/map.hpp"
#include "redundant/membership/lock_holders.hpp"
#include "redundant/membership/shared_pointers.hpp"
#include "redundant/orders.hpp"
#include "redundant/progress.hpp"

namespace holdfast::redundant {

class SentMessages;

// What the one who carries a call out has to know.
struct Turn {
  bool again = false;               // a leader that was lost may have done it, or a part of it, already
  bool same_view = false;           // all replicas have seen the same
  const Claim* intended = nullptr;  // what that leader had claimed, where it is known
};

class Replica {
 public:
  // Null: this process is no replica, which is one load.
  static Replica* now() { return now_.load(std::memory_order_acquire); }
  // Once in a process, before it is used: returns when all living twins have come, or says why this process cannot be one. `ranks`: of a team;
  // 0: not known. `about`: lines for the hub on what it runs (membership/likeness).
  static Status join(const TeamOrders& orders, int rank, int ranks, const std::string& about = "");

  virtual const Place& place() const = 0;
  // Of this process, and of the one that was this rank at first: the same in all replicas, whoever lives.
  struct ProcessNumbers {
    int own = 0, first = 0;
  };
  virtual ProcessNumbers process_numbers() const { return {}; }
  // What tells how far this process has come, also after its death (progress.hpp). Given away once.
  virtual raw::Fd progress() { return {}; }
  virtual bool leads() = 0;

  using Act = std::function<Bytes(const Turn&)>;
  // A call that every replica makes in its turn on this subject: answers its outcome. `act` is called in the leader, when all claims agree. Where
  // they do not, this call never returns, unless it turns out that one who differed was lost meanwhile. `what` names the call for a person.
  virtual Bytes meet(uint64_t subject, const Claim& claim, const std::function<std::string()>& what, const Act& act) = 0;
  // The present or last call on a subject, by the numbers that all replicas have for it, also one that has resumed.
  struct NumberedCall {
    uint64_t subject = 0, number = 0;
  };
  virtual NumberedCall numbered(uint64_t subject) { return {subject, 0}; }
  // In a leader's turn: returns when no other rank of the job appends to the file, until end_append(), which all replicas call. `number`: the rank's call,
  // the same in all of them. A leader that is lost in between leaves the turn to the next one. `file`: the same in all ranks.
  virtual void begin_append(uint64_t /*file*/, uint64_t /*number*/) {}
  virtual void end_append(uint64_t /*file*/, uint64_t /*number*/) {}
  // A call on a file pointer that ranks share, once for all replicas: where it stood before, or -1.
  virtual int64_t call_pointer(uint64_t /*file*/, const PointerCall&) { return -1; }
  // By the leader, to whom the kernel has given a lock: whether another rank holds one that forbids it. Its own leader was lost then, or it has just given it up.
  // Of a part that is given up it is said before the kernel hears of it, and always true.
  virtual bool call_lock(uint64_t /*file*/, const LockedPart&) { return true; }
  // A call on a file that each replica has for itself has failed, or was cut short, at a place that all have the same number for. Returns everybody's answer:
  // how much was done, or a negative errno. Never returns where the others could do it: this team is lost then, with the sentence `why`.
  virtual int64_t answer_of_failure(uint64_t /*place*/, int64_t answer, const std::string& /*why*/) { return answer; }
  // This process is about to become another program, as all its twins do. Returns when all have come so far, and all that was said is with all. What it
  // is then joins by these orders, as the same rank.
  virtual std::string becomes(const std::string& /*program*/) { return ""; }
  // No replica calls on the subject any more.
  virtual void forget(uint64_t) {}
  // What the world answers, once for all: `ask` fills `answer` in the leader. Not from within a signal handler that came in here: then, and
  // in a child of fork, the world answers each for itself.
  using Ask = void (*)(void* given, ByteSpan answer);
  virtual void decide(uint64_t subject, ByteSpan answer, Ask ask, void* given) = 0;
  // How a clock is asked for a thread of the program that has not asked itself: in the form of its answers. False: by somebody else, or not at all.
  using AskClock = bool (*)(uint64_t clock, Bytes& answer);
  static void asks_clocks_by(AskClock ask);
  // Of a thread of the program that has begun, or is about to end (program_thread.hpp).
  virtual void thread_begins(uint32_t /*number*/) {}
  virtual void thread_ends(uint32_t /*number*/) {}
  // The same of any size, about what is asked seldom (files, names). It is with all twins before this rank's next send, by which other ranks may
  // learn of it. `ask` may wait for the world.
  virtual Bytes answer(uint64_t, const std::function<Bytes()>& ask) { return ask(); }

  // Which message came, by subject: what is known of the next answer. `mine`: this replica asks MPI, and says what it is told.
  enum class Known : uint8_t { nothing, mine, no, yes };
  virtual Known known(uint64_t subject, Bytes& answer) = 0;
  virtual void say(uint64_t subject, ByteView answer) = 0;
  virtual void say_no(uint64_t subject) = 0;
  // Before other ranks can learn of it: returns when all twins that live have what this one has said about messages.
  virtual void before_a_send() = 0;
  // Until a word of a twin or of the hub has come, or so long.
  virtual void wait_a_moment(std::chrono::microseconds most) = 0;
  // This replica does something else than its leader did: the job is stopped with this sentence. Never returns.
  [[noreturn]] virtual void differs(const std::string& what) = 0;

  // Null: messages are not compared.
  virtual SentMessages* sent() { return nullptr; }
  // A line about that for `holdfast status --job`, once.
  virtual void sent_note(const char*) {}
  // A line to whoever has started the job, and for that status: once for the same line of any rank.
  virtual void warn(const std::string&) {}
  // After a record there, where it says that this is due.
  virtual void look_at_sent() {}
  // Before MPI ends: what was sent since the last call on a file.
  virtual void compare_at_the_end() {}

  // What a lost twin gave to the kernel is still there.
  virtual bool shares_node() const = 0;
  // Replicas may differ: what the leader does counts.
  virtual bool rehearses() const { return false; }
  // No twin lives any more.
  virtual bool is_alone() = 0;
  // Called by a thread of the replica's own each time that a leader was lost. It must not wait.
  virtual void when_a_leader_is_lost(std::function<void()>) {}
  // How many losses of a leader this process knows of: what a lost one had not made durable is to be written again.
  virtual uint32_t successions() = 0;
  // What this job does is written down for a team that may be started again.
  virtual bool is_kept() { return false; }
  // In a team that was started again: where the outcome of the last call on the subject was another one's then, what that one claimed.
  virtual std::optional<Claim> claimed_then(uint64_t) { return std::nullopt; }
  // What that call has read, to be kept, or as it was kept.
  virtual void keep_read(uint64_t, ByteView) {}
  virtual std::optional<Bytes> read_then(uint64_t) { return std::nullopt; }
  // It was started again, has resumed from a checkpoint of its own, and has not changed anything yet. It has no part in what its twins do. What it
  // calls until then it does alone.
  virtual bool is_joining() { return false; }
  // Called where it joins, before anything else.
  virtual void when_joined(std::function<void()>) {}
  // Until then: what calls on this subject have written it has read, to go on from there. Subject 0: what was there when the job began.
  virtual void resumes_from(uint64_t) {}
  // Counts opens of the file whose name has this sum, as all replicas do.
  virtual uint64_t next_open(uint64_t name);
  // It has not come to the end of what it has to do again: time need not pass.
  virtual bool is_behind() { return false; }
  // A call of the program's in which its twins have no part, and other ranks may have: what it is, and how many there were. `name` null: it is in none.
  struct OtherCall {
    const char* name = nullptr;
    uint64_t number = 0;
    int thread = 0;
  };
  // How another thread learns that, as long as the process lives.
  virtual void looks_at_other_calls(std::function<OtherCall()>) {}
  // It cannot do what was done then, or what the others do: its team is ended with this sentence. Never returns.
  [[noreturn]] virtual void cannot_catch_up(const std::string& why) { differs(why), std::abort(); }
  // A signal ends this process, which holds bytes that its twins hold as well. Returns where all of them end so, at this place of the program, or when it is the
  // last one. Never returns where others go on: this team is lost then, with the sentence `why`.
  virtual void ends_by_signal(int /*signal*/, const std::string& /*why*/) {}
  // Before the process ends by itself; with its team where MPI_Abort ends it, or an error. `code`: of its exit, 0 where its launcher knows it.
  virtual void leaves(bool with_its_team, int code) = 0;

 protected:
  virtual ~Replica() = default;
  static std::atomic<Replica*> now_;
};

}  // namespace holdfast::redundant
