// Replicas of one rank of which lost ones come back, on a link of the test's own: a team that was started again goes through the log of the one that
// it follows, and joins when it has come to its end. Everything follows from one seed.
#pragma once
#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "redundant/log/catch_up.hpp"
#include "unit/redundant/fake_link.hpp"

namespace holdfast::redundant::test {

class MemoryLog final : public Keeper {
 public:
  struct One {
    Entry::Kind kind;
    uint64_t subject, number;
    Bytes payload;
  };
  void call(uint64_t subject, uint64_t number, const Claim& claim, ByteView outcome) override { add(Entry::call, subject, number, &claim, outcome); }
  void intent(uint64_t subject, uint64_t number, const Claim& claim) override { add(Entry::intent, subject, number, &claim, {}); }
  void decision(uint64_t subject, uint64_t number, ByteView answer) override { add(Entry::decision, subject, number, nullptr, answer); }
  void repeat(const Entry& entry) override {
    entries.push_back({entry.kind, entry.subject, entry.number, {entry.payload.begin(), entry.payload.end()}});
  }
  std::deque<One> entries;
  bool whole = false;

 private:
  void add(Entry::Kind kind, uint64_t subject, uint64_t number, const Claim* claim, ByteView rest) {
    Bytes payload(claim ? sizeof *claim : 0);
    if (claim) std::memcpy(payload.data(), claim, sizeof *claim);
    payload.insert(payload.end(), rest.begin(), rest.end());
    entries.push_back({kind, subject, number, std::move(payload)});
  }
};

class World;

class Member {
 public:
  Member(World& world, int team, uint64_t living, std::vector<const MemoryLog*> follows, const std::vector<Step>& program);
  bool ended() const { return at_ == program_.size(); }
  void go();
  void take(const Frame& frame);
  void live(uint32_t epoch, uint64_t mask);
  void push();
  const MemoryLog& log() const { return log_; }
  const std::vector<std::string>& seen() const { return seen_; }
  bool is_sound() const { return !decisions_.is_torn() && !contradicts_; }
  bool is_alone() const { return meetings_.is_alone() && meetings_.is_member(); }
  const int team;

 private:
  void send(Outbox& out);
  bool reads_on();
  void meet(uint64_t subject);
  void ask(uint64_t subject);

  World& world_;
  const std::vector<Step>& program_;
  MemoryLog log_;
  Meetings meetings_;
  Decisions decisions_;
  std::optional<CatchUp> past_;
  bool said_ = false, contradicts_ = false, pending_ = false;
  size_t at_ = 0;
  std::vector<std::string> seen_;
};

class World {
 public:
  World(int teams, int relaunches, uint64_t seed, const std::vector<Step>& program)
      : random(seed), program_(program), members_(first_teams(teams)), relaunches_(relaunches) {
    for (int team = 0; team < teams; ++team)
      replicas_.push_back(std::make_unique<Member>(*this, team, first_teams(teams), std::vector<const MemoryLog*>(), program));
  }
  struct Death {
    uint64_t step;
    uint64_t whom;  // of those that live, or of those that were not started again
    bool spares_the_new = false;
  };
  // Until all that live have ended. False: they hang.
  bool run(const std::vector<Death>& deaths);
  bool lives(int team) const { return (members_ | standing_by_) & team_bit(team); }
  const Member& member(int team) const { return *replicas_[size_t(team)]; }
  int teams() const { return int(replicas_.size()); }
  uint64_t next_answer() { return ++answers_; }
  void send(int from, int to, Frame frame) { ways_[{from, to}].push_back(std::move(frame)); }
  void caught_up(int team) {
    joined |= team_bit(team);
    standing_by_ &= ~team_bit(team);
    members_ |= team_bit(team);
    tell_all();
  }
  uint64_t joined = 0;
  // What a team had seen that was alone when it died.
  std::vector<std::string> seen_alone;
  std::mt19937_64 random;

 private:
  void die(const Death& death);
  void lose(int team);
  void start();
  void tell_all();
  bool deliver();

