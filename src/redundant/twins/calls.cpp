// What the program's threads call.
#include "redundant/twins/twins.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "redundant/subjects.hpp"
#include "redundant/twins/program_thread.hpp"
#include "redundant/unrepeatable.hpp"

namespace holdfast::redundant {

namespace {

constexpr size_t most_noted = 20;

template <class Call>
Bytes bytes_of_call(const Call& call) {
  const auto* const at = reinterpret_cast<const std::byte*>(&call);
  return {at, at + sizeof call};
}

}  // namespace

Bytes Twins::meet(uint64_t subject, const Claim& claim, const std::function<std::string()>& what, const Act& act) {
  const Busy now;
  std::unique_lock lock(mutex_);
  counts_this_thread();
  progress_.calls();
  if (joining_ && claim.looks != 0) {
    lock.unlock();
    return act({.same_view = true});
  }
  if (joining_) join_at(subject, claim, what, lock);
  subject = known_as(subject);
  Outbox out;
  Claim mine = claim;
  if (sent_) sent_->fill(mine);
  meetings_.begin(subject, mine, out);
  const uint32_t successions = successions_;
  decisions_.send_batch(out);
  put(out);
  uint32_t reported = ~uint32_t(0);
  bool is_noted = false;  // what it is about to do
  for (;;) {
    lock.unlock();
    flush();
    lock.lock();
    while (!meetings_.is_settled(subject) && reads_on()) {
    }
    const Meetings::State state = meetings_.state(subject);
    const bool may_be_a_look = claim.looks != 0 || state == Meetings::State::done;
    const bool in_order = !past_ || past_->is_in_order(subject, meetings_.number(subject), may_be_a_look);
    if ((state == Meetings::State::contradicts || !in_order) && !refused_) {
      refuse(what() + " is not what was done there then");
      continue;
    }
    if (state == Meetings::State::done && in_order) {
      if (past_) past_->has_made(subject, meetings_.number(subject));
      pieces_.end(subject, meetings_.number(subject));
      said_ = said_ || is_followed();
      if (orders_.rehearses) report_what_was_otherwise(subject, mine, what);
      return meetings_.end(subject);
    }
    if (state == Meetings::State::differ && reported != meetings_.epoch()) {
      reported = meetings_.epoch();
      report_or_ask(meetings_.claims(subject), what());
      continue;
    }
    const bool may_act = !refused_ && !(past_ && !log_has_come_);
    if (may_act && (state == Meetings::State::act || (state == Meetings::State::differ && goes_on(subject)))) {
      carry_out(subject, claim, act, successions_ != successions, is_noted, lock);
      continue;
    }
    wait_at(subject, meetings_.number(subject), &what, lock);
  }
}

// In the leader, when all have come. `is_noted`: the log says that it is about to.
void Twins::carry_out(uint64_t subject, const Claim& claim, const Act& act, bool again, bool& is_noted, std::unique_lock<std::mutex>& lock) {
  const auto said = meetings_.claims(subject);
  const bool same = std::all_of(said.begin(), said.end(), [&](const auto& one) { return one.second.view == claim.view; });
  const std::optional<Claim> intended = meetings_.intended(subject) ? std::optional(*meetings_.intended(subject)) : std::nullopt;
  const Turn turn{again || intended, same, intended ? &*intended : nullptr};
  if (!is_noted) meetings_.acts(subject);
  is_noted = meetings_.is_alone();
  if (wait_for_followers(lock)) return;
  while (orders_.clock == TeamOrders::Clock::strict && !decisions_.has_arrived()) wait_for_arrival(lock);
  ++acting_;
  lock.unlock();
  if (is_cut_off()) syscall(SYS_exit_group, lost_status);  // it may have slept
  Bytes outcome = act(turn);
  lock.lock();
  --acting_;
  Outbox out;
  meetings_.finish(subject, std::move(outcome), out);
  put(out);
}

// In a rehearsal: with calls that have the same outcome everywhere. Whoever makes another call is lost.
bool Twins::goes_on(uint64_t subject) const {
  const auto said = meetings_.claims(subject);
  return orders_.rehearses && std::all_of(said.begin(), said.end(), [&](const auto& one) { return one.second.same_shape(said[0].second); });
}

// Within meet(), by a leader.
void Twins::begin_append(uint64_t file, uint64_t number) {
  if (place_.ranks == 1) return;
  std::unique_lock lock(mutex_);
  const auto mine = may_append_.emplace(std::pair(file, number), false).first;
  put_about_append(Word::asks_to_append, file, number);
  lock.unlock();
  flush(hub());
  lock.lock();
  changed_.wait(lock, [&] { return mine->second; });
  may_append_.erase(mine);
}

// Others wait for what the leader says. What the rest say matters where it was lost before: it goes with the next call.
void Twins::end_append(uint64_t file, uint64_t number) {
  if (place_.ranks == 1) return;
  const Busy now;
  std::unique_lock lock(mutex_);
  put_about_append(Word::has_appended, file, number);
  const bool leads = meetings_.leads();
  lock.unlock();
  if (leads) flush(hub());
}

void Twins::put_about_append(Word word, uint64_t file, uint64_t number) {
  Frame frame;
  frame.word = word, frame.team = uint16_t(place_.team), frame.rank = uint32_t(place_.rank), frame.subject = file, frame.number = number;
  put(most_teams, frame);
}

// Other ranks may learn of it at once, by where the pointer stands then. So what led to it has to be with all twins first, as before a send.
int64_t Twins::call_pointer(uint64_t file, const PointerCall& call) {
  const Busy now;
  std::unique_lock lock(mutex_);
  counts_this_thread();
  progress_.asks();
  file = known_as(file);
  const uint64_t subject = name_subject(file);
  while (!pointing_.insert(file).second) changed_.wait(lock);
  int64_t before = -1;
  for (Bytes told;;) {
    if (decisions_.next_message(subject, told) == Decisions::Known::yes) {
      if (told.size() == sizeof before) std::memcpy(&before, told.data(), sizeof before);
      break;
    }
    if (decisions_.decides(subject)) {
      wait_until_it_may_tell(lock);
      wait_until_all_has_arrived(lock);
      before = ask_the_hub(Word::pointer, file, decisions_.number(subject) + 1, bytes_of_call(call), lock);
      said_ = true;
      if (decisions_.decided_message(subject, std::as_bytes(std::span(&before, 1))) || is_followed()) send_soon();
      break;
    }
    if (!reads_on()) wait_at(subject, decisions_.number(subject) + 1, nullptr, lock);
  }
  pointing_.erase(file);
  changed_.notify_all();
  return before;
}

bool Twins::call_lock(uint64_t file, const LockedPart& part) {
  if (place_.ranks == 1 || joining_) return true;
  const Busy now;
  std::unique_lock lock(mutex_);
  const uint64_t number = ++locks_called_;
  if (part.what != LockedPart::gives_up) return ask_the_hub(Word::locks, file, number, bytes_of_call(part), lock) != 0;
  put_to_hub(Word::locks, file, number, bytes_of_call(part));
  lock.unlock();
  flush(hub());
  return true;
}

void Twins::put_to_hub(Word word, uint64_t file, uint64_t number, Bytes call) {
  Frame frame;
  frame.word = word, frame.team = uint16_t(place_.team), frame.rank = uint32_t(place_.rank), frame.subject = file, frame.number = number;
  frame.payload = std::move(call);
  put(most_teams, frame);
}

int64_t Twins::ask_the_hub(Word word, uint64_t file, uint64_t number, Bytes call, std::unique_lock<std::mutex>& lock) {
  put_to_hub(word, file, number, std::move(call));
  const HubAnswers::Call mine{word, file, number};
  hub_answers_.expect(mine);
  lock.unlock();
  flush(hub());
  lock.lock();
  std::optional<int64_t> told;
  changed_.wait(lock, [&] { return (told = hub_answers_.fetch(mine)).has_value(); });
  return *told;
}

// One thread after the other.
int64_t Twins::answer_of_failure(uint64_t place, int64_t answer, const std::string& why) {
  if (busy) return answer;
  const Busy now;
  std::unique_lock lock(mutex_);
  while (is_failing_) changed_.wait(lock);
  is_failing_ = true;
  told_of_failure_.reset();
  Frame frame;
  frame.word = Word::failed, frame.team = uint16_t(place_.team), frame.rank = uint32_t(place_.rank), frame.subject = place;
  frame.number = uint64_t(answer), frame.payload = bytes_of(why);
  put(most_teams, frame);
  lock.unlock();
  flush(hub());
  lock.lock();
  changed_.wait(lock, [this] { return told_of_failure_.has_value(); });
  is_failing_ = false;
  changed_.notify_all();
  return *told_of_failure_;
}

// By how many calls it has made, which is the same in all where the program itself is at fault.
void Twins::ends_by_signal(int signal, const std::string& why) {
  constexpr uint64_t place = uint64_t(1) << 44;
  uint64_t calls = 0;
  {
    std::lock_guard lock(mutex_);
    calls = meetings_.calls();
  }
  (void)answer_of_failure(place + calls, -signal, why);
}

// The numbers of calls and decisions begin anew then, in all replicas. A log has them as they were.
std::string Twins::becomes(const std::string& program) {
  constexpr uint64_t subject = uint64_t(1) << 43;
  if (past_ || joining_) cannot_catch_up("it becomes another program, " + program + ", and what that does is not written down");
  (void)meet(
      subject, {.call = uint64_t(1) << 33, .sum = std::hash<std::string>()(program)}, [&] { return "exec of " + program; },
      [](const Turn&) { return Bytes(); });
  const Busy now;
  std::unique_lock lock(mutex_);
  wait_until_all_has_arrived(lock);
  Frame frame;
  frame.word = Word::becomes, frame.team = uint16_t(place_.team), frame.rank = uint32_t(place_.rank), frame.payload = bytes_of(program);
  put(most_teams, frame);
  lock.unlock();
  flush();
  lock.lock();
  changed_.wait(lock, [this] { return may_become_; });
  progress_.becomes_another(place_.team);
  TeamOrders orders = orders_;
  orders.log.clear(), ++orders.image;
  return text_of(orders);
}

// What is to be said of it goes with the next call: nobody waits for it.
void Twins::forget(uint64_t subject) {
  const Busy now;
  std::lock_guard lock(mutex_);
  if (joining_) return;
  Outbox out;
  meetings_.forget(known_as(subject), out);
  put(out);
}

// Where messages before it differ, the others are asked for theirs: the first that differs is what is reported.
void Twins::report_or_ask(const std::vector<std::pair<int, Claim>>& claims, const std::string& what) {
  const bool same = std::all_of(claims.begin(), claims.end(), [&](const auto& one) { return one.second.same_messages(claims[0].second); });
  if (!sent_ || same) return report(claims, what, claims[0].second.sent);
  if (orders_.rehearses && std::exchange(told_of_messages_, true)) {  // sums stay different
    const bool same_else =
        std::all_of(claims.begin(), claims.end(), [&](const auto& one) { return one.second.same_but_for_messages(claims[0].second); });
    return same_else ? void() : report(claims, what, claims[0].second.sent);
  }
  Outbox out;
  sent_->ask(claims, what, meetings_, out);
  put(out);
}

// In a rehearsal, of a team that was started again: the one that it follows has made this call before.
void Twins::report_what_was_otherwise(uint64_t subject, const Claim& mine, const std::function<std::string()>& what) {
  const std::optional<Claim> then = meetings_.claimed_then(subject);
  if (!then || *then == mine) return;
  if (then->same_but_for_messages(mine) && std::exchange(told_of_messages_, true)) return;  // sums stay different
  report({{orders_.follows[0], *then}, {place_.team, mine}}, what());
  flush_soon();
}

void Twins::report_found() {
  if (const auto difference = sent_ ? sent_->found() : std::nullopt) report(difference->claims, difference->what, difference->message + 1);
}

// The hub is the judge: where one of those who differ was lost before, nothing is wrong.
void Twins::report(const std::vector<std::pair<int, Claim>>& claims, const std::string& what, uint64_t after_messages) {
  Frame frame;
  frame.word = Word::differ, frame.team = uint16_t(place_.team), frame.rank = uint32_t(place_.rank), frame.epoch = meetings_.epoch();
  frame.number = claims.size(), frame.subject = after_messages;
  const auto add = [&](const auto& one) {
    const auto* const at = reinterpret_cast<const std::byte*>(&one);
    frame.payload.insert(frame.payload.end(), at, at + sizeof one);
  };
  for (const auto& [team, claim] : claims) add(uint64_t(team)), add(claim);
  const Bytes text = bytes_of(what + said_of_unrepeatable());
  frame.payload.insert(frame.payload.end(), text.begin(), text.end());
  put(most_teams, frame);
}

void Twins::decide(uint64_t subject, ByteSpan answer, Ask ask, void* given) {
  if (busy || joining_ || (orders_.clock == TeamOrders::Clock::own && is_clock(subject))) return ask(given, answer);
  const Busy now;
  if (is_clock(subject)) subject = clock_of_thread(subject, this_program_thread.number);
  std::unique_lock lock(mutex_);
  counts_this_thread();
  progress_.asks();
  for (Awaits awaits;;) {
    if (decisions_.next(subject, answer)) return;
    if (decisions_.decides(subject)) break;
    if (!reads_on()) wait_for_clock(subject, awaits, lock);
  }
  ask(given, answer);
  if (is_followed() || decisions_.awaits_all()) said_ = true, send_soon();
  if (decisions_.decided(subject, answer)) send_soon();
  wait_while_full(lock);
}

Bytes Twins::answer(uint64_t subject, const std::function<Bytes()>& ask) {
  if (busy || joining_) return ask();
  const Busy now;
  std::unique_lock lock(mutex_);
  counts_this_thread();
  progress_.asks();
  Bytes told;
  for (;;) {
    if (decisions_.next_message(subject, told) == Decisions::Known::yes) return told;
    if (decisions_.decides(subject)) break;
    if (!reads_on()) wait_at(subject, decisions_.number(subject) + 1, nullptr, lock);
  }
  lock.unlock();  // a file system may take its time, and twins are heard meanwhile
  told = ask();
  lock.lock();
  said_ = true;
  if (decisions_.decided_message(subject, told) || is_followed()) send_soon();
  wait_while_full(lock);
  return told;
}

// One that asks faster than its twins hear waits for them.
void Twins::wait_while_full(std::unique_lock<std::mutex>& lock) {
  while (decisions_.is_full()) changed_.wait(lock);
}

// Once: others may have sent by clocks that their twins have not heard of.
void Twins::wait_until_it_may_tell(std::unique_lock<std::mutex>& lock) {
  while (!may_tell_ && (keeps() || !decisions_.is_alone())) {
    if (!std::exchange(asks_to_tell_, true)) {
      Frame frame;
      frame.word = Word::asks_to_tell, frame.team = uint16_t(place_.team), frame.rank = uint32_t(place_.rank);
      put(most_teams, frame);
      lock.unlock();
      flush(hub());
      lock.lock();
      continue;
    }
    changed_.wait(lock);
  }
}

void Twins::send_soon() {
  if (sends_soon_) return;
  sends_soon_ = true;
  to_send_.notify_one();
}

void Twins::send_later() {
  if (std::exchange(sends_later_, true) || sends_soon_) return;
  to_send_.notify_one();
}

// A large one goes by another thread, while this one reads the next; but not more of them than wait in memory with profit.
void Twins::give(int team, uint64_t subject, uint64_t index, ByteView head, ByteView bytes) {
  constexpr size_t is_small = 64 << 10, most_waiting = 8;
  const Busy now;
  Way& way = ways_[size_t(team)];
  {
    Frame frame = Pieces::frame(known_as(subject), 0, index, head, bytes);
    std::lock_guard lock(mutex_);
    frame.number = meetings_.number(known_as(subject)) + 1, frame.team = uint16_t(place_.team), frame.epoch = meetings_.epoch();
    if (meetings_.lives(team)) put(team, frame);
    if (bytes.size() > is_small && way.waiting.size() < most_waiting) return flush_soon();
  }
  flush(way);
}

std::optional<Bytes> Twins::take(uint64_t subject, uint64_t index, uint32_t epoch) {
  static const std::function<std::string()> what = [] { return std::string("a read that the replicas share out"); };
  const Busy now;
  std::unique_lock lock(mutex_);
  counts_this_thread();
  subject = known_as(subject);
  for (;;) {
    if (auto piece = pieces_.find(subject, meetings_.number(subject) + 1, index)) return piece;
    if (meetings_.epoch() != epoch) return std::nullopt;
    wait_at(subject, meetings_.number(subject) + 1, &what, lock);
  }
}

void Twins::put_note(const std::string& line, bool warns) {
  const Busy now;
  {
    std::lock_guard lock(mutex_);
    if (noted_.size() >= most_noted || !noted_.insert(line).second) return;
    Frame frame;
    frame.word = Word::note, frame.team = uint16_t(place_.team), frame.rank = uint32_t(place_.rank), frame.number = warns ? 1 : 0;
    frame.payload = bytes_of(line);
    put(most_teams, frame);
  }
  flush(hub());
}

// Under the lock.
Twins::Asked& Twins::will_be_asked_again(uint64_t subject) {
  Asked& asked = all_asked_.try_emplace(subject, subject, decisions_.noes(subject)).first->second;
  lately_asked_[subject % lately_asked_.size()].store(&asked, std::memory_order_release);
  return asked;
}

// A program may ask all the time: without the lock where the answer is no, or this replica's own, or where nobody has said anything since.
Replica::Known Twins::known(uint64_t subject, Bytes& answer) {
  if (joining_) return Known::mine;
  if (Asked* const asked = lately_asked(subject)) {
    counts_this_thread();
    if (asked->noes.repeats()) return Known::no;
    if (asked->noes.is_asked()) return Known::mine;
    if (!past_ && asked->nothing_as_of.load(std::memory_order_relaxed) == frames_heard_.load(std::memory_order_acquire)) return Known::nothing;
  }
  const Busy now;
  std::unique_lock lock(mutex_);
  counts_this_thread();
  do {
    switch (decisions_.next_message(subject, answer)) {
      case Decisions::Known::yes: return Known::yes;
      case Decisions::Known::no: (void)will_be_asked_again(subject); return Known::no;
      case Decisions::Known::nothing: break;
    }
    if (decisions_.decides(subject)) {
      (void)will_be_asked_again(subject);
      return Known::mine;
    }
  } while (reads_on());
  will_be_asked_again(subject).nothing_as_of.store(frames_heard_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  if (says_where_it_is()) {
    lock.unlock();
    flush(hub());
  }
  return Known::nothing;
}

void Twins::say(uint64_t subject, ByteView answer) {
  const Busy now;
  std::unique_lock lock(mutex_);
  if (joining_) return (void)(had_matches_ |= is_about_matches(subject));
  wait_until_it_may_tell(lock);
  said_ = true;
  if (decisions_.decided_message(subject, answer)) send_soon();
  wait_while_full(lock);
}

void Twins::say_no(uint64_t subject) {
  if (Asked* const asked = lately_asked(subject); asked && asked->noes.adds()) return;
  const Busy now;
  std::unique_lock lock(mutex_);
  if (joining_) return;
  wait_until_it_may_tell(lock);
  said_ = true;
  if (decisions_.decided_no(subject)) send_later();
}

void Twins::before_a_send() {
  if (!said_.load(std::memory_order_relaxed)) return;
  const Busy now;
  std::unique_lock lock(mutex_);
  wait_until_all_has_arrived(lock);
}

void Twins::wait_until_all_has_arrived(std::unique_lock<std::mutex>& lock) {
  Outbox out;
  decisions_.send_batch(out);
  put(out);
  while (!decisions_.has_arrived() || !followers_have_all()) wait_for_arrival(lock);
  said_ = false;
}

void Twins::wait_for_arrival(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  flush();
  lock.lock();
  if (!decisions_.has_arrived() || !followers_have_all()) changed_.wait_for(lock, std::chrono::milliseconds(10));
}

void Twins::look_at_sent() {
  const Busy now;
  std::lock_guard lock(mutex_);
  Outbox out;
  sent_->attend(meetings_, out);
  put(out);
  flush_soon();  // by another thread: what is told is not waited for
}

void Twins::compare_at_the_end() {
  constexpr uint64_t subject = uint64_t(1) << 42;
  const auto name = [] { return std::string("MPI_Finalize"); };
  // A team that has resumed compares none, and is waited for all the same.
  if (orders_.compares_messages) (void)meet(subject, {.call = uint64_t(1) << 32, .looks = 1}, name, [](const Turn&) { return Bytes(); });
}

void Twins::wait_a_moment(std::chrono::microseconds most) {
  const Busy now;
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most);
}

void Twins::differs(const std::string& what) {
  if (joining_) cannot_catch_up(what);
  {
    const Busy now;
    std::lock_guard lock(mutex_);
    report({{meetings_.leader(), Claim{.call = 1}}, {place_.team, Claim{.call = 2, .proof = meetings_.proof()}}}, what);
  }
  flush();
  for (;;) pause();
}

// Once: MPI_Abort ends by exit. Another thread that ends the process meanwhile waits until all was said.
void Twins::leaves(bool with_its_team, int code) {
  std::call_once(left_, [&] { leave(with_its_team, code); });
}

// Who has left is not heard any more: all that this replica has said has to be with its twins first. One that has just become a member of theirs may not be
// heard yet, and is not waited for for ever.
void Twins::leave(bool with_its_team, int code) {
  before_a_send();
  const Busy now;
  {
    std::unique_lock lock(mutex_);
    const int64_t until = clock_ms() + int64_t(orders_.deadline_ms);
    Outbox out;
    if (meetings_.is_member()) decisions_.send_last(out);
    put(out);
    while (!decisions_.has_arrived() && clock_ms() < until) wait_for_arrival(lock);
    last_to_followers(lock);
    Frame frame;
    frame.word = Word::leaves, frame.team = uint16_t(place_.team), frame.rank = uint32_t(place_.rank);
    frame.subject = meetings_.calls(), frame.number = with_its_team ? 1 : 0, frame.epoch = uint32_t(code);
    put(most_teams, frame);
  }
  flush();
}

}  // namespace holdfast::redundant
