// Replicas of one rank of which lost ones come back, on a link of the test's own: a team that was started again goes through the log of the one that
// it follows, and joins when it has come to its end. On nodes of their own it goes through a copy, which its twin sends it, and which is all that is left of a
// lost twin's. Everything follows from one seed.
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
#include "redundant/log/join.hpp"
#include "redundant/membership/membership.hpp"
#include "unit/redundant/fake_link.hpp"

namespace holdfast::redundant::test {

class MemoryLog final : public Keeper {
 public:
  struct One {
    Entry::Kind kind;
    uint64_t subject, number;
    Bytes payload;
  };
  void call(uint64_t subject, uint64_t number, const Claim& claim, ByteView outcome) override {
    note_what_waits();
    add(Entry::call, subject, number, &claim, outcome);
  }
  void intent(uint64_t subject, uint64_t number, const Claim& claim) override {
    note_what_waits();
    add(Entry::intent, subject, number, &claim, {});
  }
  void decision(uint64_t subject, uint64_t number, ByteView answer) override { add(Entry::decision, subject, number, nullptr, answer); }
  void repeat(const Entry& entry) override {
    entries.push_back({entry.kind, entry.subject, entry.number, {entry.payload.begin(), entry.payload.end()}});
  }
  std::deque<One> entries;
  bool whole = false;
  std::function<Bytes()> waiting;  // as in LogKeeper

