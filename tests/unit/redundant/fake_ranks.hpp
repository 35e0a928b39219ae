// Teams of four ranks that send each other messages, with the real decisions between twins: everything follows from one seed. What one rank of a
// team does rests on which message another one took, or on what a clock said, so a decision that is lost where another one rests on it makes a team hang.
#pragma once
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "redundant/decisions/decisions.hpp"
#include "redundant/decisions/receives.hpp"
#include "redundant/membership/awaiting.hpp"
#include "redundant/subjects.hpp"

namespace holdfast::redundant::test {

struct Message {
  int source = 0, tag = 0;
  size_t content = 0;
  Envelope envelope() const { return {source, tag}; }
};

// What a program does next, from what it has seen.
struct Op {
  enum What : uint8_t { nothing, send, receive, look, post, wait_any, clock, end } what = nothing;
  int peer = anybody, tag = anybody;
};

struct Seen {
  Message last, before;
  size_t step = 0, digest = 0;
  uint64_t time = 0;
};
using Program = Op (*)(int rank, const Seen& seen);

inline constexpr int request = 5, go = 1, no_go = 2, report = 7, summary = 9, ranks = 4, rounds = 8;

// Two workers ask rank 0, who lets one of them report to rank 3, and sends a summary there. That one takes some of all in every way that there is.
inline Op by_messages(int rank, const Seen& seen) {
  const size_t round = seen.step / (rank == 0 ? 5 : 3), part = seen.step % (rank == 0 ? 5 : 3);
  if (rank != 3 && round == rounds) return {Op::end};
  if (rank == 0) {
    if (part == 0) return {Op::receive, anybody, request};
    if (part == 1) return {Op::receive, 3 - seen.last.source, request};
    if (part == 4) return {Op::send, 3, summary};
    return part == 2 ? Op{Op::send, seen.before.source, go} : Op{Op::send, seen.last.source, no_go};
  }
  if (rank != 3) {
    if (part == 0) return {Op::send, 0, request};
    if (part == 1) return {Op::receive, 0, anybody};
    return seen.last.tag == go ? Op{Op::send, 3, report} : Op{};
  }
  // A receive, one after a look, two that are posted together: the second one might take what the first one takes.
  static constexpr std::array<Op::What, 8> ways{Op::receive, Op::look, Op::receive, Op::post, Op::post, Op::wait_any, Op::wait_any, Op::nothing};
  if (seen.step == ways.size() * rounds / 4) return {Op::end};
  const Op::What what = ways[seen.step % ways.size()];
  if (what == Op::receive && seen.step % ways.size() == 2) return {what, seen.last.source, seen.last.tag};
  if (what == Op::post) return seen.step % ways.size() == 3 ? Op{what} : Op{what, 0, summary};
  return {what, anybody, report};
}

// In each round rank 3 gets one report: from rank 1, or from rank 2 where a clock of rank 1 says so. It takes that in every way that there is.
inline Op by_clock(int rank, const Seen& seen) {
  const size_t round = seen.step / 4, part = seen.step % 4;
  if (rank == 0 || round == rounds) return {Op::end};
  const bool reports = seen.time % 2 == 0;
  if (rank == 1) {
    if (part == 0) return {Op::clock};
    if (part == 1) return {Op::send, reports ? 3 : 2, report};
    if (part == 2) return reports ? Op{Op::send, 2, no_go} : Op{};
    return {round % 2 == 0 ? Op::nothing : Op::receive, 3, summary};
  }
  if (rank == 2) {
    if (part == 0) return {Op::receive, 1, anybody};
    return part == 1 && seen.last.tag == report ? Op{Op::send, 3, report} : Op{};
  }
  if (part == 0) return round % 3 == 2 ? Op{Op::post} : Op{round % 3 == 1 ? Op::look : Op::nothing, anybody, report};
  if (part == 1)
    return round % 3 == 2 ? Op{Op::wait_any} : round % 3 == 1 ? Op{Op::receive, seen.last.source, report} : Op{Op::receive, anybody, report};
  return part == 2 && round % 2 == 1 ? Op{Op::send, 1, summary} : Op{};
}

class Teams;

class Rank {
 public:
  Rank(Teams& teams, int team, int teams_count, int rank, Program program)
      : teams_(teams), team_(team), rank_(rank), program_(program), decisions_(team, teams_count) {}
  bool ended() const { return program_(rank_, seen_).what == Op::end; }
  void go();
  void arrive(Message message);
  void push();
  void take(const Frame& frame);
  void live(uint32_t epoch, uint64_t mask, int leader);
  void await_all();
  void may_tell() { may_tell_ = true; }
  const std::vector<std::string>& log() const { return log_; }
  bool is_torn() const { return decisions_.is_torn(); }

