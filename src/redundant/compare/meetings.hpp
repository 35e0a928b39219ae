// Calls that all replicas of a rank make and one of them carries out. Each says what it is about to do (its claim) to the leader, the first
// living replica. Where all claims agree the leader acts, and its outcome is the outcome of all. Calls are numbered by subject (a file, the
// names of files); on one subject a replica makes one call after the other.
//
// Nobody is more than one call ahead of another on a subject, for the leader acts only when all have come. So after a loss the last outcome of each
// survivor is all that the new leader may lack. Whoever has it says so (Word::have) before the new leader may act.
//
// A team that was started again has the calls before from a log (learn): their claims are compared, their outcomes are taken, nobody acts. It
// has no part in what others do until it is a member (live). The leader tells it then: what it does not hear of from now on is in the log.
//
// Pure: not locked, no sockets, no clock. What is to be sent is appended to the outbox, in order for each team.
#pragma once
#include <list>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "redundant/frame.hpp"
#include "redundant/log/keeper.hpp"
#include "redundant/map.hpp"

namespace holdfast::redundant {

using Outbox = std::vector<std::pair<int, Frame>>;  // for this team

class Meetings {
 public:
  Meetings(int team, int teams) : Meetings(team, first_teams(teams), nullptr) {}
  // `living`: those that take part at first. Without this team in it: it is no member yet.
  Meetings(int team, uint64_t living, Keeper* keeper);

  // In a rehearsal: a call of the same kind, place and length takes the outcome of the one in the log.
  void rehearse() { rehearses_ = true; }
  // It has resumed from a checkpoint. What it claims says so, until bytes of it were the same as in the log or as the leader's, or it has led.
  void resumes(bool may_begin_anew) { proof_ = may_begin_anew ? Claim::unproven_may_begin_anew : Claim::unproven; }
  Claim::Proof proof() const { return proof_; }

  void begin(uint64_t subject, const Claim& claim, Outbox& out);
  // contradicts: another call stands in the log.
  enum class State : uint8_t { wait, act, differ, done, contradicts };
  State state(uint64_t subject) const;
  // Nothing that the log has to say changes it.
  bool is_settled(uint64_t subject) const {
    const State now = state(subject);
    return now == State::done || now == State::contradicts;
  }
  // After `act`, before it is done: where nobody else knows of it, the log does.
  void acts(uint64_t subject);
  // What a leader that is lost was about to do, perhaps has done, as this replica's present call.
  const Claim* intended(uint64_t subject) const;
  // After `act`: what has come of it.
  void finish(uint64_t subject, Bytes outcome, Outbox& out);
  // After `done`: the call is over.
  Bytes end(uint64_t subject);
  // After end() of the last call on a subject: nothing is remembered of it once all know what came of that. A team that is started again may
  // ask for it, so where there may be one it is kept.
  void forget(uint64_t subject, Outbox& out);
  size_t remembered() const { return subjects_.size(); }
  // After `differ`: the claims of the living, for a report.
  std::vector<std::pair<int, Claim>> claims(uint64_t subject) const;

  void take(const Frame& frame, Outbox& out);
  // Out of the log: calls that are over, one that began.
  void learn(uint64_t subject, uint64_t number, const Claim& claim, Bytes outcome);
  // A call of before the place at which this team joins: it has not made it, and the next one has the next number.
  void pass(uint64_t subject, uint64_t number, Bytes outcome);
  void learn_intent(uint64_t subject, uint64_t number, const Claim& claim);
  size_t learned() const { return learned_; }  // and not made here yet
  // The claim that the log has for the last call, where its outcome came from there.
  std::optional<Claim> claimed_then(uint64_t subject) const;
  // The teams that live as of this epoch. The dead are not heard any more.
  void live(uint32_t epoch, uint64_t mask, Outbox& out);

  int leader() const { return leader_; }
  bool leads() const { return leader_ == team_; }
  bool lives(int team) const { return team >= 0 && team < most_teams && (living_ & team_bit(team)); }
  bool is_member() const { return member_; }
  bool is_alone() const { return living_ == uint64_t(1) << team_; }
  uint32_t epoch() const { return epoch_; }
  uint64_t calls() const { return calls_; }  // that were begun here
  uint64_t living() const { return living_; }
  // Of the present or last call.
  uint64_t number(uint64_t subject) const {
    const auto found = subjects_.find(subject);
    return found == subjects_.end() ? 0 : found->second.number;
  }

 private:
  struct Past {
    uint64_t number = 0;
    Claim claim;
    Bytes outcome;
  };
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
    std::map<int, Said> said;  // by team
    std::list<Past> past;      // out of the log, in its order
    std::optional<Claim> then;
    bool contradicts = false;
    uint64_t intended_number = 0;
    Claim intended;
    bool over = false;   // here
    uint64_t overs = 0;  // the teams in which it is, as bits
  };
  void close(uint64_t name, Subject& subject, Bytes outcome);
  void look_at_the_past(Subject& subject);
  Frame frame(Word word, uint64_t subject, uint64_t number) const;
  void say(uint64_t name, const Subject& subject, Outbox& out) const;
  bool has_said(const Subject& subject, int team) const;
  void tell(uint64_t name, const Subject& subject, int team, Outbox& out) const;
  Compared compared(const Subject& subject, int team) const;
  void was_as_others(const Claim& claim) {
    if (claim.has_content()) proof_ = Claim::proven;
  }
  bool is_over(uint64_t name, const Subject& subject, Outbox& out) const;
  void take_over(const Frame& frame, Outbox& out);
  void tell_whoever_lacks(uint64_t name, const Subject& subject, Outbox& out) const;

  const int team_;
  Keeper* const keeper_;
  const bool keeps_outcomes_;
  uint64_t living_, dead_ = 0;
  bool member_, rehearses_ = false;
  Claim::Proof proof_ = Claim::proven;
  size_t learned_ = 0;
  uint64_t calls_ = 0;
  int leader_ = 0;
  uint32_t epoch_ = 0, leads_since_ = 0;
  std::map<uint64_t, Subject> subjects_;
};

}  // namespace holdfast::redundant
