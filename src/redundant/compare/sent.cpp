#include "redundant/compare/sent.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#define XXH_INLINE_ALL  // for short input, and the programs of this room link no library for it
#include <xxhash.h>

namespace holdfast::redundant {

thread_local char SentMessages::mark_of_thread = 0;

namespace {

enum Message : uint64_t { where, differs, asked, answered };
constexpr size_t most_pending = 1024;  // of a twin that is far ahead: of more every other one is kept

}  // namespace

SentMessages::SentMessages(int team) : team_(team), thread_(&mark_of_thread), slots_(std::make_unique<Slot[]>(remembered)) {}

// -------------------------------------------------------------------------------------------------------------------- what is sent

bool SentMessages::record(const SentMessage& message) {
  std::atomic_thread_fence(std::memory_order_release);  // the words of this slot come after the count that says they may be others by now
  const struct {
    uint64_t before, sum, bytes, signature;
    uint32_t communicator, by;
    int32_t peer, tag;
  } all{running_, message.sum, message.bytes, message.signature, message.communicator, message.by->number, message.peer, message.tag};
  running_ = XXH3_64bits(&all, sizeof all);
  const uint64_t number = count_.load(std::memory_order_relaxed);
  auto& words = slots_[number % remembered].words;
  const auto put = [&](size_t i, uint64_t word) { words[i].store(word, std::memory_order_relaxed); };
  put(0, running_);
  put(1, reinterpret_cast<uint64_t>(message.by));
  put(2, uint64_t(uint32_t(message.peer)) << 32 | uint32_t(message.tag));
  put(3, message.communicator);
  put(4, message.bytes);
  count_.store(number + 1, std::memory_order_release);
  return number + 1 >= attention_.load(std::memory_order_relaxed);
}

std::optional<SentMessages::Record> SentMessages::remembers(uint64_t message) const {
  const uint64_t end = count();
  if (message >= end || end - message > remembered) return std::nullopt;
  const auto& words = slots_[message % remembered].words;
  const auto word = [&](size_t i) { return words[i].load(std::memory_order_relaxed); };
  const Record record{word(0), reinterpret_cast<const SentBy*>(word(1)), uint32_t(word(3)), int32_t(word(2) >> 32), int32_t(word(2)), word(4)};
  // The program's thread may have come round meanwhile, and be in the middle of the next one.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (count() - message >= remembered) return std::nullopt;
  return record;
}

std::optional<uint64_t> SentMessages::running_after(uint64_t messages) const {
  if (messages == 0) return 0;
  const auto last = remembers(messages - 1);
  return last ? std::optional(last->running) : std::nullopt;
}

void SentMessages::fill(Claim& claim) const {
  if (!is_by_its_thread()) return;
  claim.sent = count() + 1;
  claim.sent_sum = running_;
}

// -------------------------------------------------------------------------------------------------------------------- where all are

Frame SentMessages::frame(uint64_t kind, uint64_t number, const Meetings& twins) const {
  Frame made;
  made.word = Word::sent, made.team = uint16_t(team_), made.epoch = twins.epoch(), made.subject = kind, made.number = number;
  return made;
}

void SentMessages::tell_where(const Meetings& twins, Outbox& out) {
  const uint64_t messages = count();
  const auto running = running_after(messages);
  if (!running) return;
  for (const int team : TeamsOf{twins.living() & ~team_bit(team_)}) {
    if (!twins.leads() && team != twins.leader()) continue;
    Frame told = frame(where, messages, twins);
    told.payload.resize(sizeof *running);
    std::memcpy(told.payload.data(), &*running, sizeof *running);
    out.emplace_back(team, std::move(told));
  }
}

void SentMessages::attend(const Meetings& twins, Outbox& out) {
  attention_.store(count() + told_every, std::memory_order_relaxed);
  if (twins.is_member()) tell_where(twins, out);
  compare_pending(twins, out);
}

void SentMessages::compare_pending(const Meetings& twins, Outbox& out) {
  uint64_t next = attention_.load(std::memory_order_relaxed);
  for (int team = 0; team < most_teams; ++team) {
    auto& states = pending_[size_t(team)];
    for (; !states.empty() && states.front().first <= count(); states.pop_front()) compare(team, states.front(), twins, out);
    if (!states.empty()) next = std::min(next, states.front().first);
  }
  attention_.store(next, std::memory_order_relaxed);
}

void SentMessages::tick(const Meetings& twins, Outbox& out) {
  attention_.store(0, std::memory_order_relaxed);
  if (question_) ask_who_lacks(twins, out);
}

void SentMessages::compare(int team, const State& theirs, const Meetings& twins, Outbox& out) {
  if (!twins.lives(team)) return;
  const auto mine = running_after(theirs.first);  // nothing: that twin is far behind, and looks at ours when it comes there
  if (mine && *mine != theirs.second) differs_after(theirs.first, twins, out);
}

// -------------------------------------------------------------------------------------------------------------------- a difference

void SentMessages::differs_after(uint64_t messages, const Meetings& twins, Outbox& out) {
  if (!twins.leads()) {
    if (!std::exchange(told_differs_, true)) out.emplace_back(twins.leader(), frame(differs, messages, twins));
    return;
  }
  if (question_) return;
  std::vector<std::pair<int, Claim>> claims;
  for (const int team : TeamsOf{twins.living()}) claims.emplace_back(team, Claim{.sent = messages + 1});
  ask(claims, "", twins, out);
}

void SentMessages::ask(const std::vector<std::pair<int, Claim>>& claims, const std::string& before, const Meetings& twins, Outbox& out) {
  question_.emplace();
  question_->before = before;
  if (!before.empty()) question_->claims = claims;
  for (const auto& [team, claim] : claims) question_->until.emplace_back(team, claim.sent - 1);
  question_->answers[size_t(team_)] = all_remembered();
  ask_who_lacks(twins, out);
}

void SentMessages::ask_who_lacks(const Meetings& twins, Outbox& out) {
  if (question_->is_answered) return;
  for (const auto& [team, until] : question_->until) {
    const auto& answer = question_->answers[size_t(team)];
    if (team != team_ && (!answer || answer->end < until)) out.emplace_back(team, frame(asked, until, twins));
  }
}

SentMessages::Answer SentMessages::all_remembered() const {
  Answer answer;
  answer.end = count();
  answer.first = answer.end - std::min(answer.end, remembered);
  for (uint64_t message = answer.first; message < answer.end; ++message) {
    const auto record = remembers(message);
    if (!record) {  // overtaken by the program
      answer.first = message + 1;
      answer.told.clear();
      continue;
    }
    Told told{record->running, record->bytes, record->peer, record->tag, record->communicator, 0, {}};
    std::strncpy(told.call, record->by->name, sizeof told.call - 1);
    answer.told.push_back(told);
  }
  return answer;
}

void SentMessages::take(const Frame& came, const Meetings& twins, Outbox& out) {
  const int team = came.team;
  if (team >= most_teams || team == team_ || !twins.lives(team)) return;
  if (came.subject == where && came.payload.size() == sizeof(uint64_t)) {
    State theirs{came.number, 0};
    std::memcpy(&theirs.second, came.payload.data(), sizeof theirs.second);
    auto& states = pending_[size_t(team)];
    states.push_back(theirs);
    if (states.size() > most_pending)
      for (size_t i = 0; i + 1 < states.size(); ++i) states.erase(states.begin() + ptrdiff_t(i));
    compare_pending(twins, out);
  } else if (came.subject == differs && twins.leads()) {
    differs_after(came.number, twins, out);
  } else if (came.subject == asked) {
    const Answer answer = all_remembered();
    Frame told = frame(answered, answer.end, twins);
    const auto* at = reinterpret_cast<const std::byte*>(answer.told.data());
    told.payload.assign(at, at + answer.told.size() * sizeof(Told));
    out.emplace_back(team, std::move(told));
  } else if (came.subject == answered && question_) {
    Answer answer;
    answer.told.resize(came.payload.size() / sizeof(Told));
    if (!answer.told.empty()) std::memcpy(answer.told.data(), came.payload.data(), answer.told.size() * sizeof(Told));
    answer.end = came.number;
    answer.first = answer.end - std::min<uint64_t>(answer.end, answer.told.size());
    question_->answers[size_t(team)] = std::move(answer);
  }
}

// What was found with one that is lost means nothing. A difference between those that are left is found again.
void SentMessages::live(const Meetings& twins) {
  question_.reset();
  told_differs_ = false;
  for (int team = 0; team < most_teams; ++team)
    if (!twins.lives(team)) pending_[size_t(team)].clear();
  attention_.store(0, std::memory_order_relaxed);
}

// -------------------------------------------------------------------------------------------------------------------- its name

bool SentMessages::all_have_answered() const {
  return std::all_of(question_->until.begin(), question_->until.end(), [&](const auto& one) {
    const auto& answer = question_->answers[size_t(one.first)];
    return answer && answer->end >= one.second;
  });
}

std::pair<uint64_t, uint64_t> SentMessages::known_to_all() const {
  uint64_t first = 0, end = ~uint64_t(0);
  for (const auto& [team, until] : question_->until) {
    first = std::max(first, question_->of(team).first);
    end = std::min(end, question_->of(team).end);
  }
  return {first, end};
}

std::optional<SentMessages::Difference> SentMessages::found() {
  if (!question_ || question_->is_answered || !all_have_answered()) return std::nullopt;
  const auto [first, end] = known_to_all();
  if (first >= end && question_->claims.empty()) {  // they run on, and too far apart: all are asked once more
    question_->answers = {};
    question_->answers[size_t(team_)] = all_remembered();
    return std::nullopt;
  }
  question_->is_answered = true;
  return name();
}

std::string SentMessages::text(const Told& told) {
  std::string text(told.call, strnlen(told.call, sizeof told.call));
  if (told.peer != SentMessage::none && told.tag != SentMessage::none) text += fmt::format(" to rank {} with tag {}", told.peer, told.tag);
  else if (told.peer != SentMessage::none) text += fmt::format(" with root {}", told.peer);
  return text + fmt::format(", {} bytes on communicator {}", told.bytes, told.communicator);
}

// Two sums that differ once differ ever after: the last one that all know shows who is of one mind.
SentMessages::Difference SentMessages::name() const {
  const auto [first, end] = known_to_all();
  const auto told = [&](int team, uint64_t message) { return question_->of(team).at(message); };
  const auto same = [&](uint64_t message) {
    const uint64_t known = told(question_->until[0].first, message)->running;
    return std::all_of(question_->until.begin(), question_->until.end(), [&](const auto& one) { return told(one.first, message)->running == known; });
  };
  uint64_t message = std::min(first, end);
  while (message < end && same(message)) ++message;

  Difference difference{question_->claims, {}, message};
  std::vector<std::string> texts;
  for (const auto& [team, until] : question_->until) {
    if (question_->claims.empty()) difference.claims.emplace_back(team, Claim{.call = 1, .at = message, .sum = told(team, end - 1)->running});
    const Told* const one = told(team, message);
    texts.push_back(one ? text(*one) : message < question_->of(team).end ? "one that is not remembered" : "none");
  }
  difference.what = fmt::format("message {} of those that it sends{} is ", message + 1, first > 0 && message == first ? ", or one before," : "");
  if (std::all_of(texts.begin(), texts.end(), [&](const std::string& one) { return one == texts[0]; })) difference.what += texts[0];
  else
    for (size_t i = 0; i < texts.size(); ++i)
      difference.what += fmt::format("{}{} in team {}", i == 0 ? "" : " and ", texts[i], question_->until[i].first);
  if (!question_->before.empty()) difference.what += "; seen before " + question_->before;
  return difference;
}

}  // namespace holdfast::redundant
