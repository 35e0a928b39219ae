#include "redundant/decisions/decisions.hpp"

#include <bit>
#include <cstring>

namespace holdfast::redundant {

namespace {

constexpr size_t most_remembered = 1 << 16;  // followers are less apart than that, or the leader has to stop the job

struct Head {
  uint64_t subject, number, bytes;
};

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

bool Decisions::decides(uint64_t subject) const {
  if (leader_ != team_ || not_united_ != 0) return false;
  const auto found = subjects_.find(subject);
  return found == subjects_.end() || found->second.waiting.empty();  // what the leader before has said is repeated first
}

void Decisions::remember(One one) {
  if (teams_ <= 2) return;
  remembered_.push_back(std::move(one));
  if (remembered_.size() > most_remembered) remembered_.pop_front();
}

bool Decisions::decided(uint64_t subject, ByteView answer) {
  const bool first = batch_.empty();
  One one{subject, ++subjects_[subject].known, {answer.begin(), answer.end()}};
  if ((living_ & ~(uint64_t(1) << team_) & ((uint64_t(1) << teams_) - 1)) == 0) return false;  // nobody is left to hear it
  append(batch_, one);
  remember(std::move(one));
  return first;
}

bool Decisions::next(uint64_t subject, ByteSpan answer) {
  const auto found = subjects_.find(subject);
  if (found == subjects_.end() || found->second.waiting.empty() || found->second.waiting.front().size() != answer.size()) return false;
  std::memcpy(answer.data(), found->second.waiting.front().data(), answer.size());
  found->second.waiting.pop_front();
  return true;
}

void Decisions::send_batch(Outbox& out) {
  if (batch_.empty()) return;
  for (int team = 0; team < teams_; ++team) {
    if (team == team_ || !(living_ >> team & 1)) continue;
    Frame frame;
    frame.word = Word::decisions, frame.team = uint16_t(team_), frame.epoch = epoch_;
    frame.payload = batch_;
    out.emplace_back(team, std::move(frame));
  }
  batch_.clear();
}

// What is known already is passed over.
void Decisions::learn(ByteView batch) {
  each(batch, [this](One one) {
    Subject& subject = subjects_[one.subject];
    if (one.number <= subject.known) return;
    torn_ |= one.number != subject.known + 1;
    subject.known = one.number;
    subject.waiting.push_back(one.answer);
    remember(std::move(one));
  });
}

void Decisions::take(const Frame& frame, Outbox& out) {
  if (!(living_ >> frame.team & 1)) return;
  if (frame.word == Word::decisions) learn(frame.payload);
  if (frame.word != Word::unite) return;
  if (frame.epoch > epoch_) {  // it has heard of the loss before this replica
    united_early_[frame.team] = frame;
    return;
  }
  learn(frame.payload);
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
  send_batch(out);
}

void Decisions::live(uint32_t epoch, uint64_t living, int leader, Outbox& out) {
  if (epoch <= epoch_) return;
  epoch_ = epoch;
  living_ = living;
  not_united_ &= living;
  const bool changes = leader != leader_;
  leader_ = leader;
  takes_over_ |= changes && leader == team_;
  if (changes && leader == team_) {
    not_united_ = living & ~(uint64_t(1) << team_) & ((uint64_t(1) << teams_) - 1);
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
