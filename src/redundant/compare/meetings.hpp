// Calls that all replicas of a rank make and one of them carries out. Each says what it is about to do (its claim) to the leader, the first
// living replica. Where all claims agree the leader acts, and its outcome is the outcome of all. Calls are numbered by subject (a file, the
// names of files); on one subject a replica makes one call after the other.
//
// Nobody is more than one call ahead of another on a subject, for the leader acts only when all have come: so after a loss the last outcome
// of each survivor is all that the new leader may lack. Whoever has it says so (Word::have) before the new leader may act.
//
// Pure: not locked, no sockets, no clock. What is to be sent is appended to the outbox, in order for each team.
#pragma once
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "redundant/frame.hpp"
#include "redundant/map.hpp"

namespace holdfast::redundant {

struct Claim {
  uint64_t call = 0;  // what kind of call; the caller's numbers
  uint64_t at = 0, bytes = 0;
  uint64_t sum = 0;   // of all that must be the same and is not said above
  uint64_t view = 0;  // of what this replica alone has seen: may differ, and the leader learns whether it does
  bool operator==(const Claim& other) const { return call == other.call && at == other.at && bytes == other.bytes && sum == other.sum; }
};

using Outbox = std::vector<std::pair<int, Frame>>;  // for this team

class Meetings {
 public:
  Meetings(int team, int teams);

  void begin(uint64_t subject, const Claim& claim, Outbox& out);
  enum class State : uint8_t { wait, act, differ, done };
  State state(uint64_t subject) const;
  // After `act`: what has come of it.
  void finish(uint64_t subject, Bytes outcome, Outbox& out);
  // After `done`: the call is over.
  Bytes end(uint64_t subject);
  // After `differ`: the claims of the living, for a report.
  std::vector<std::pair<int, Claim>> claims(uint64_t subject) const;

  void take(const Frame& frame, Outbox& out);
  // The teams that live as of this epoch. The dead are not heard any more.
  void live(uint32_t epoch, uint64_t mask, Outbox& out);

  int leader() const { return leader_; }
  bool leads() const { return leader_ == team_; }
  bool lives(int team) const { return team >= 0 && team < teams_ && (living_ >> team & 1); }
  bool is_alone() const { return living_ == uint64_t(1) << team_; }
  uint32_t epoch() const { return epoch_; }
  uint64_t living() const { return living_; }
  // Of the present or last call.
  uint64_t number(uint64_t subject) const {
    const auto found = subjects_.find(subject);
    return found == subjects_.end() ? 0 : found->second.number;
  }

 private:
  struct Said {
    uint64_t number = 0;
    uint32_t epoch = 0;
    Claim claim;
  };
  struct Subject {
    uint64_t number = 0;  // of this process's present or last call
    bool pending = false, done = false;
    Claim claim;
    Bytes outcome;  // of the present call where it is done; else of the one before
    uint64_t outcome_number = 0;
    std::array<std::optional<Said>, most_teams> said;
  };
  Frame frame(Word word, uint64_t subject, uint64_t number) const;
  void say(uint64_t name, const Subject& subject, Outbox& out) const;
  bool has_said(const Subject& subject, int team) const;
  void tell(uint64_t name, const Subject& subject, int team, Outbox& out) const;
  void tell_whoever_lacks(uint64_t name, const Subject& subject, Outbox& out) const;

  const int team_, teams_;
  uint64_t living_;
  int leader_ = 0;
  uint32_t epoch_ = 0, leads_since_ = 0;
  std::map<uint64_t, Subject> subjects_;
};

}  // namespace holdfast::redundant
