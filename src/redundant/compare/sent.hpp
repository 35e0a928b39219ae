// What a rank sends and contributes to collective calls, as one running sum over its messages (`--compare messages`). Twins compare it at
// positions that both know: where the n-th message has been sent. So one that is ahead is not called different.
//
// Followers tell the leader where they are and it tells them. Whoever is behind compares when it comes to that place; the latest messages
// are remembered, for what comes late. At a difference the leader asks all for what they remember, and the first message in which they differ is named.
//
// Of the one thread that made this process a replica: in which order several threads send is not the same in all replicas.
//
// No sockets, no clock. The program's thread records without a lock; all else is called under the one of the replica.
#pragma once
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "redundant/compare/meetings.hpp"

namespace holdfast::redundant {

// The call by which a message was sent. One static object for each.
struct SentBy {
  const char* name;
  uint32_t number;  // the same in all replicas
  explicit constexpr SentBy(const char* call) : name(call), number(2166136261u) {
    for (const char* at = call; *at; ++at) number = (number ^ uint8_t(*at)) * 16777619u;  // FNV-1a
  }
};

struct SentMessage {
  static constexpr int32_t none = INT32_MIN;
  const SentBy* by = nullptr;
  uint32_t communicator = 0;        // in the order in which the program has come to use them
  int32_t peer = none, tag = none;  // a peer without a tag is the root of a collective call
  uint64_t bytes = 0;               // of data
  uint64_t signature = 0, sum = 0;  // of its datatype and count, of its bytes
};

class SentMessages {
 public:
  explicit SentMessages(int team);

  // Is the caller the program's thread whose messages are compared?
  bool is_by_its_thread() const { return thread_ == &mark_of_thread; }
  // By that thread. True: attend() is due.
  bool record(const SentMessage& message);
  // By any thread: how far it is goes into the claim, where it is that one.
  void fill(Claim& claim) const;

  // After record(), by its thread.
  void attend(const Meetings& twins, Outbox& out);
  // Every now and then, by any thread.
  void tick(const Meetings& twins, Outbox& out);
  void take(const Frame& frame, const Meetings& twins, Outbox& out);
  // After Meetings::live of a newer epoch.
  void live(const Meetings& twins);
  // In the leader: claims of a call differ in nothing but what was sent before. `before`: which call, for a person.
  void ask(const std::vector<std::pair<int, Claim>>& claims, const std::string& before, const Meetings& twins, Outbox& out);

  struct Difference {
    std::vector<std::pair<int, Claim>> claims;  // of all who live
    std::string what;
    uint64_t message = 0;  // counted from 0
  };
  // Once for each that was found, when all have answered.
  std::optional<Difference> found();
  bool asks() const { return question_.has_value(); }

  uint64_t count() const { return count_.load(std::memory_order_acquire); }

  static constexpr uint64_t remembered = 1 << 14;  // messages
  static constexpr uint64_t told_every = remembered / 4;

 private:
  struct Record {
    uint64_t running = 0;  // up to and with this message
    const SentBy* by = nullptr;
    uint32_t communicator = 0;
    int32_t peer = 0, tag = 0;
    uint64_t bytes = 0;
  };
  // As a frame carries it.
  struct Told {
    uint64_t running, bytes;
    int32_t peer, tag;
    uint32_t communicator, unused;
    char call[40];
  };
  struct Answer {
    uint64_t first = 0, end = 0;  // messages
    std::vector<Told> told;
    const Told* at(uint64_t message) const { return message >= first && message < end ? &told[message - first] : nullptr; }
  };
  struct Question {
    std::string before;  // which call; then `claims` are those of that call
    std::vector<std::pair<int, Claim>> claims;
    std::vector<std::pair<int, uint64_t>> until;  // of all who live: how many messages each has to tell of, at least
    std::array<std::optional<Answer>, most_teams> answers;
    bool is_answered = false;  // the hub judges
    const Answer& of(int team) const { return *answers[size_t(team)]; }
  };
  // As words, which one thread writes while another reads.
  struct Slot {
    std::array<std::atomic<uint64_t>, 5> words;
  };
  using State = std::pair<uint64_t, uint64_t>;  // after so many messages: the running sum

  std::optional<Record> remembers(uint64_t message) const;
  std::optional<uint64_t> running_after(uint64_t messages) const;
  Answer all_remembered() const;
  void tell_where(const Meetings& twins, Outbox& out);
  void compare(int team, const State& theirs, const Meetings& twins, Outbox& out);
  void compare_pending(const Meetings& twins, Outbox& out);
  void differs_after(uint64_t messages, const Meetings& twins, Outbox& out);
  void ask_who_lacks(const Meetings& twins, Outbox& out);
  bool all_have_answered() const;
  // Messages that all remember: the first one, and the one behind the last.
  std::pair<uint64_t, uint64_t> known_to_all() const;
  Difference name() const;
  Frame frame(uint64_t kind, uint64_t number, const Meetings& twins) const;
  static std::string text(const Told& told);

  static thread_local char mark_of_thread __attribute__((tls_model("initial-exec")));

  const int team_;
  const char* const thread_;
  std::unique_ptr<Slot[]> slots_;
  uint64_t running_ = 0;
  std::atomic<uint64_t> count_{0}, attention_{0};
  std::array<std::deque<State>, most_teams> pending_;  // of twins that are ahead
  std::optional<Question> question_;
  bool told_differs_ = false;
};

}  // namespace holdfast::redundant
