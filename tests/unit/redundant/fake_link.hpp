// Replicas of one rank on a link of the test's own: what is sent comes later, in order for each pair, or not at all where its sender was lost.
// Everything follows from one seed.
#pragma once
#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "redundant/compare/meetings.hpp"
#include "redundant/decisions/decisions.hpp"
#include "redundant/membership/lease.hpp"
#include "redundant/membership/membership.hpp"

namespace holdfast::redundant::test {

// What a program does, in all replicas: calls on subjects 1 and 2, and questions to the world about subjects 7 and 8.
struct Step {
  bool meets;
  uint64_t subject;
};

inline std::vector<Step> some_program(uint64_t seed, size_t steps) {
  std::mt19937_64 random(seed);
  std::vector<Step> program;
  for (size_t i = 0; i < steps; ++i) {
    const bool meets = random() % 2 == 0;
    program.push_back({meets, (meets ? 1 : 7) + random() % 2});
  }
  return program;
}

class Link;

// Of a team on a node of its own, from a step on, for so many.
struct Trouble {
  enum What : uint8_t { asleep, cut_from_the_hub, cut_off } what;  // it stands still; what it says and hears waits, of the hub or of all
  int team;
  uint64_t step, steps;
};

class FakeReplica {
 public:
  FakeReplica(Link& link, int team, int teams, const std::vector<Step>& program)
      : link_(link), team_(team), program_(program), meetings_(team, teams), decisions_(team, teams) {}
  bool ended() const { return at_ == program_.size(); }
  // One step of the program, where it can make one.
  void go();
  void take(const Frame& frame);
  void live(uint32_t epoch, uint64_t mask);
  void push();

  const std::vector<std::string>& seen() const { return seen_; }
  bool is_torn() const { return decisions_.is_torn(); }
  size_t remembered() const { return meetings_.remembered(); }
  // What it has said has come to all: its twins need not hear it any more.
  bool may_leave() const { return says_last_ && decisions_.has_arrived(); }

 private:
  void send(Outbox& out);
  void meet(uint64_t subject);
  void ask(uint64_t subject);

  Link& link_;
  const int team_;
  const std::vector<Step>& program_;
  Meetings meetings_;
  Decisions decisions_;
  size_t at_ = 0;
  bool pending_ = false, says_last_ = false;
  uint32_t reported_ = ~uint32_t(0);
  std::vector<std::string> seen_;
};

class Link {
 public:
  Link(int teams, uint64_t seed, const std::vector<Step>& program);
  // Until all that live have ended. `deaths`: at which steps of the schedule a team dies. Those that have ended leave as soon as they may, and nobody
  // hears them any more. False: it hangs.
  bool run(std::vector<std::pair<uint64_t, int>> deaths);
  void nobody_leaves() { stay_ = true; }
  // Teams have nodes of their own: the hub declares one lost of which it does not hear, and a process ends itself where it does not hear of the hub.
  void have_nodes(std::vector<Trouble> troubles, bool heeds_leases = true) {
    troubles_ = std::move(troubles), are_far_ = true, heeds_leases_ = heeds_leases;
    for (size_t team = 0; team < replicas_.size(); ++team) (void)leases_[int(team)];
  }
  static constexpr uint64_t deadline = 120, margin = 5;
  // It acts, though it has been declared lost.
  bool acted_late() const { return acted_late_; }
  uint64_t woken_late() const { return woken_late_; }
  // From this step of its program on a bit is flipped in the team.
  void flip(int team, size_t at) { flips_[team] = at; }
  uint64_t sum(int team, size_t at) const { return flips_.contains(team) && at >= flips_.at(team) ? uint64_t(team) + 1 : 0; }
  // To the hub, which judges.
  void differ(const std::vector<std::pair<int, Claim>>& claims);
  bool stopped() const { return stopped_; }
  // What is on its way still arrives.
  void drain() {
    while (deliver()) {
    }
  }

  void send(int from, int to, Frame frame) { ways_[{from, to}].push_back(std::move(frame)); }
  uint64_t next_answer() { return ++answers_; }
  void acted(int team, uint64_t subject, uint64_t sum) { ++acts_[subject], acted_wrongly_ |= sum != 0, acted_late_ |= !lives(team); }
  bool acted_wrongly() const { return acted_wrongly_; }
  bool lives(int team) const { return living_ >> team & 1; }
  const FakeReplica& replica(int team) const { return *replicas_[size_t(team)]; }
  uint64_t acts(uint64_t subject) const { return acts_.at(subject); }

