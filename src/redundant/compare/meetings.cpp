#include "redundant/compare/meetings.hpp"

#include <bit>
#include <cstring>

namespace holdfast::redundant {

Meetings::Meetings(int team, uint64_t living, Keeper* keeper)
    : team_(team),
      keeper_(keeper),
      keeps_outcomes_(std::popcount(living) > 2 || keeper),
      living_(living | team_bit(team)),
      member_(living & team_bit(team)),
      leader_(std::countr_zero(living_)) {}

Frame Meetings::frame(Word word, uint64_t subject, uint64_t number) const {
  Frame made;
  made.word = word, made.team = uint16_t(team_), made.epoch = epoch_, made.subject = subject, made.number = number;
  return made;
}

// To the leader: what this replica is about to do.
void Meetings::say(uint64_t name, const Subject& subject, Outbox& out) const {
  Frame claim = frame(Word::claim, name, subject.number);
  Claim said = subject.claim;
  said.proof = proof_;
  claim.payload.resize(sizeof said);
  std::memcpy(claim.payload.data(), &said, sizeof said);
  out.emplace_back(leader_, std::move(claim));
}

void Meetings::begin(uint64_t subject, const Claim& claim, Outbox& out) {
  Subject& one = subjects_[subject];
  ++one.number, ++calls_;
  one.pending = true, one.done = false;
  one.claim = claim;
  one.then.reset();
  look_at_the_past(one);
  if (!leads() && member_ && !one.done) say(subject, one, out);
}

// Its outcome is known here.
void Meetings::close(uint64_t name, Subject& subject, Bytes outcome) {
  subject.outcome = std::move(outcome);
  subject.outcome_number = subject.number;
  subject.done = true;
  if (keeper_) keeper_->call(name, subject.number, subject.claim, subject.outcome);
}

void Meetings::look_at_the_past(Subject& subject) {
  if (!subject.pending || subject.done || subject.past.empty() || subject.past.front().number != subject.number) return;
  const Claim& then = subject.past.front().claim;
  subject.contradicts = !(rehearses_ ? then.same_shape(subject.claim) : then == subject.claim);
  if (subject.contradicts) return;
  Past past = std::move(subject.past.front());
  subject.past.pop_front();
  --learned_;
  was_as_others(subject.claim);
  subject.then = past.claim;
  subject.outcome = std::move(past.outcome);
  subject.outcome_number = subject.number;
  subject.done = true;
}

void Meetings::learn(uint64_t subject, uint64_t number, const Claim& claim, Bytes outcome) {
  Subject& one = subjects_[subject];
  const uint64_t known = one.past.empty() ? one.number - (one.pending && !one.done) : one.past.back().number;
  if (number <= known) return;
  one.past.push_back({number, claim, std::move(outcome)});
  ++learned_;
  look_at_the_past(one);
}

void Meetings::pass(uint64_t subject, uint64_t number, Bytes outcome) {
  Subject& one = subjects_[subject];
  one.number = one.outcome_number = number;
  one.outcome = std::move(outcome);
}

void Meetings::learn_intent(uint64_t subject, uint64_t number, const Claim& claim) {
  Subject& one = subjects_[subject];
  one.intended_number = number;
  one.intended = claim;
}

const Claim* Meetings::intended(uint64_t subject) const {
  const auto found = subjects_.find(subject);
  return found != subjects_.end() && found->second.intended_number == found->second.number ? &found->second.intended : nullptr;
}

std::optional<Claim> Meetings::claimed_then(uint64_t subject) const {
  const auto found = subjects_.find(subject);
  return found == subjects_.end() ? std::nullopt : found->second.then;
}

void Meetings::acts(uint64_t subject) {
  const Subject& one = subjects_[subject];
  if (keeper_ && is_alone()) keeper_->intent(subject, one.number, one.claim);
}

// For its present call, as one that follows this leader: what came before may have been meant for another.
bool Meetings::has_said(const Subject& subject, int team) const {
  const auto said = subject.said.find(team);
  return said != subject.said.end() && said->second.number == subject.number && said->second.epoch >= leads_since_;
}

Meetings::State Meetings::state(uint64_t subject) const {
  const auto found = subjects_.find(subject);
  if (found == subjects_.end() || !found->second.pending) return State::wait;
  const Subject& one = found->second;
  if (one.done) return State::done;
  if (one.contradicts) return State::contradicts;
  if (!leads()) return State::wait;
  bool same = true;
  for (const int team : TeamsOf{living_ & ~team_bit(team_)}) {
    if (!has_said(one, team)) return State::wait;
    same &= one.said.at(team).claim == one.claim;
  }
  return same ? State::act : State::differ;
}

std::vector<std::pair<int, Claim>> Meetings::claims(uint64_t subject) const {
  std::vector<std::pair<int, Claim>> all;
  const auto found = subjects_.find(subject);
  if (found == subjects_.end()) return all;
  for (const int team : TeamsOf{living_}) {
    if (team == team_) all.emplace_back(team, found->second.claim), all.back().second.proof = proof_;
    else if (has_said(found->second, team)) all.emplace_back(team, found->second.said.at(team).claim);
  }
  return all;
}

// In a leader. One that has joined only now may be told of a call that was made without it.
Compared Meetings::compared(const Subject& subject, int team) const {
  const auto said = subject.said.find(team);
  const bool is_known = said != subject.said.end() && said->second.number == subject.number && subject.number == subject.outcome_number;
  if (!is_known) return not_compared;
  if (said->second.claim == subject.claim) return was_the_same;
  return rehearses_ ? not_compared : was_another;
}

void Meetings::tell(uint64_t name, const Subject& subject, int team, Outbox& out) const {
  Frame told = frame(Word::outcome, name, subject.outcome_number);
  told.rank = compared(subject, team);
  told.payload = subject.outcome;
  out.emplace_back(team, std::move(told));
}

// Those who wait for an outcome that this leader, a follower then, got of the one before it.
void Meetings::tell_whoever_lacks(uint64_t name, const Subject& subject, Outbox& out) const {
  if (subject.outcome_number == 0) return;
  for (const auto& [team, said] : subject.said)
    if (lives(team) && said.epoch >= leads_since_ && said.number == subject.outcome_number) tell(name, subject, team, out);
}

void Meetings::finish(uint64_t subject, Bytes outcome, Outbox& out) {
  Subject& one = subjects_[subject];
  close(subject, one, std::move(outcome));
  was_as_others(one.claim);
  for (const int team : TeamsOf{living_ & ~team_bit(team_)}) tell(subject, one, team, out);
}

// Kept as long as somebody may have to be told once more, by this replica, when it leads.
Bytes Meetings::end(uint64_t subject) {
  Subject& one = subjects_[subject];
  one.pending = one.done = false;
  return keeps_outcomes_ ? one.outcome : std::move(one.outcome);
}

// In a leader: all who live have the last outcome, which they are told.
bool Meetings::is_over(uint64_t name, const Subject& subject, Outbox& out) const {
  const uint64_t others = living_ & ~team_bit(team_);
  if (!leads() || !subject.over || (others & ~subject.overs)) return false;
  for (const int team : TeamsOf{others}) out.emplace_back(team, frame(Word::over, name, subject.number));
  return true;
}

void Meetings::forget(uint64_t subject, Outbox& out) {
  const auto found = subjects_.find(subject);
  if (keeper_ || found == subjects_.end()) return;
  found->second.over = true;
  if (is_over(subject, found->second, out)) subjects_.erase(found);
  else if (!leads()) out.emplace_back(leader_, frame(Word::over, subject, found->second.number));
}

// A leader that has forgotten it has heard this of all before.
void Meetings::take_over(const Frame& heard, Outbox& out) {
  const auto found = subjects_.find(heard.subject);
  if (found == subjects_.end()) {
    if (leads()) out.emplace_back(int(heard.team), frame(Word::over, heard.subject, heard.number));
    return;
  }
  found->second.overs |= team_bit(heard.team);
  if (found->second.over && (heard.team == leader_ || is_over(heard.subject, found->second, out))) subjects_.erase(found);
}

void Meetings::take(const Frame& frame, Outbox& out) {
  if (frame.team >= most_teams || (dead_ & team_bit(frame.team)) || frame.team == team_) return;  // one that comes may be heard before the hub's word
  if (frame.word == Word::over) return take_over(frame, out);
  if (frame.word != Word::claim && !subjects_.contains(frame.subject)) return;
  Subject& one = subjects_[frame.subject];
  if (frame.word == Word::claim && frame.payload.size() == sizeof(Claim)) {
    Said said{frame.number, frame.epoch, {}};
    std::memcpy(static_cast<void*>(&said.claim), frame.payload.data(), sizeof(Claim));
    one.said.insert_or_assign(int(frame.team), said);
    // Also a leader from the beginning may have acted before a team joined that comes to the same call now.
    if (leads() && (leads_since_ > 0 || keeper_)) tell_whoever_lacks(frame.subject, one, out);
  } else if (frame.word == Word::have || frame.word == Word::outcome) {
    if (frame.word == Word::outcome && frame.rank == was_another) return void(one.contradicts = true);  // it may have been told before
    const bool mine = one.pending && !one.done && frame.number == one.number;
    if (!mine) return;  // known already
    close(frame.subject, one, frame.payload);
    if (frame.word == Word::outcome && frame.rank == was_the_same) was_as_others(one.claim);
    if (leads()) tell_whoever_lacks(frame.subject, one, out);
  }
}

void Meetings::live(uint32_t epoch, uint64_t mask, Outbox& out) {
  if (epoch <= epoch_) return;
  epoch_ = epoch;
  const uint64_t own = team_bit(team_), before_living = living_;
  dead_ |= living_ & ~mask & ~own;
  living_ = (mask | own) & ~dead_;
  const int before = leader_;
  leader_ = std::countr_zero(living_);
  const bool joins = !member_ && ((mask & own) || is_alone());
  member_ |= joins;
  if (leads())
    for (const int team : TeamsOf{living_ & ~before_living}) out.emplace_back(team, frame(Word::welcome, 0, 0));
  std::erase_if(subjects_, [&](const auto& one) { return is_over(one.first, one.second, out); });
  if (leader_ == before && !joins) return;
  if (leader_ != before) leads_since_ = epoch;
  for (auto& [name, subject] : subjects_) {
    if (leads()) {
      tell_whoever_lacks(name, subject, out);
      continue;
    }
    if (!member_) continue;
    const Past* const past = subject.past.empty() ? nullptr : &subject.past.back();
    if ((subject.outcome_number > 0 || past) && leader_ != before) {
      Frame have = frame(Word::have, name, past ? past->number : subject.outcome_number);
      have.payload = past ? past->outcome : subject.outcome;
      out.emplace_back(leader_, std::move(have));
    }
    if (subject.pending && !subject.done) say(name, subject, out);
    if (subject.over) out.emplace_back(leader_, frame(Word::over, name, subject.number));
  }
}

}  // namespace holdfast::redundant
