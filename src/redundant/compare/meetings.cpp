#include "redundant/compare/meetings.hpp"

#include <bit>
#include <cstring>

namespace holdfast::redundant {

Meetings::Meetings(int team, int teams) : team_(team), teams_(teams), living_((uint64_t(1) << teams) - 1) {}

Frame Meetings::frame(Word word, uint64_t subject, uint64_t number) const {
  Frame made;
  made.word = word, made.team = uint16_t(team_), made.epoch = epoch_, made.subject = subject, made.number = number;
  return made;
}

// To the leader: what this replica is about to do.
void Meetings::say(uint64_t name, const Subject& subject, Outbox& out) const {
  Frame claim = frame(Word::claim, name, subject.number);
  claim.payload.resize(sizeof(Claim));
  std::memcpy(claim.payload.data(), &subject.claim, sizeof(Claim));
  out.emplace_back(leader_, std::move(claim));
}

void Meetings::begin(uint64_t subject, const Claim& claim, Outbox& out) {
  Subject& one = subjects_[subject];
  ++one.number;
  one.pending = true, one.done = false;
  one.claim = claim;
  if (!leads()) say(subject, one, out);
}

// For its present call, as one that follows this leader: what came before may have been meant for another.
bool Meetings::has_said(const Subject& subject, int team) const {
  const auto& said = subject.said[size_t(team)];
  return said && said->number == subject.number && said->epoch >= leads_since_;
}

Meetings::State Meetings::state(uint64_t subject) const {
  const auto found = subjects_.find(subject);
  if (found == subjects_.end() || !found->second.pending) return State::wait;
  const Subject& one = found->second;
  if (one.done) return State::done;
  if (!leads()) return State::wait;
  bool same = true;
  for (int team = 0; team < teams_; ++team) {
    if (team == team_ || !lives(team)) continue;
    if (!has_said(one, team)) return State::wait;
    same &= one.said[size_t(team)]->claim == one.claim;
  }
  return same ? State::act : State::differ;
}

std::vector<std::pair<int, Claim>> Meetings::claims(uint64_t subject) const {
  std::vector<std::pair<int, Claim>> all;
  const auto found = subjects_.find(subject);
  if (found == subjects_.end()) return all;
  for (int team = 0; team < teams_; ++team) {
    if (!lives(team)) continue;
    if (team == team_) all.emplace_back(team, found->second.claim);
    else if (has_said(found->second, team)) all.emplace_back(team, found->second.said[size_t(team)]->claim);
  }
  return all;
}

void Meetings::tell(uint64_t name, const Subject& subject, int team, Outbox& out) const {
  Frame told = frame(Word::outcome, name, subject.outcome_number);
  told.payload = subject.outcome;
  out.emplace_back(team, std::move(told));
}

// Those who wait for an outcome that this leader, a follower then, got of the one before it.
void Meetings::tell_whoever_lacks(uint64_t name, const Subject& subject, Outbox& out) const {
  if (subject.outcome_number == 0) return;
  for (int team = 0; team < teams_; ++team) {
    const auto& said = subject.said[size_t(team)];
    const bool lacks = team != team_ && lives(team) && said && said->epoch >= leads_since_ && said->number == subject.outcome_number;
    if (lacks) tell(name, subject, team, out);
  }
}

void Meetings::finish(uint64_t subject, Bytes outcome, Outbox& out) {
  Subject& one = subjects_[subject];
  one.outcome = std::move(outcome);
  one.outcome_number = one.number;
  one.done = true;
  for (int team = 0; team < teams_; ++team)
    if (team != team_ && lives(team)) tell(subject, one, team, out);
}

// Kept as long as somebody may have to be told once more, by this replica, when it leads.
Bytes Meetings::end(uint64_t subject) {
  Subject& one = subjects_[subject];
  one.pending = one.done = false;
  return teams_ > 2 ? one.outcome : std::move(one.outcome);
}

void Meetings::take(const Frame& frame, Outbox& out) {
  if (!lives(frame.team) || frame.team == team_) return;
  Subject& one = subjects_[frame.subject];
  if (frame.word == Word::claim && frame.payload.size() == sizeof(Claim)) {
    Said said{frame.number, frame.epoch, {}};
    std::memcpy(static_cast<void*>(&said.claim), frame.payload.data(), sizeof(Claim));
    one.said[frame.team] = said;
    if (leads() && leads_since_ > 0) tell_whoever_lacks(frame.subject, one, out);
  } else if (frame.word == Word::have || frame.word == Word::outcome) {
    const bool mine = one.pending && !one.done && frame.number == one.number;
    if (!mine) return;  // known already
    one.outcome = frame.payload;
    one.outcome_number = frame.number;
    one.done = true;
    if (leads()) tell_whoever_lacks(frame.subject, one, out);
  }
}

void Meetings::live(uint32_t epoch, uint64_t mask, Outbox& out) {
  if (epoch <= epoch_) return;
  epoch_ = epoch;
  living_ &= mask;
  const int before = leader_;
  leader_ = living_ == 0 ? team_ : std::countr_zero(living_);
  if (leader_ == before) return;
  leads_since_ = epoch;
  for (auto& [name, subject] : subjects_) {
    if (leads()) {
      tell_whoever_lacks(name, subject, out);
      continue;
    }
    if (subject.outcome_number > 0) {
      Frame have = frame(Word::have, name, subject.outcome_number);
      have.payload = subject.outcome;
      out.emplace_back(leader_, std::move(have));
    }
    if (subject.pending && !subject.done) say(name, subject, out);
  }
}

}  // namespace holdfast::redundant