  const std::vector<Step>& program_;
  std::vector<std::unique_ptr<Member>> replicas_;
  std::map<int, int> follows_;
  std::map<std::pair<int, int>, std::deque<Frame>> ways_;
  std::map<int, std::deque<std::pair<uint32_t, uint64_t>>> words_;
  uint64_t members_, standing_by_ = 0, answers_ = 0;
  uint32_t epoch_ = 0;
  int relaunches_;
};

// -------------------------------------------------------------------------------------------------------------------- one replica

inline Member::Member(World& world, int number, uint64_t living, std::vector<const MemoryLog*> follows, const std::vector<Step>& program)
    : team(number), world_(world), program_(program), meetings_(number, living, &log_), decisions_(number, living, meetings_.leader(), &log_) {
  log_.whole = follows.empty();
  if (follows.empty()) return;
  const auto source = [follows, log = size_t(0), at = size_t(0)]() mutable -> std::optional<Entry> {
    while (at == follows[log]->entries.size()) {
      if (log + 1 == follows.size()) return std::nullopt;
      ++log, at = 0;
    }
    const MemoryLog::One& one = follows[log]->entries[at++];
    return Entry{one.kind, one.subject, one.number, 0, one.payload};
  };
  past_.emplace(source, log_);
}

inline void Member::send(Outbox& out) {
  for (auto& [to, frame] : out) world_.send(team, to, std::move(frame));
  out.clear();
}

// True: there was something more in the log.
inline bool Member::reads_on() {
  if (!past_ || !past_->follows()) return false;
  if (past_->take_one(meetings_, decisions_)) return true;
  if (said_ || meetings_.learned() + decisions_.learned() > 0) return false;
  said_ = true;
  world_.caught_up(team);
  return false;
}

inline void Member::meet(uint64_t subject) {
  Outbox out;
  if (!pending_) {
    meetings_.begin(subject, {.call = 1, .at = at_}, out);
    decisions_.send_batch(out);
    pending_ = true;
    return send(out);
  }
  const Meetings::State state = meetings_.state(subject);
  contradicts_ |= state == Meetings::State::contradicts || state == Meetings::State::differ;
  if (state == Meetings::State::act) {
    meetings_.acts(subject);
    const uint64_t made = world_.next_answer();
    Bytes outcome(sizeof made);
    std::memcpy(outcome.data(), &made, sizeof made);
    meetings_.finish(subject, outcome, out);
    return send(out);
  }
  if (state != Meetings::State::done) return (void)reads_on();
  const Bytes outcome = meetings_.end(subject);
  seen_.emplace_back(text_of(outcome));
  pending_ = false;
  ++at_;
}

inline void Member::ask(uint64_t subject) {
  uint64_t answer = 0;
  const ByteSpan bytes(reinterpret_cast<std::byte*>(&answer), sizeof answer);
  if (!decisions_.next(subject, bytes)) {
    if (!decisions_.decides(subject)) return (void)reads_on();
    answer = world_.next_answer();
    (void)decisions_.decided(subject, bytes);
  }
  seen_.push_back(std::to_string(answer));
  ++at_;
}

inline void Member::go() {
  if (ended()) return;
  const Step& step = program_[at_];
  step.meets ? meet(step.subject) : ask(step.subject);
}

// What stands in the log was before what is heard.
inline void Member::take(const Frame& frame) {
  Outbox out;
  if (past_ && past_->follows()) {
    while (past_->take_one(meetings_, decisions_)) {
    }
    if (frame.word == Word::welcome) past_->take_all(meetings_, decisions_), log_.whole = true;
  }
  if (frame.word == Word::decisions || frame.word == Word::unite || frame.word == Word::arrived) decisions_.take(frame, out);
  else meetings_.take(frame, out);
  send(out);
}

inline void Member::live(uint32_t epoch, uint64_t mask) {
  Outbox out;
  const int before = meetings_.leader();
  if (past_ && past_->follows() && !(mask & team_bit(before))) past_->take_all(meetings_, decisions_), log_.whole = true;
  meetings_.live(epoch, mask, out);
  decisions_.live(epoch, meetings_.living(), meetings_.leader(), out);
  send(out);
}

inline void Member::push() {
  Outbox out;
  decisions_.send_batch(out);
  send(out);
}

// -------------------------------------------------------------------------------------------------------------------- all of them

inline void World::tell_all() {
  ++epoch_;
  for (int team = 0; team < teams(); ++team)
    if (lives(team)) words_[team].emplace_back(epoch_, members_);
}

inline void World::start() {
  const int follows = std::countr_zero(members_ != 0 ? members_ : standing_by_), team = teams();
  // The log that it goes by, behind those of teams that are lost and stand in it only in part.
  std::vector<const MemoryLog*> logs;
  for (int one = follows;; one = follows_[one]) {
    logs.insert(logs.begin(), &replicas_[size_t(one)]->log());
    if (logs.front()->whole || !follows_.contains(one)) break;
  }
  replicas_.push_back(std::make_unique<Member>(*this, team, team_bit(follows), logs, program_));
  standing_by_ |= team_bit(team);
  follows_[team] = follows;
  words_[team].emplace_back(epoch_, members_);
}

// What it had sent arrives up to some frame. The hub declares it after that, to each survivor in its own time.
inline void World::lose(int team) {
  members_ &= ~team_bit(team);
  standing_by_ &= ~team_bit(team);
  for (auto& [way, frames] : ways_)
    if (way.first == team) frames.resize(random() % (frames.size() + 1));
}

inline void World::die(const Death& death) {
  std::vector<int> who;
  for (int team = 0; team < teams(); ++team)
    if (lives(team) && (!death.spares_the_new || !follows_.contains(team))) who.push_back(team);
  if (who.empty() || (members_ | standing_by_) == team_bit(who[0])) return;
  const int team = who[death.whom % who.size()];
  if (member(team).is_alone() && members_ == team_bit(team)) seen_alone = member(team).seen();
  lose(team);
  // Who follows it, and is no member yet, begins anew where there is another one to be followed.
  int again = 0;
  for (int other = 0; other < teams(); ++other)
    if ((standing_by_ & team_bit(other)) && follows_[other] == team && members_ != 0) lose(other), ++again;
  if (members_ == 0) members_ = std::exchange(standing_by_, 0);
  tell_all();
  if (relaunches_ > 0 && teams() < most_teams) --relaunches_, ++again;
  for (; again > 0 && teams() < most_teams; --again) start();
}

inline bool World::deliver() {
  std::vector<std::pair<int, int>> full;
  for (const auto& [way, frames] : ways_)
    if (!frames.empty() && lives(way.second)) full.push_back(way);
  if (full.empty()) return false;
  const auto way = full[random() % full.size()];
  const Frame frame = ways_[way].front();
  ways_[way].pop_front();
  replicas_[size_t(way.second)]->take(frame);
  return true;
}

inline bool World::run(const std::vector<Death>& deaths) {
  constexpr uint64_t most_steps = 200000;
  for (uint64_t step = 0; step < most_steps; ++step) {
    for (const Death& death : deaths)
      if (death.step == step) die(death);
    bool all_ended = true;
    for (int team = 0; team < teams(); ++team) all_ended &= !(members_ & team_bit(team)) || member(team).ended();
    if (all_ended) return true;
    const int team = int(random() % uint64_t(teams()));
    if (!lives(team)) continue;
    Member& one = *replicas_[size_t(team)];
    switch (random() % 4) {
      case 0: (void)deliver(); break;
      case 1: one.go(); break;
      case 2: one.push(); break;
      default: {
        auto& words = words_[team];
        if (words.empty()) break;
        const auto [epoch, mask] = words.front();
        words.pop_front();
        one.live(epoch, mask);
      }
    }
  }
  return false;
}

}  // namespace holdfast::redundant::test