 private:
  void note_what_waits() {
    if (const Bytes those = waiting ? waiting() : Bytes(); !those.empty()) add(Entry::waiting, 0, 0, nullptr, those);
  }
  void add(Entry::Kind kind, uint64_t subject, uint64_t number, const Claim* claim, ByteView rest) {
    Bytes payload(claim ? sizeof *claim : 0);
    if (claim) std::memcpy(payload.data(), claim, sizeof *claim);
    payload.insert(payload.end(), rest.begin(), rest.end());
    entries.push_back({kind, subject, number, std::move(payload)});
  }
};

class World;

// Of the log of `from`, as far as it has come.
struct Copy {
  int from = -1;
  const MemoryLog* log = nullptr;
  size_t entries = 0;
  bool in_step = false;  // its writer waits for it
};

class Member {
 public:
  Member(World& world, int team, uint64_t living, std::vector<const MemoryLog*> follows, const std::vector<Step>& program);
  // On a node of its own.
  Member(World& world, int team, uint64_t living, const Copy& copy, const std::vector<Step>& program);
  // It goes on from a checkpoint of its own, at that step of the program. `differs`: what it writes then is not what the others do.
  void resume(const MemoryLog& log, size_t step, bool differs = false);
  bool is_proven() const { return meetings_.proof() == Claim::proven; }
  size_t at() const { return at_; }
  bool has_joined() const { return resumes_ && !joining_; }
  bool ended() const { return at_ == program_.size(); }
  void go();
  void take(const Frame& frame);
  void live(uint32_t epoch, uint64_t mask);
  void push();
  const MemoryLog& log() const { return log_; }
  const std::vector<std::string>& seen() const { return seen_; }
  // What others may have seen of it.
  std::vector<std::string> shown() const { return {seen_.begin(), seen_.begin() + ptrdiff_t(shown_)}; }
  bool lives_with(int other) const { return meetings_.lives(other); }
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
  bool said_ = false, contradicts_ = false, pending_ = false, intends_ = false;
  size_t at_ = 0, shown_ = 0;
  const Copy* copy_ = nullptr;
  void join();
  size_t available() const { return copy_ ? copy_->entries : joined_log_->entries.size(); }
  const MemoryLog* joined_log_ = nullptr;
  std::optional<Join> place_;
  std::vector<Frame> early_;
  size_t log_at_ = 0, searched_ = 0;
  // Of the step that it is at: every second subject is of names, which are the same in any case.
  Claim claim() const {
    const bool is_name = program_[at_].subject % 2 == 1;
    return is_name ? Claim{.call = 1, .at = at_} : Claim{.call = 2, .at = at_, .bytes = 8, .sum = 7 + uint64_t(differs_)};
  }
  bool resumes_ = false, joining_ = false, log_is_over_ = false, differs_ = false;
  std::vector<std::string> seen_;
};

class World {
 public:
  World(int teams, int relaunches, uint64_t seed, const std::vector<Step>& program, bool copies = false, bool resume = false)
      : random(seed), program_(program), members_(first_teams(teams)), relaunches_(relaunches), copies_logs_(copies), resume_(resume) {
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
  // What stands in the log then comes before it.
  void send(int from, int to, Frame frame) {
    const auto copy = copies_.find(to);
    const bool goes_before = copy != copies_.end() && copy->second.from == from;
    ways_[{from, to}].emplace_back(std::move(frame), goes_before ? copy->second.log->entries.size() : 0);
  }
  // All that follow a team, and that it waits for, have its log.
  bool followers_have_all(int team) const {
    return std::all_of(copies_.begin(), copies_.end(), [&](const auto& one) {
      const Copy& copy = one.second;
      const bool counts = copy.from == team && copy.in_step && lives(one.first) && !member(team).lives_with(one.first);
      return !counts || copy.entries == copy.log->entries.size();
    });
  }
  // All are lost but one whose copy has come in part only.
  bool job_is_lost = false;
  void caught_up(int team) {
    joined |= team_bit(team);
    standing_by_ &= ~team_bit(team);
    members_ |= team_bit(team);
    tell_all();
  }
  uint64_t joined = 0;
  // Teams that resume write other bytes.
  bool new_ones_differ = false;
  bool stopped = false;  // they differ, and nobody knows who is right
  int out = 0;           // members that were out in place of that
  int not_noticed = 0;   // other bytes
  void differ(const std::vector<std::pair<int, Claim>>& claims) {
    if (std::any_of(claims.begin(), claims.end(), [this](const auto& one) { return !lives(one.first); })) return;
    const auto* const unproven = Membership::unproven_among(claims);
    stopped |= !unproven;
    if (unproven) ++out, gives_up(unproven->first);
  }
  // One that is beyond the log, and not the last.
  void gives_up(int team) { lose_with_followers(team); }
  // One may that is the last, but for those that go by its log, which are let go. Then nobody is started again any more.
  bool may_go_beyond(int team) {
    for (int other = 0; other < teams(); ++other)
      if (other != team && lives(other) && ((members_ & team_bit(other)) || follows_[other] != team)) return gives_up(team), false;
    for (int other = 0; other < teams(); ++other)
      if (other != team && lives(other)) lose(other);
    relaunches_ = 0, ended_ = true;
    tell_all();
    return true;
  }
  // What a team had seen that was alone when it died.
  std::vector<std::string> seen_alone;
  std::mt19937_64 random;

 private:
  void die(const Death& death);
  void send_logs();
  void lose(int team);
  int lose_with_followers(int team);
  void start();
  void tell_all();
  bool deliver();

  const std::vector<Step>& program_;
  std::vector<std::unique_ptr<Member>> replicas_;
  std::map<int, int> follows_;
  std::map<std::pair<int, int>, std::deque<std::pair<Frame, size_t>>> ways_;
  std::map<int, Copy> copies_;  // by who follows
  std::map<int, std::deque<std::pair<uint32_t, uint64_t>>> words_;
  uint64_t members_, standing_by_ = 0, answers_ = 0;
  uint32_t epoch_ = 0;
  int relaunches_;
  const bool copies_logs_, resume_;
  bool ended_ = false;  // the log
};

// -------------------------------------------------------------------------------------------------------------------- one replica

inline Member::Member(World& world, int number, uint64_t living, std::vector<const MemoryLog*> follows, const std::vector<Step>& program)
    : team(number), world_(world), program_(program), meetings_(number, living, &log_), decisions_(number, living, meetings_.leader(), &log_) {
  log_.whole = follows.empty();
  log_.waiting = [this] { return decisions_.waiting(); };
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

inline Member::Member(World& world, int number, uint64_t living, const Copy& copy, const std::vector<Step>& program)
    : team(number),
      world_(world),
      program_(program),
      meetings_(number, living, &log_),
      decisions_(number, living, meetings_.leader(), &log_),
      copy_(&copy) {
  log_.waiting = [this] { return decisions_.waiting(); };
  const auto source = [&copy, at = size_t(0)]() mutable -> std::optional<Entry> {
    if (at == copy.entries) return std::nullopt;
    const MemoryLog::One& one = copy.log->entries[at++];
    return Entry{one.kind, one.subject, one.number, 0, one.payload};
  };
  past_.emplace(source, log_);
}

inline void Member::resume(const MemoryLog& log, size_t step, bool differs) {
  resumes_ = joining_ = true;
  differs_ = differs;
  meetings_.resumes(false);
  joined_log_ = &log;
  at_ = step;
  seen_.resize(step);
  const auto source = [this]() -> std::optional<Entry> {
    if (log_at_ == available()) return std::nullopt;
    const MemoryLog::One& one = joined_log_->entries[log_at_++];
    return Entry{one.kind, one.subject, one.number, 0, one.payload};
  };
  past_.emplace(source, log_);
}

// One look at how far the log has come.
inline void Member::join() {
  if (!place_) place_.emplace(program_[at_].subject, claim(), std::nullopt, std::set<uint64_t>());
  if (copy_ && !copy_->in_step && !log_is_over_) return;
  for (; searched_ < available(); ++searched_) {
    const MemoryLog::One& one = joined_log_->entries[searched_];
    place_->add({one.kind, one.subject, one.number, 0, one.payload}, searched_);
  }
  contradicts_ |= !log_is_over_ && place_->is_contradicted();
  if (contradicts_ && differs_) return world_.gives_up(team);
  place_->has_all();
  if (!place_->place() && !log_is_over_) return;
  if (!place_->place() && !world_.may_go_beyond(team)) return;
  while (log_at_ < place_->place().value_or(available()) && past_->pass_one(meetings_, decisions_, place_->later())) {
  }
  joining_ = false;
  past_->keep_order();
  if (log_is_over_) past_->take_all(meetings_, decisions_), log_.whole = true;
  for (const Frame& frame : std::exchange(early_, {})) take(frame);
}

inline void Member::send(Outbox& out) {
  for (auto& [to, frame] : out) world_.send(team, to, std::move(frame));
  out.clear();
}

// True: there was something more in the log.
inline bool Member::reads_on() {
  if (!past_ || !past_->follows() || joining_) return false;
  if (past_->take_one(meetings_, decisions_)) return true;
  if (copy_ && !copy_->in_step) return false;
  if (said_ || meetings_.learned() + decisions_.learned() > 0) return false;
  said_ = true;
  world_.caught_up(team);
  return false;
}

inline void Member::meet(uint64_t subject) {
  Outbox out;
  if (!pending_) {
    meetings_.begin(subject, claim(), out);
    decisions_.send_batch(out);
    pending_ = true;
    return send(out);
  }
  const Meetings::State state = meetings_.state(subject);
  if (state == Meetings::State::differ) return world_.differ(meetings_.claims(subject));
  contradicts_ |= state == Meetings::State::contradicts;
  if (contradicts_ && differs_) return world_.gives_up(team);
  if (state == Meetings::State::act) {
    if (!std::exchange(intends_, true)) meetings_.acts(subject);
    if (!world_.followers_have_all(team)) return;
    const uint64_t made = world_.next_answer();
    Bytes outcome(sizeof made);
    std::memcpy(outcome.data(), &made, sizeof made);
    meetings_.finish(subject, outcome, out);
    return send(out);
  }
  if (state != Meetings::State::done) return (void)reads_on();
  const Bytes outcome = meetings_.end(subject);
  world_.not_noticed += differs_ && claim().has_content() && !meetings_.is_alone();
  seen_.emplace_back(text_of(outcome));
  pending_ = intends_ = false;
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
  if (ended() || !world_.followers_have_all(team)) return;
  shown_ = seen_.size();
  const Step& step = program_[at_];
  if (joining_ && !step.meets) return seen_.emplace_back(), (void)++at_;
  if (joining_) return join();
  step.meets ? meet(step.subject) : ask(step.subject);
}

// What stands in the log was before what is heard.
inline void Member::take(const Frame& frame) {
  Outbox out;
  if (joining_ && frame.word == Word::welcome) log_is_over_ = true;
  if (joining_) return early_.push_back(frame);
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
  const bool is_over = past_ && past_->follows() && !(mask & team_bit(before));
  log_is_over_ |= is_over;
  if (is_over && !joining_) past_->take_all(meetings_, decisions_), log_.whole = true;
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
  if (copies_logs_) {
    const Copy& copy = copies_[team] = {follows, &replicas_[size_t(follows)]->log()};
    replicas_.push_back(std::make_unique<Member>(*this, team, team_bit(follows), copy, program_));
    if (resume_) replicas_.back()->resume(*copy.log, random() % (member(follows).at() + 1), new_ones_differ);
    standing_by_ |= team_bit(team);
    follows_[team] = follows;
    words_[team].emplace_back(epoch_, members_);
    return;
  }
  // The log that it goes by, behind those of teams that are lost and stand in it only in part.
  std::vector<const MemoryLog*> logs;
  for (int one = follows;; one = follows_[one]) {
    logs.insert(logs.begin(), &replicas_[size_t(one)]->log());
    if (logs.front()->whole || !follows_.contains(one)) break;
  }
  replicas_.push_back(std::make_unique<Member>(*this, team, team_bit(follows), logs, program_));
  if (resume_ && logs.size() == 1) replicas_.back()->resume(*logs[0], random() % (member(follows).at() + 1), new_ones_differ);
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

inline int World::lose_with_followers(int team) {
  lose(team);
  // Who follows it, and is no member yet, begins anew where there is another one to be followed.
  int again = 0;
  for (int other = 0; other < teams(); ++other)
    if ((standing_by_ & team_bit(other)) && follows_[other] == team && members_ != 0) lose(other), ++again;
  if (members_ == 0 && copies_logs_)
    for (const auto& [who_follows, copy] : copies_)
      if ((standing_by_ & team_bit(who_follows)) && !copy.in_step) lose(who_follows);
  job_is_lost = (members_ | standing_by_) == 0;
  if (members_ == 0) members_ = std::exchange(standing_by_, 0);
  tell_all();
  return again;
}

inline void World::die(const Death& death) {
  std::vector<int> who;
  for (int team = 0; team < teams(); ++team)
    if (lives(team) && (!death.spares_the_new || !follows_.contains(team))) who.push_back(team);
  if (who.empty() || (members_ | standing_by_) == team_bit(who[0])) return;
  const int team = who[death.whom % who.size()];
  if (member(team).is_alone() && members_ == team_bit(team)) seen_alone = copies_logs_ ? member(team).shown() : member(team).seen();
  int again = lose_with_followers(team);
  if (relaunches_ > 0 && teams() < most_teams) --relaunches_, ++again;
  for (; again > 0 && teams() < most_teams && !ended_ && !job_is_lost; --again) start();
}

// A piece of one, while its writer lives.
inline void World::send_logs() {
  for (auto& [team, copy] : copies_) {
    if (!lives(team) || !lives(copy.from)) continue;
    const size_t all = copy.log->entries.size();
    if (copy.entries < all) copy.entries += 1 + random() % std::min<size_t>(all - copy.entries, 8);
    copy.in_step |= copy.entries == all && copy.log->whole;
  }
}

inline bool World::deliver() {
  std::vector<std::pair<int, int>> full;
  for (const auto& [way, frames] : ways_)
    if (!frames.empty() && lives(way.second)) full.push_back(way);
  if (full.empty()) return false;
  const auto way = full[random() % full.size()];
  const auto [frame, before] = ways_[way].front();
  ways_[way].pop_front();
  if (before > 0) copies_[way.second].entries = std::max(copies_[way.second].entries, before);
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
    if (all_ended || job_is_lost || stopped) return true;
    if (copies_logs_ && random() % 4 == 0) send_logs();
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