 private:
  static uint64_t subject(Messages kind) { return message_subject(kind, 1); }
  void pump();
  void post(Receives::Name name);
  bool is_allowed_to_tell();
  void say_that_it_awaits();
  bool tell(Receives::Name name);
  bool receive(const Op& op);
  bool look(const Op& op);
  bool wait_any();
  bool send(const Op& op);
  bool ask();
  void saw(const Message& message);
  void put(Outbox& out);

  Teams& teams_;
  const int team_, rank_;
  const Program program_;
  Decisions decisions_;
  Receives receives_;
  Seen seen_;
  std::vector<std::string> log_;
  std::optional<Receives::Name> pending_;
  std::vector<Receives::Name> requests_;
  std::optional<size_t> chosen_;
  bool has_asked_ = false, may_tell_ = false;
  std::optional<Envelope> found_;
  Decisions::Noes* noes_ = nullptr;  // of probes, once it is known
  // The MPI: what has come and is nobody's, what is posted, what posted receives got.
  std::deque<Message> unexpected_;
  std::vector<Receives::Name> posted_;
  std::map<Receives::Name, Message> got_;
};

class Teams {
 public:
  Teams(int teams, uint64_t seed, Program program = by_messages) : random(seed), living_((uint64_t(1) << teams) - 1) {
    for (int team = 0; team < teams; ++team)
      for (int rank = 0; rank < ranks; ++rank) members_[{team, rank}] = std::make_unique<Rank>(*this, team, teams, rank, program);
  }
  // Until all that live have ended. False: they hang.
  bool run(const std::vector<std::pair<uint64_t, int>>& deaths);
  bool lives(int team) const { return living_ >> team & 1; }
  const Rank& member(int team, int rank) const { return *members_.at({team, rank}); }
  void send(int team, int from, int to, Message message) { messages_[{team, from, to}].push_back(message); }
  void ask_to_tell(int team, int rank);
  void awaits(int team, int rank) { let_tell(hub_.waits({team, rank})); }
  void send_twin(int rank, int from, int to, Frame frame) { frames_[{rank, from, to}].push_back(std::move(frame)); }
  std::mt19937_64 random;

 private:
  using Way = std::array<int, 3>;
  template <class What>
  What* any(std::map<Way, std::deque<What>>& ways, Way& chosen);
  void die(int team);
  void deliver_message();
  void deliver_frame();
  void hear_the_hub(int team, int rank);
  void let_tell(const std::vector<Awaiting::Who>& all);

