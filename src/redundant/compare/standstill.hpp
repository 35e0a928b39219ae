// Replicas of a rank of which each waits for the other: one at a call on this file, the other at a call on that one, or at a question that the leader
// has not asked. Neither call can be told from one that is still to come, so both would wait for ever.
//
// Where one thread alone of each process calls, it is proven: who waits at its call says nothing else until that one is over. The leader is the judge. It hears
// what a follower has said in its order, and knows which calls it has begun itself.
//
// Pure: facts in, a difference out.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "redundant/log/keeper.hpp"

namespace holdfast::redundant {

// Where a replica waits: at its `number`-th call on the subject, or at the `number`-th answer about it.
struct Standing {
  uint64_t subject = 0, number = 0;
  bool is_question = false;
  std::string what;  // for a person
  uint64_t proof = Claim::proven;
  bool is_at(const Standing& other) const { return subject == other.subject && number == other.number && is_question == other.is_question; }
};

class Standstill {
 public:
  // What a follower has said, as one that follows the leader of this epoch.
  void said(int team, uint32_t epoch, Standing standing) { others_.insert_or_assign(team, Said{epoch, std::move(standing)}); }
  // It makes another call: it stands no more where it has said. A subject's numbers begin anew once a call on it is over for all.
  void goes_on(int team) { others_.erase(team); }
  // It is past its calls on this subject. A leader says so of an earlier one also while it stands.
  void is_past(int team, uint64_t subject);

  // Who of these waits at a call that this replica, which waits for none itself, has not begun; -1: nobody.
  // Only what is heard of is known to go on: of a follower that is its leader.
  int waiting_for(const std::function<uint64_t(const Standing& there)>& number, uint64_t heard, uint32_t epoch) const;

  struct Facts {
    int team = 0;         // of the leader
    uint64_t living = 0;  // the teams that live, as bits
    uint32_t epoch = 0;
    // What speaks for a team that has said that it makes the leader's call, too (Claim::Proof); nothing: it has not said so.
    std::function<std::optional<uint64_t>(int team)> has_come;
    std::function<uint64_t(const Standing& there)> number;  // of the last call, or answer, that the leader has begun there
  };
  struct Found {
    std::vector<std::pair<int, Claim>> claims;  // equal ones of those who wait at the same place
    std::string what;
  };
  // In a leader that waits at `own`. Nothing: somebody may still come.
  std::optional<Found> judge(const Standing& own, const Facts& facts) const;

 private:
  struct Said {
    uint32_t epoch = 0;
    Standing standing;
  };
  std::map<int, Said> others_;  // by team
};

}  // namespace holdfast::redundant
