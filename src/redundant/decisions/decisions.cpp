#include "redundant/decisions/decisions.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "redundant/subjects.hpp"

namespace holdfast::redundant {

namespace {

constexpr size_t most_remembered = 1 << 16;
// One batch may be on its way to one follower, and with another, while the next one gathers. A socket holds some as well.
constexpr size_t most_unsent = most_remembered / 4, most_unsent_bytes = 4 << 20;

struct Head {
  uint64_t subject, number, bytes;
};

// An answer about messages is a count of noes, or a byte and what was answered.
constexpr std::byte a_yes{1};

Bytes of_noes(uint64_t count) {
  Bytes answer(sizeof count);
  std::memcpy(answer.data(), &count, sizeof count);
  answer.insert(answer.begin(), std::byte{0});
  return answer;
}

uint64_t noes_in(ByteView answer) {
  uint64_t count = 0;
  if (answer.size() == 1 + sizeof count && answer[0] != a_yes) std::memcpy(&count, answer.data() + 1, sizeof count);
  return count;
}

}  // namespace

void Decisions::append(Bytes& batch, const One& one) {
  const Head head{one.subject, one.number, one.answer.size()};
  const size_t at = batch.size();
  batch.resize(at + sizeof head + one.answer.size());
  std::memcpy(batch.data() + at, &head, sizeof head);
  std::memcpy(batch.data() + at + sizeof head, one.answer.data(), one.answer.size());
}

template <class Each>
void Decisions::each(ByteView batch, Each take_one) {
  while (batch.size() >= sizeof(Head)) {
    Head head;
    std::memcpy(static_cast<void*>(&head), batch.data(), sizeof head);
    batch = batch.subspan(sizeof head);
    if (head.bytes > batch.size()) return;
    const ByteView answer = batch.first(head.bytes);
    take_one(One{head.subject, head.number, {answer.begin(), answer.end()}});
    batch = batch.subspan(head.bytes);
  }
}

bool Decisions::is_full() const { return batch_answers_ >= most_unsent || batch_.size() >= most_unsent_bytes; }

bool Decisions::decides(uint64_t subject) const {
  if (torn_ || leader_ != team_ || not_united_ != 0) return false;
  const auto found = subjects_.find(subject);
  return found == subjects_.end() ||
         (found->second.waiting.empty() && found->second.noes.to_repeat_ == 0);  // what the leader before has said is repeated first
}

void Decisions::remember(One one) {
  if (!remembers_) return;
  remembered_.push_back(std::move(one));
  if (remembered_.size() > most_remembered) remembered_.pop_front();
}

bool Decisions::is_alone() const { return (living_ & ~team_bit(team_)) == 0; }

void Decisions::add(uint64_t subject, Subject& its, Bytes answer) {
  One one{subject, ++its.known, std::move(answer)};
  if (keeper_) keeper_->decision(one.subject, one.number, one.answer);
  if (is_alone()) return;  // nobody is left to hear it
  append(batch_, one);
  ++batch_answers_;
  remember(std::move(one));
}

void Decisions::add_noes(uint64_t subject, Subject& its) {
  if (const uint64_t noes = its.noes.said_.exchange(0); noes > 0) add(subject, its, of_noes(noes));
}

bool Decisions::Noes::take_one(std::atomic<uint64_t>& count) {
  uint64_t left = count.load(std::memory_order_acquire);
  while (left > 0)
    if (count.compare_exchange_weak(left, left - 1)) return true;
  return false;
}

bool Decisions::Noes::adds() {
  uint64_t counted = said_.load(std::memory_order_relaxed);
  while (counted > 0)
    if (said_.compare_exchange_weak(counted, counted + 1)) return true;
  return false;
}

Decisions::Noes& Decisions::noes(uint64_t subject) {
  const bool asks = decides(subject);
  Noes& its = subjects_[subject].noes;
  its.asked_ = asks;
  return its;
}

void Decisions::asks_no_more() {
  for (auto& [subject, its] : subjects_) its.noes.asked_ = false;
}

bool Decisions::decided(uint64_t subject, ByteView answer) {
  const bool first = batch_.empty();
  add(subject, subjects_[subject], {answer.begin(), answer.end()});
  batch_is_awaited_ |= awaits_all_;
  return first && !is_alone();
}

bool Decisions::may_answer_ahead(uint64_t subject, uint64_t number) const {
  return !torn_ && leader_ == team_ && not_united_ == 0 && !takes_over_ && number == this->number(subject) + 1;
}

bool Decisions::answered_ahead(uint64_t subject, ByteView answer) {
  const bool first = decided(subject, answer);
  keep_until_asked(subject, subjects_[subject], {answer.begin(), answer.end()});
  return first;
}

void Decisions::keep_until_asked(uint64_t subject, Subject& its, Bytes answer) {
  if (is_of_thread(subject) && has_ended(thread_of(subject))) return;
  its.waiting.push_back(std::move(answer));
  ++learned_;
}

void Decisions::thread_begins(uint32_t thread) {
  if (has_ended(thread)) ended_threads_[thread] = false;
}

void Decisions::thread_ends(uint32_t thread) {
  if (ended_threads_.empty()) ended_threads_.resize(size_t(1) << thread_bits);
  ended_threads_[thread] = true;
  for (auto its = subjects_.lower_bound(clock_of_thread(1, thread)); its != subjects_.end() && thread_of(its->first) == thread; ++its) {
    learned_ -= its->second.waiting.size();
    its->second.waiting.clear();
  }
}

bool Decisions::decided_message(uint64_t subject, ByteView answer) {
  const bool first = batch_.empty();
  Subject& its = subjects_[subject];
  add_noes(subject, its);
  Bytes whole(1 + answer.size(), a_yes);
  std::copy(answer.begin(), answer.end(), whole.begin() + 1);
  add(subject, its, std::move(whole));
  batch_is_awaited_ = true;
  return first && !is_alone();
}

bool Decisions::decided_no(uint64_t subject) {
  if (is_alone() && !keeper_) return false;
  const bool first = batch_.empty() && with_noes_.empty();
  if (subjects_[subject].noes.said_++ == 0) with_noes_.push_back(subject);
  return first;
}

Decisions::Known Decisions::next_message(uint64_t subject, Bytes& answer) {
  if (torn_) return Known::nothing;
  const auto found = subjects_.find(subject);
  if (found == subjects_.end()) return Known::nothing;
  Subject& its = found->second;
  if (its.noes.take_one(its.noes.to_repeat_)) return Known::no;
  if (its.waiting.empty()) return Known::nothing;
  const Bytes front = std::move(its.waiting.front());
  its.waiting.pop_front();
  --learned_;
  if (const uint64_t noes = noes_in(front); noes > 0) {
    its.noes.to_repeat_ = noes - 1;  // one by this answer
    return Known::no;
  }
  answer.assign(front.begin() + ptrdiff_t(front.empty() ? 0 : 1), front.end());
  return Known::yes;
}

bool Decisions::has_arrived() const {
  if (is_alone()) return true;
  if (takes_over_ || batch_is_awaited_ || !with_noes_.empty()) return false;
  for (const int team : TeamsOf{living_ & ~team_bit(team_)})
    if (arrived_[size_t(team)] < asked_) return false;
  return true;
}

void Decisions::await_all(Outbox& out) {
  awaits_all_ = begins_to_await_ = true;
  if (leader_ == team_) send(out, true);
}

bool Decisions::has_begun_to_await() { return begins_to_await_ && has_arrived() && std::exchange(begins_to_await_, false); }

bool Decisions::next(uint64_t subject, ByteSpan answer) {
  if (torn_) return false;
  const auto found = subjects_.find(subject);
  if (found == subjects_.end() || found->second.waiting.empty() || found->second.waiting.front().size() != answer.size()) return false;
  std::memcpy(answer.data(), found->second.waiting.front().data(), answer.size());
  found->second.waiting.pop_front();
  --learned_;
  return true;
}

void Decisions::send(Outbox& out, bool last) {
  batch_is_awaited_ |= !with_noes_.empty();
  for (const uint64_t subject : with_noes_) add_noes(subject, subjects_[subject]);
  with_noes_.clear();
  batch_is_awaited_ &= !batch_.empty();  // what was decided alone waits for nobody
  if (batch_.empty() && !last) return;
  const uint64_t number = batch_is_awaited_ || last ? ++asked_ : 0;
  for (const int team : TeamsOf{living_ & ~team_bit(team_)}) {
    Frame frame;
    frame.word = Word::decisions, frame.team = uint16_t(team_), frame.epoch = epoch_, frame.number = number;
    frame.payload = batch_;
    out.emplace_back(team, std::move(frame));
  }
  batch_.clear();
  batch_answers_ = 0;
  batch_is_awaited_ = false;
}

// What is known already is passed over.
bool Decisions::learn(One one) {
  Subject& subject = subjects_[one.subject];
  if (one.number <= subject.known) return false;
  torn_ |= one.number != subject.known + 1;
  if (torn_) asks_no_more();
  subject.noes.asked_ = false;
  subject.known = one.number;
  keep_until_asked(one.subject, subject, one.answer);
  remember(std::move(one));
  return true;
}

void Decisions::learn_all(ByteView batch) {
  each(batch, [this](const One& one) {
    if (learn(one) && keeper_) keeper_->decision(one.subject, one.number, one.answer);
  });
}

void Decisions::learn(uint64_t subject, uint64_t number, ByteView answer) { (void)learn(One{subject, number, {answer.begin(), answer.end()}}); }

Bytes Decisions::waiting() const {
  Bytes all;
  for (const auto& [name, its] : subjects_) {
    if (its.waiting.empty()) continue;
    const uint64_t pair[2] = {name, its.known - its.waiting.size() + 1};
    const auto* const at = reinterpret_cast<const std::byte*>(pair);
    all.insert(all.end(), at, at + sizeof pair);
  }
  return all;
}

void Decisions::pass(uint64_t subject, uint64_t number, ByteView answer) {
  Subject& its = subjects_[subject];
  if (number <= its.known) return;
  its.known = number;
  remember(One{subject, number, {answer.begin(), answer.end()}});
}

void Decisions::take(const Frame& frame, Outbox& out) {
  if (frame.word == Word::unite && frame.epoch > epoch_) {  // it has heard of the loss before this replica
    united_early_[frame.team] = frame;
    return;
  }
  if (!(living_ & team_bit(frame.team))) return;
  if (frame.word == Word::arrived) arrived_[frame.team] = std::max(arrived_[frame.team], frame.number);
  if (frame.word == Word::decisions) learn_all(frame.payload);
  if (frame.word == Word::decisions && frame.number > 0) {
    Frame arrived;
    arrived.word = Word::arrived, arrived.team = uint16_t(team_), arrived.epoch = epoch_, arrived.number = frame.number;
    out.emplace_back(int(frame.team), std::move(arrived));
  }
  if (frame.word != Word::unite) return;
  learn_all(frame.payload);
  not_united_ &= ~(uint64_t(1) << frame.team);
  take_over(out);
}

// All that any survivor knew goes to all of them, once everybody has spoken.
void Decisions::take_over(Outbox& out) {
  if (!takes_over_ || not_united_ != 0) return;
  takes_over_ = false;
  Bytes all;
  for (const One& one : remembered_) append(all, one);
  batch_.insert(batch_.begin(), all.begin(), all.end());
  batch_is_awaited_ |= !all.empty();
  send_batch(out);
}

void Decisions::live(uint32_t epoch, uint64_t living, int leader, Outbox& out) {
  if (epoch <= epoch_) return;
  epoch_ = epoch;
  for (const int team : TeamsOf{living & ~living_}) arrived_[size_t(team)] = asked_;  // what was before is in its log
  living_ = living;
  not_united_ &= living;
  const bool changes = leader != leader_;
  leader_ = leader;
  if (leader != team_) asks_no_more();
  takes_over_ |= changes && leader == team_;
  if (changes && leader == team_) {
    not_united_ = living & ~team_bit(team_);
  } else if (changes) {
    Frame frame;
    frame.word = Word::unite, frame.team = uint16_t(team_), frame.epoch = epoch;
    for (const One& one : remembered_) append(frame.payload, one);
    out.emplace_back(leader, std::move(frame));
  }
  const auto early = std::move(united_early_);
  united_early_.clear();
  for (const auto& [team, frame] : early) take(frame, out);
  take_over(out);
}

}  // namespace holdfast::redundant