 private:
  void die(int team);
  void leave(int team);
  bool has(int team, std::initializer_list<Trouble::What> troubles) const;
  bool runs(int team) const { return (lives(team) || are_far_) && !ended_itself_.contains(team); }
  void go(int team);
  void look_at_leases();
  void declare_silent(int team);
  void tell_who_lives();
  bool deliver();

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<FakeReplica>> replicas_;
  std::map<std::pair<int, int>, std::deque<Frame>> ways_;
  std::map<int, std::deque<std::pair<uint32_t, uint64_t>>> words_of_hub_;
  std::map<uint64_t, uint64_t> acts_;
  Membership members_;
  std::map<int, size_t> flips_;
  bool stopped_ = false, acted_wrongly_ = false;
  uint64_t living_, left_ = 0, answers_ = 0;
  uint32_t epoch_ = 0;
  bool stay_ = false;

  bool are_far_ = false, heeds_leases_ = true, acted_late_ = false;
  std::vector<Trouble> troubles_;
  uint64_t step_ = 0, woken_late_ = 0;
  std::map<int, Lease> leases_;
  std::map<int, uint64_t> heard_;                                  // by the hub, of each team
  std::map<int, std::deque<uint64_t>> to_the_hub_, from_the_hub_;  // each says when it lives, and it comes back
  std::set<int> ended_itself_;
};

inline void FakeReplica::send(Outbox& out) {
  for (auto& [to, frame] : out) link_.send(team_, to, std::move(frame));
  out.clear();
}

inline void FakeReplica::meet(uint64_t subject) {
  Outbox out;
  if (!pending_) {
    meetings_.begin(subject, {.call = 1, .at = at_, .sum = link_.sum(team_, at_)}, out);
    decisions_.send_batch(out);
    pending_ = true;
    return send(out);
  }
  if (meetings_.state(subject) == Meetings::State::act) {
    const uint64_t made = link_.next_answer();
    link_.acted(team_, subject, link_.sum(team_, at_));
    Bytes outcome(sizeof made);
    std::memcpy(outcome.data(), &made, sizeof made);
    meetings_.finish(subject, outcome, out);
    return send(out);
  }
  if (meetings_.state(subject) == Meetings::State::differ && std::exchange(reported_, meetings_.epoch()) != meetings_.epoch())
    link_.differ(meetings_.claims(subject));
  if (meetings_.state(subject) != Meetings::State::done) return;
  const Bytes outcome = meetings_.end(subject);
  seen_.emplace_back(text_of(outcome));
  pending_ = false;
  ++at_;
  const auto again = [&](const Step& step) { return step.meets && step.subject == subject; };
  if (std::none_of(program_.begin() + ptrdiff_t(at_), program_.end(), again)) meetings_.forget(subject, out);
  send(out);
}

inline void FakeReplica::ask(uint64_t subject) {
  uint64_t answer = 0;
  const ByteSpan bytes(reinterpret_cast<std::byte*>(&answer), sizeof answer);
  if (!decisions_.next(subject, bytes)) {
    if (!decisions_.decides(subject)) return;
    answer = link_.next_answer();
    (void)decisions_.decided(subject, bytes);
  }
  seen_.push_back(std::to_string(answer));
  ++at_;
}

inline void FakeReplica::go() {
  if (ended()) {
    Outbox out;
    if (!std::exchange(says_last_, true)) decisions_.send_last(out);
    return send(out);
  }
  const Step& step = program_[at_];
  step.meets ? meet(step.subject) : ask(step.subject);
}

inline void FakeReplica::take(const Frame& frame) {
  Outbox out;
  if (frame.word == Word::decisions || frame.word == Word::unite || frame.word == Word::arrived) decisions_.take(frame, out);
  else meetings_.take(frame, out);
  send(out);
}

inline void FakeReplica::live(uint32_t epoch, uint64_t mask) {
  Outbox out;
  meetings_.live(epoch, mask, out);
  decisions_.live(epoch, mask, meetings_.leader(), out);
  send(out);
}

inline void FakeReplica::push() {
  Outbox out;
  decisions_.send_batch(out);
  send(out);
}

inline Link::Link(int teams, uint64_t seed, const std::vector<Step>& program) : random_(seed), members_(teams), living_((uint64_t(1) << teams) - 1) {
  for (int team = 0; team < teams; ++team) replicas_.push_back(std::make_unique<FakeReplica>(*this, team, teams, program));
}

// What it had sent arrives up to some frame. The hub declares it after that, to each survivor in its own time.
inline void Link::die(int team) {
  if (!lives(team) || living_ == uint64_t(1) << team) return;
  if (!members_.is_lost(team)) (void)members_.gone(team, 0, "");
  living_ &= ~(uint64_t(1) << team);
  for (auto& [way, frames] : ways_)
    if (way.first == team) frames.resize(random_() % (frames.size() + 1));
  tell_who_lives();
}

inline void Link::differ(const std::vector<std::pair<int, Claim>>& claims) {
  const Orders orders = members_.differ(0, "a call", claims);
  stopped_ |= std::any_of(orders.begin(), orders.end(), [](const Order& order) { return order.what == Order::finish; });
  for (const Order& order : orders)
    if (order.what == Order::kill && !stopped_) die(order.team);
}

// By itself. Its process still takes what comes.
inline void Link::leave(int team) {
  left_ |= uint64_t(1) << team;
  tell_who_lives();
}

inline void Link::tell_who_lives() {
  ++epoch_;
  for (size_t other = 0; other < replicas_.size(); ++other)
    if (lives(int(other))) words_of_hub_[int(other)].emplace_back(epoch_, living_ & ~left_);
}

inline bool Link::deliver() {
  std::vector<std::pair<int, int>> full;
  const auto is_held = [this](const auto& way) { return has(way.second, {Trouble::asleep, Trouble::cut_off}) || has(way.first, {Trouble::cut_off}); };
  for (const auto& [way, frames] : ways_)
    if (!frames.empty() && runs(way.second) && !is_held(way)) full.push_back(way);
  if (full.empty()) return false;
  const auto way = full[random_() % full.size()];
  const Frame frame = ways_[way].front();
  ways_[way].pop_front();
  replicas_[size_t(way.second)]->take(frame);
  return true;
}

inline bool Link::has(int team, std::initializer_list<Trouble::What> troubles) const {
  return std::any_of(troubles_.begin(), troubles_.end(), [&](const Trouble& one) {
    const bool is_now = step_ >= one.step && step_ < one.step + one.steps;
    return one.team == team && is_now && std::count(troubles.begin(), troubles.end(), one.what) > 0;
  });
}

// A step of its program. Before it acts a process looks whether it still may.
inline void Link::go(int team) {
  if (are_far_ && heeds_leases_ && leases_[team].is_over(int64_t(step_))) {
    ended_itself_.insert(team);
    return;
  }
  replicas_[size_t(team)]->go();
}

// It has ended itself, or will before it does anything. The hub need not be told.
inline void Link::declare_silent(int team) {
  if (members_.silent(team, 0, "").empty()) return;
  living_ &= ~(uint64_t(1) << team);
  tell_who_lives();
}

// What each says to the hub, what comes back of it, and whom the hub has not heard of.
inline void Link::look_at_leases() {
  constexpr uint64_t between = 6;
  for (size_t number = 0; number < replicas_.size(); ++number) {
    const int team = int(number);
    const bool reaches_hub = !has(team, {Trouble::cut_from_the_hub, Trouble::cut_off}), sleeps = has(team, {Trouble::asleep});
    auto &said = to_the_hub_[team], &back = from_the_hub_[team];
    if (runs(team) && !sleeps && step_ % between == 0) said.push_back(step_);
    if (reaches_hub && !said.empty() && random_() % 2 == 0) {
      if (lives(team)) heard_[team] = step_, back.push_back(said.front());
      said.pop_front();
    }
    if (reaches_hub && !sleeps && !back.empty() && random_() % 2 == 0) {
      leases_[team].renew(int64_t(back.front()), int64_t(deadline));
      back.pop_front();
    }
    if (step_ == 0) heard_[team] = 0, leases_[team].renew(0, int64_t(deadline));
    const auto unheard = int64_t(step_ - heard_[team]);
    const bool is_lost = is_lost_far_away(unheard, int64_t(deadline), int64_t(margin)) && has_ended_itself(unheard, int64_t(deadline));
    if (lives(team) && !(left_ >> team & 1) && is_lost) declare_silent(team);
    woken_late_ += !lives(team) && !sleeps && runs(team);
  }
}

inline bool Link::run(std::vector<std::pair<uint64_t, int>> deaths) {
  constexpr uint64_t most_steps = 200000;
  for (uint64_t step = 0; step < most_steps; ++step) {
    step_ = step;
    if (are_far_) look_at_leases();
    for (const auto& [when, team] : deaths)
      if (when == step) die(team);
    if (stopped_) return true;
    bool all_ended = true;
    for (size_t team = 0; team < replicas_.size(); ++team) all_ended &= !lives(int(team)) || replicas_[team]->ended();
    if (all_ended) return true;
    const size_t team = random_() % replicas_.size();
    const bool runs_now = runs(int(team)) && !has(int(team), {Trouble::asleep});
    switch (random_() % 4) {
      case 0: (void)deliver(); break;
      case 1:
        if (runs_now) go(int(team));
        if (runs_now && lives(int(team)) && !stay_ && !(left_ >> team & 1) && replicas_[team]->may_leave()) leave(int(team));
        break;
      case 2:
        if (runs_now) replicas_[team]->push();
        break;
      default: {
        auto& words = words_of_hub_[int(team)];
        if (!runs_now || words.empty() || has(int(team), {Trouble::cut_from_the_hub, Trouble::cut_off})) break;
        replicas_[team]->live(words.front().first, words.front().second);
        words.pop_front();
      }
    }
  }
  return false;
}

}  // namespace holdfast::redundant::test