  std::map<std::pair<int, int>, std::unique_ptr<Rank>> members_;
  std::map<Way, std::deque<Message>> messages_;
  std::map<Way, std::deque<Frame>> frames_;
  struct HubSays {
    Word word;
    uint32_t epoch = 0;
    uint64_t living = 0;
  };
  std::map<std::pair<int, int>, std::deque<HubSays>> words_;
  Awaiting hub_;
  uint64_t living_;
  uint32_t epoch_ = 0;
};

// -------------------------------------------------------------------------------------------------------------------- one rank

inline void Rank::put(Outbox& out) {
  for (auto& [to, frame] : out) teams_.send_twin(rank_, team_, to, std::move(frame));
  out.clear();
}

inline void Rank::push() {
  Outbox out;
  decisions_.send_batch(out);
  put(out);
}

inline void Rank::take(const Frame& frame) {
  Outbox out;
  decisions_.take(frame, out);
  put(out);
  say_that_it_awaits();
}

inline void Rank::live(uint32_t epoch, uint64_t mask, int leader) {
  Outbox out;
  decisions_.live(epoch, mask, leader, out);
  put(out);
  say_that_it_awaits();
}

inline void Rank::await_all() {
  Outbox out;
  decisions_.await_all(out);
  put(out);
  say_that_it_awaits();
}

inline void Rank::say_that_it_awaits() {
  if (decisions_.has_begun_to_await()) teams_.awaits(team_, rank_);
}

inline bool Rank::is_allowed_to_tell() {
  if (!has_asked_) teams_.ask_to_tell(team_, rank_);
  has_asked_ = true;
  return may_tell_;
}

inline void Rank::arrive(Message message) {
  for (size_t i = 0; i < posted_.size(); ++i)
    if (receives_.envelope(posted_[i]).overlaps(message.envelope())) {
      got_[posted_[i]] = message;
      posted_.erase(posted_.begin() + ptrdiff_t(i));
      return;
    }
  unexpected_.push_back(message);
}

inline void Rank::post(Receives::Name name) {
  receives_.posted(name);
  for (size_t i = 0; i < unexpected_.size(); ++i)
    if (receives_.envelope(name).overlaps(unexpected_[i].envelope())) {
      got_[name] = unexpected_[i];
      unexpected_.erase(unexpected_.begin() + ptrdiff_t(i));
      return;
    }
  posted_.push_back(name);
}

inline void Rank::pump() {
  Bytes answer;
  while (decisions_.next_message(subject(Messages::matches), answer) == Decisions::Known::yes) {
    std::array<int64_t, 3> match;
    std::memcpy(match.data(), answer.data(), sizeof match);
    receives_.decided(uint64_t(match[0]), Envelope{int(match[1]), int(match[2])});
  }
  if (decisions_.decides(subject(Messages::matches))) receives_.lead();
  while (const auto name = receives_.next_ready()) post(*name);
}

// The leader's, of one that has come: those that could have taken it first.
inline bool Rank::tell(Receives::Name name) {
  if (!decisions_.decides(subject(Messages::matches))) return !receives_.is_open(name);
  if (!is_allowed_to_tell()) return false;
  const Message message = got_.at(name);
  for (const Receives::Name before : receives_.before(name, message.envelope())) {
    if (teams_.random() % 3 == 0) return false;  // its content is still on the way
    if (!tell(before)) return false;
  }
  if (!receives_.is_open(name)) return true;
  const std::array<int64_t, 3> match{int64_t(receives_.number(name)), message.source, message.tag};
  (void)decisions_.decided_message(subject(Messages::matches), std::as_bytes(std::span(match)));
  receives_.decided(receives_.number(name), message.envelope());
  return true;
}

inline void Rank::saw(const Message& message) {
  seen_.before = seen_.last;
  seen_.last = message;
  seen_.digest = seen_.digest * 31 + message.content + size_t(message.source) * 7 + size_t(message.tag);
  log_.push_back(std::to_string(message.source) + " " + std::to_string(message.tag) + " " + std::to_string(message.content));
}

inline bool Rank::receive(const Op& op) {
  if (!pending_) pending_ = receives_.begin({op.peer, op.tag});
  pump();
  if (!got_.contains(*pending_) || !tell(*pending_)) return false;
  saw(got_.at(*pending_));
  receives_.end(*pending_);
  pending_.reset();
  return true;
}

// True: whether there is one is known, and logged; the program looks again where there is none.
inline bool Rank::look(const Op& op) {
  const Envelope wanted{op.peer, op.tag};
  if (!found_ && noes_ && noes_->repeats()) return log_.push_back("no"), false;
  const bool asks = !found_ && noes_ && noes_->is_asked();
  if (asks && !is_allowed_to_tell()) return false;
  if (!found_ && !asks) {
    Bytes answer;
    switch (decisions_.next_message(subject(Messages::probes), answer)) {
      case Decisions::Known::no:
        noes_ = &decisions_.noes(subject(Messages::probes));
        log_.push_back("no");
        return false;
      case Decisions::Known::yes: {
        std::array<int64_t, 2> envelope;
        std::memcpy(envelope.data(), answer.data(), sizeof envelope);
        found_ = Envelope{int(envelope[0]), int(envelope[1])};
        return false;
      }
      case Decisions::Known::nothing: break;
    }
    if (!decisions_.decides(subject(Messages::probes)) || !is_allowed_to_tell()) return false;
    noes_ = &decisions_.noes(subject(Messages::probes));
  }
  for (const Message& message : unexpected_) {
    if (!(found_ ? *found_ : wanted).overlaps(message.envelope()) || (found_ && receives_.holds_back(*found_))) continue;
    if (!found_) {
      const std::array<int64_t, 2> envelope{message.source, message.tag};
      (void)decisions_.decided_message(subject(Messages::probes), std::as_bytes(std::span(envelope)));
    }
    found_.reset();
    seen_.before = seen_.last;
    seen_.last = message;
    return true;
  }
  if (!found_) {
    if (!noes_ || !noes_->adds()) (void)decisions_.decided_no(subject(Messages::probes));
    log_.push_back("no");
  }
  return false;
}

inline bool Rank::wait_any() {
  if (!chosen_) {
    Bytes answer;
    if (decisions_.next_message(message_subject(Messages::requests), answer) == Decisions::Known::yes) {
      chosen_ = size_t(answer[0]);
    } else if (decisions_.decides(message_subject(Messages::requests)) && decisions_.decides(subject(Messages::matches))) {
      const size_t first = teams_.random() % requests_.size();
      for (size_t i = 0; i < requests_.size() && !chosen_; ++i)
        if (const size_t at = (first + i) % requests_.size(); got_.contains(requests_[at])) chosen_ = at;
      if (!chosen_ || !tell(requests_[*chosen_])) return chosen_.reset(), false;
      const std::byte index{uint8_t(*chosen_)};
      (void)decisions_.decided_message(message_subject(Messages::requests), ByteView(&index, 1));
    }
  }
  if (!chosen_ || !got_.contains(requests_[*chosen_])) return false;
  const Receives::Name name = requests_[*chosen_];
  if (!tell(name)) return false;
  saw(got_.at(name));
  receives_.end(name);
  requests_.erase(requests_.begin() + ptrdiff_t(*chosen_));
  chosen_.reset();
  return true;
}

inline bool Rank::send(const Op& op) {
  if (!decisions_.has_arrived()) return push(), false;
  teams_.send(team_, rank_, op.peer, {rank_, op.tag, seen_.digest});
  return true;
}

inline bool Rank::ask() {
  constexpr uint64_t clock = uint64_t(Subject::mpi_time);
  const ByteSpan time = std::as_writable_bytes(std::span(&seen_.time, 1));
  if (!decisions_.next(clock, time)) {
    if (!decisions_.decides(clock)) return false;
    seen_.time = teams_.random();
    (void)decisions_.decided(clock, time);
  }
  log_.push_back("time " + std::to_string(seen_.time));
  return true;
}

inline void Rank::go() {
  pump();
  const Op op = program_(rank_, seen_);
  bool done = true;
  switch (op.what) {
    case Op::send: done = send(op); break;
    case Op::receive: done = receive(op); break;
    case Op::look: done = look(op); break;
    case Op::wait_any: done = wait_any(); break;
    case Op::post: requests_.push_back(receives_.begin({op.peer, op.tag})); break;
    case Op::clock: done = ask(); break;
    case Op::nothing: break;
    case Op::end: return;
  }
  if (done) ++seen_.step;
}

// -------------------------------------------------------------------------------------------------------------------- all of them

inline void Teams::die(int team) {
  if (!lives(team) || living_ == uint64_t(1) << team) return;
  living_ &= ~(uint64_t(1) << team);
  for (auto& [way, frames] : frames_)
    if (way[1] == team) frames.resize(random() % (frames.size() + 1));
  ++epoch_;
  for (const auto& [who, member] : members_)
    if (lives(who.first)) words_[who].push_back({Word::lives, epoch_, living_});
  for (int rank = 0; rank < ranks; ++rank) awaits(team, rank);
}

inline void Teams::ask_to_tell(int team, int rank) {
  if (!hub_.has_begun()) {
    std::vector<Awaiting::Who> all;
    for (const auto& [who, member] : members_)
      if (lives(who.first)) all.push_back({who.first, who.second}), words_[who].push_back({Word::await_all});
    hub_.begin(all);
  }
  let_tell(hub_.asks({team, rank}));
}

inline void Teams::let_tell(const std::vector<Awaiting::Who>& all) {
  for (const Awaiting::Who& one : all) words_[{one.team, one.rank}].push_back({Word::may_tell});
}

template <class What>
What* Teams::any(std::map<Way, std::deque<What>>& ways, Way& chosen) {
  std::vector<Way> full;
  for (const auto& [way, waiting] : ways)
    if (!waiting.empty()) full.push_back(way);
  if (full.empty()) return nullptr;
  chosen = full[random() % full.size()];
  return &ways[chosen].front();
}

inline void Teams::deliver_message() {
  Way way;
  const Message* const message = any(messages_, way);
  if (!message) return;
  if (lives(way[0])) members_[{way[0], way[2]}]->arrive(*message);
  messages_[way].pop_front();
}

inline void Teams::deliver_frame() {
  Way way;
  const Frame* const frame = any(frames_, way);
  if (!frame) return;
  if (lives(way[2])) members_[{way[2], way[0]}]->take(*frame);
  frames_[way].pop_front();
}

inline void Teams::hear_the_hub(int team, int rank) {
  auto& words = words_[{team, rank}];
  if (words.empty()) return;
  const HubSays word = words.front();
  words.pop_front();
  Rank& member = *members_[{team, rank}];
  if (word.word == Word::lives) member.live(word.epoch, word.living, __builtin_ctzll(word.living));
  else word.word == Word::await_all ? member.await_all() : member.may_tell();
}

inline bool Teams::run(const std::vector<std::pair<uint64_t, int>>& deaths) {
  constexpr uint64_t most_steps = 100000;
  const int teams = int(members_.size()) / ranks;
  for (uint64_t step = 0; step < most_steps; ++step) {
    for (const auto& [when, team] : deaths)
      if (when == step) die(team);
    bool all_ended = true;
    for (const auto& [who, member] : members_) all_ended &= !lives(who.first) || member->ended();
    if (all_ended) return true;
    const int team = int(random() % uint64_t(teams)), rank = int(random() % ranks);
    switch (random() % 6) {
      case 0: deliver_message(); break;
      case 1: deliver_frame(); break;
      case 2:
        if (lives(team) && random() % 4 == 0) members_[{team, rank}]->push();
        break;
      case 3:
        if (lives(team)) hear_the_hub(team, rank);
        break;
      default:
        if (lives(team)) members_[{team, rank}]->go();
    }
  }
  return false;
}

}  // namespace holdfast::redundant::test
