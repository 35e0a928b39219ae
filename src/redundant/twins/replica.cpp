#include "redundant/twins/replica.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include "base/host_name.hpp"
#include "base/own_numbers.hpp"
#include "base/quiet_thread.hpp"
#include "redundant/compare/sent.hpp"
#include "redundant/decisions/decisions.hpp"
#include "redundant/log/catch_up.hpp"
#include "redundant/pieces/pieces.hpp"
#include "redundant/twins/sharing.hpp"
#include "redundant/twins/way.hpp"
#include "transport/link.hpp"
#include "transport/server.hpp"

namespace holdfast::redundant {

std::atomic<Replica*> Replica::now_{nullptr};

namespace {

constexpr int lost_status = 121;
constexpr const char* cut_log = "what was done then is written down in part, for the log had no more room";
constexpr auto batch_time = std::chrono::milliseconds(1);
constexpr auto alive_time = std::chrono::milliseconds(1000);
constexpr auto look_time = std::chrono::milliseconds(100);  // at what was sent
constexpr size_t most_noted = 20;
constexpr size_t most_unsent = 4 << 20;  // bytes of the leader's answers: one that asks faster than its twins hear waits for them

// This thread is in a call below: a signal's handler that asks for the time again must not wait for it.
thread_local bool busy __attribute__((tls_model("initial-exec"))) = false;
struct Busy {
  Busy() { busy = true; }
  ~Busy() { busy = false; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
};

class Twins final : public Replica, public Sharing {
 public:
  Twins(const TeamOrders& orders, int rank, int ranks)
      : orders_(orders),
        place_{orders.team, orders.teams, rank, ranks},
        own_log_(orders.log_bytes),
        their_log_(orders.log_bytes),
        keeper_(own_log_),
        meetings_(orders.team, first_living(orders), keeps() ? &keeper_ : nullptr),
        decisions_(orders.team, first_living(orders), meetings_.leader(), keeps() ? &keeper_ : nullptr) {
    if (orders.compares_messages) sent_ = std::make_unique<SentMessages>(orders.team);
    if (!orders.follows.empty()) past_.emplace([this] { return their_log_.next(); }, keeper_);
  }

  Status begin();
  const Place& place() const override { return place_; }
  bool leads() override {
    std::lock_guard lock(mutex_);
    return meetings_.leads() && meetings_.learned() == 0;
  }
  Bytes meet(uint64_t subject, const Claim& claim, const std::function<std::string()>& what, const Act& act) override;
  void decide(uint64_t subject, ByteSpan answer, Ask ask, void* given) override;
  Known known(uint64_t subject, Bytes& answer) override;
  void say(uint64_t subject, ByteView answer) override;
  void say_no(uint64_t subject) override;
  void before_a_send() override;
  void wait_a_moment() override;
  [[noreturn]] void differs(const std::string& what) override;
  bool shares_node() const override { return orders_.reach != transport::Reach::network; }
  bool is_alone() override {
    std::lock_guard lock(mutex_);
    return meetings_.is_alone() && !keeps();  // one that comes has to be told as well
  }
  uint32_t successions() override {
    std::lock_guard lock(mutex_);
    return successions_;
  }
  void leaves(bool with_its_team) override;
  SentMessages* sent() override { return sent_.get(); }
  void sent_note(const char* line) override { note(line); }
  void look_at_sent() override;
  void compare_at_the_end() override;
  Living living() override {
    std::lock_guard lock(mutex_);
    return {meetings_.is_member() ? meetings_.living() : team_bit(place_.team), meetings_.epoch()};
  }
  void give(int team, uint64_t subject, uint64_t index, ByteView piece) override;
  std::optional<Bytes> take(uint64_t subject, uint64_t index, uint32_t epoch) override;
  void note(const std::string& line) override;
  bool is_kept() override { return keeps(); }
  std::optional<Claim> claimed_then(uint64_t subject) override;
  void keep_read(uint64_t subject, ByteView bytes) override;
  std::optional<Bytes> read_then(uint64_t subject) override;
  bool is_behind() override;
  [[noreturn]] void cannot_catch_up(const std::string& why) override;
  void in_child();

 private:
  static uint64_t first_living(const TeamOrders& orders) { return orders.follows.empty() ? first_teams(orders.teams) : team_bit(orders.follows[0]); }
  bool keeps() const { return !orders_.log.empty(); }
  Way& hub() { return ways_[most_teams]; }
  Status make_logs();
  void open_logs();
  // Of a team that was started again; under the mutex.
  bool follows() const { return past_ && past_->follows(); }
  bool reads_on();
  bool is_near() const;
  void read_all();
  bool has_unread() const { return (follows() && !their_log_.at_end()) || meetings_.learned() + decisions_.learned() > 0; }
  bool says_where_it_is();
  void wait_for_more(std::unique_lock<std::mutex>& lock);
  void wait_for_arrival(std::unique_lock<std::mutex>& lock);
  void refuse(const std::string& why);
  uint64_t behind_ms() const;
  void hear(int way);
  bool read_from(int way);
  void came(int way, const Frame& frame);
  void meet_twins(const std::string& paragraphs);
  void live(const Frame& frame);
  void put(Outbox& out);
  void put(int way, const Frame& frame);
  void flush();
  void flush(Way& way) { (void)way.flush(mutex_, true); }
  void flush_while_hearing();
  void serve_flushing();
  void serve_sending();
  void serve_alive();
  void look_now();
  void hub_is_lost();
  bool all_there() const;
  void report(const std::vector<std::pair<int, Claim>>& claims, const std::string& what, uint64_t after_messages = 0);
  void report_or_ask(const std::vector<std::pair<int, Claim>>& claims, const std::string& what);
  void report_found();
  void send_soon();  // under the mutex
  void flush_soon() {
    flushes_soon_ = true;
    to_flush_.notify_one();
  }

  const TeamOrders orders_;
  const Place place_;
  LogFile own_log_, their_log_;
  LogKeeper keeper_;
  std::optional<CatchUp> past_;
  bool told_that_caught_up_ = false, told_that_log_ends_ = false, refused_ = false;
  std::mutex mutex_;
  std::condition_variable changed_, to_send_, to_flush_;
  Meetings meetings_;
  Decisions decisions_;
  Pieces pieces_;
  std::unique_ptr<SentMessages> sent_;  // none where messages are not compared
  std::set<std::string> noted_;
  std::string no_place_;                  // in the job: why
  std::array<Way, most_teams + 1> ways_;  // to the teams; the last one to the hub
  bool introduced_ = false, sends_soon_ = false, flushes_soon_ = false;
  std::atomic<bool> said_{false};  // something about messages, which may not have arrived
  uint32_t successions_ = 0;
  transport::Server server_;
};

// -------------------------------------------------------------------------------------------------------------------- the program's threads

Bytes Twins::meet(uint64_t subject, const Claim& claim, const std::function<std::string()>& what, const Act& act) {
  const Busy now;
  std::unique_lock lock(mutex_);
  Outbox out;
  Claim mine = claim;
  if (sent_) sent_->fill(mine);
  meetings_.begin(subject, mine, out);
  const uint32_t successions = successions_;
  decisions_.send_batch(out);
  put(out);
  uint32_t reported = ~uint32_t(0);
  for (;;) {
    lock.unlock();
    flush();
    lock.lock();
    while (!meetings_.is_settled(subject) && reads_on()) {
    }
    const Meetings::State state = meetings_.state(subject);
    if (state == Meetings::State::contradicts && !refused_) {
      refuse(what() + " is not what was done there then");
      continue;
    }
    if (state == Meetings::State::done) {
      pieces_.end(subject, meetings_.number(subject));
      return meetings_.end(subject);
    }
    if (state == Meetings::State::act) {
      const auto said = meetings_.claims(subject);
      const bool same = std::all_of(said.begin(), said.end(), [&](const auto& one) { return one.second.view == claim.view; });
      const std::optional<Claim> intended = meetings_.intended(subject) ? std::optional(*meetings_.intended(subject)) : std::nullopt;
      const Turn turn{successions_ != successions || intended, same, intended ? &*intended : nullptr};
      meetings_.acts(subject);
      lock.unlock();
      Bytes outcome = act(turn);
      lock.lock();
      meetings_.finish(subject, std::move(outcome), out);
      put(out);
      continue;
    }
    if (state == Meetings::State::differ && reported != meetings_.epoch()) {
      reported = meetings_.epoch();
      report_or_ask(meetings_.claims(subject), what());
      continue;
    }
    wait_for_more(lock);
  }
}

// Where messages before it differ, the others are asked for theirs: the first that differs is what is reported.
void Twins::report_or_ask(const std::vector<std::pair<int, Claim>>& claims, const std::string& what) {
  const bool same = std::all_of(claims.begin(), claims.end(), [&](const auto& one) { return one.second.same_messages(claims[0].second); });
  if (!sent_ || same) return report(claims, what, claims[0].second.sent);
  Outbox out;
  sent_->ask(claims, what, meetings_, out);
  put(out);
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
  const Bytes text = bytes_of(what);
  frame.payload.insert(frame.payload.end(), text.begin(), text.end());
  put(most_teams, frame);
}

void Twins::decide(uint64_t subject, ByteSpan answer, Ask ask, void* given) {
  if (busy) return ask(given, answer);
  const Busy now;
  std::unique_lock lock(mutex_);
  for (;;) {
    if (decisions_.next(subject, answer)) return;
    if (decisions_.decides(subject)) break;
    if (!reads_on()) wait_for_more(lock);
  }
  ask(given, answer);
  if (decisions_.decided(subject, answer)) send_soon();
  while (decisions_.unsent_bytes() > most_unsent) changed_.wait(lock);
}

void Twins::send_soon() {
  if (sends_soon_) return;
  sends_soon_ = true;
  to_send_.notify_one();
}

// -------------------------------------------------------------------------------------------------------------------- pieces

void Twins::give(int team, uint64_t subject, uint64_t index, ByteView piece) {
  const Busy now;
  {
    std::lock_guard lock(mutex_);
    Frame frame = Pieces::frame(subject, meetings_.number(subject) + 1, index, piece);
    frame.team = uint16_t(place_.team), frame.epoch = meetings_.epoch();
    if (meetings_.lives(team)) put(team, frame);
  }
  flush(ways_[size_t(team)]);
}

std::optional<Bytes> Twins::take(uint64_t subject, uint64_t index, uint32_t epoch) {
  const Busy now;
  std::unique_lock lock(mutex_);
  for (;;) {
    if (auto piece = pieces_.find(subject, meetings_.number(subject) + 1, index)) return piece;
    if (meetings_.epoch() != epoch) return std::nullopt;
    changed_.wait(lock);
  }
}

void Twins::note(const std::string& line) {
  const Busy now;
  {
    std::lock_guard lock(mutex_);
    if (noted_.size() >= most_noted || !noted_.insert(line).second) return;
    Frame frame;
    frame.word = Word::note, frame.team = uint16_t(place_.team), frame.rank = uint32_t(place_.rank);
    frame.payload = bytes_of(line);
    put(most_teams, frame);
  }
  flush(hub());
}

// -------------------------------------------------------------------------------------------------------------------- messages

Replica::Known Twins::known(uint64_t subject, Bytes& answer) {
  const Busy now;
  std::unique_lock lock(mutex_);
  do {
    switch (decisions_.next_message(subject, answer)) {
      case Decisions::Known::yes: return Known::yes;
      case Decisions::Known::no: return Known::no;
      case Decisions::Known::nothing: break;
    }
    if (decisions_.decides(subject)) return Known::mine;
  } while (reads_on());
  if (says_where_it_is()) {
    lock.unlock();
    flush(hub());
  }
  return Known::nothing;
}

void Twins::say(uint64_t subject, ByteView answer) {
  const Busy now;
  std::unique_lock lock(mutex_);
  said_ = true;
  if (decisions_.decided_message(subject, answer)) send_soon();
}

void Twins::say_no(uint64_t subject) {
  const Busy now;
  std::unique_lock lock(mutex_);
  said_ = true;
  if (decisions_.decided_no(subject)) send_soon();
}

void Twins::before_a_send() {
  if (!said_.load(std::memory_order_relaxed)) return;
  const Busy now;
  std::unique_lock lock(mutex_);
  Outbox out;
  decisions_.send_batch(out);
  put(out);
  while (!decisions_.has_arrived()) wait_for_arrival(lock);
  said_ = false;
}

void Twins::wait_for_arrival(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  flush();
  lock.lock();
  if (!decisions_.has_arrived()) changed_.wait_for(lock, std::chrono::milliseconds(10));
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
  if (sent_) (void)meet(subject, {.call = uint64_t(1) << 32}, name, [](const Turn&) { return Bytes(); });
}

void Twins::wait_a_moment() {
  const Busy now;
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::microseconds(100));
}

void Twins::differs(const std::string& what) {
  {
    const Busy now;
    std::lock_guard lock(mutex_);
    report({{meetings_.leader(), Claim{.call = 1}}, {place_.team, Claim{.call = 2}}}, what);
  }
  flush();
  for (;;) pause();
}

// Who has left is not heard any more: all that this replica has said has to be with its twins first. One that has just become a member of theirs may not be
// heard yet, and is not waited for for ever.
void Twins::leaves(bool with_its_team) {
  before_a_send();
  const Busy now;
  {
    std::unique_lock lock(mutex_);
    const int64_t until = clock_ms() + int64_t(orders_.deadline_ms);
    Outbox out;
    if (meetings_.is_member()) decisions_.send_last(out);
    put(out);
    while (!decisions_.has_arrived() && clock_ms() < until) wait_for_arrival(lock);
    Frame frame;
    frame.word = Word::leaves, frame.team = uint16_t(place_.team), frame.rank = uint32_t(place_.rank);
    frame.subject = meetings_.calls(), frame.number = with_its_team ? 1 : 0;
    put(most_teams, frame);
  }
  flush();
}

// -------------------------------------------------------------------------------------------------------------------- what was before

// In all teams alike, so that the program's memory lies at the same addresses.
Status Twins::make_logs() {
  if (!keeps()) return Status();
  HF_TRY(their_log_.set_aside());
  HF_TRY(own_log_.make(log_path(orders_.log, place_.team, place_.rank)));
  if (!past_) own_log_.set_whole();
  return Status();
}

// Logs of teams that are lost, as far as the next one goes by them, are read now: they do not grow any more.
void Twins::open_logs() {
  size_t first = 0;
  for (; first + 1 < orders_.follows.size(); ++first) {
    LogFile one(orders_.log_bytes);
    if (one.set_aside().ok() && one.open(log_path(orders_.log, orders_.follows[first], place_.rank)).ok() && one.is_whole()) break;
  }
  for (; first > 0; --first) {
    LogFile one(orders_.log_bytes);
    if (!one.set_aside().ok() || !one.open(log_path(orders_.log, orders_.follows[first], place_.rank)).ok()) continue;
    CatchUp earlier([&] { return one.next(); }, keeper_);
    earlier.take_all(meetings_, decisions_);
    if (one.is_cut()) refuse(cut_log);
  }
  if (const Status opened = their_log_.open(log_path(orders_.log, orders_.follows[0], place_.rank)); !opened) refuse(opened.sentence());
}

// What happens from now on this process hears of, or does itself.
void Twins::read_all() {
  if (!follows()) return;
  past_->take_all(meetings_, decisions_);
  if (their_log_.is_cut()) refuse(cut_log);
  own_log_.set_whole();
}

void Twins::refuse(const std::string& why) {
  if (std::exchange(refused_, true)) return;
  Frame frame;
  frame.word = Word::refused, frame.team = uint16_t(place_.team), frame.rank = uint32_t(place_.rank);
  frame.payload = bytes_of(why);
  put(most_teams, frame);
}

void Twins::cannot_catch_up(const std::string& why) {
  {
    const Busy now;
    std::lock_guard lock(mutex_);
    refuse(why);
  }
  flush();
  for (;;) pause();
}

// One that is as fast as the one that it follows never comes to the end: it is near enough when that one need not wait long for it.
bool Twins::is_near() const {
  constexpr size_t few = 8;
  constexpr int64_t soon_ms = 100;
  return meetings_.learned() + decisions_.learned() <= few && clock_ms() - past_->read_until_ms() <= soon_ms;
}

bool Twins::reads_on() {
  if (!follows() || !past_->take_one(meetings_, decisions_)) return false;
  if (!told_that_caught_up_ && is_near() && says_where_it_is()) {
    flush_soon();
  }
  return true;
}

// True: something is to be sent.
bool Twins::says_where_it_is() {
  if (!follows() || (meetings_.learned() + decisions_.learned() > 0 && !is_near())) return false;
  if (their_log_.is_cut()) refuse(cut_log);
  if (std::exchange(told_that_caught_up_, true)) return refused_;
  Frame frame;
  frame.word = Word::caught_up, frame.team = uint16_t(place_.team), frame.rank = uint32_t(place_.rank);
  put(most_teams, frame);
  return true;
}

// A log tells nobody that it has grown.
void Twins::wait_for_more(std::unique_lock<std::mutex>& lock) {
  if (!follows()) return changed_.wait(lock);
  if (says_where_it_is()) {
    lock.unlock();
    flush(hub());
    lock.lock();
  }
  changed_.wait_for(lock, std::chrono::milliseconds(1));
}

uint64_t Twins::behind_ms() const {
  if (!past_ || !has_unread()) return 0;
  return past_->read_until_ms() == 0 ? 0 : uint64_t(std::max<int64_t>(clock_ms() - past_->read_until_ms(), 0));
}

bool Twins::is_behind() {
  if (!past_) return false;
  const Busy now;
  std::lock_guard lock(mutex_);
  return has_unread() || (follows() && !told_that_caught_up_);  // one that slept would stay behind by that
}

std::optional<Claim> Twins::claimed_then(uint64_t subject) {
  const Busy now;
  std::lock_guard lock(mutex_);
  return meetings_.claimed_then(subject);
}

void Twins::keep_read(uint64_t subject, ByteView bytes) {
  const Busy now;
  std::lock_guard lock(mutex_);
  keeper_.bytes(subject, meetings_.number(subject), bytes);
}

std::optional<Bytes> Twins::read_then(uint64_t subject) {
  const Busy now;
  std::unique_lock lock(mutex_);
  for (;;) {
    if (auto bytes = past_->bytes(subject, meetings_.number(subject))) return bytes;
    if (reads_on()) continue;
    if (!follows() || their_log_.is_cut()) return std::nullopt;
    changed_.wait_for(lock, std::chrono::milliseconds(1));  // its twin is about to write it down
  }
}

// -------------------------------------------------------------------------------------------------------------------- what is sent

// Under the lock.
void Twins::put(int way, const Frame& frame) {
  const bool comes = way < most_teams && meetings_.lives(way);  // one that was started again, and has called
  if (ways_[size_t(way)].socket || comes) ways_[size_t(way)].waiting.push_back(encode(frame));
}

void Twins::put(Outbox& out) {
  for (const auto& [team, frame] : out) put(team, frame);
  out.clear();
}

// The hub first: a twin that hangs holds up what is sent to it.
void Twins::flush() {
  flush(hub());
  for (Way& way : ways_) flush(way);
}

// By the thread that listens. It must not wait for a twin that hears: two that waited for each other so would hear nothing any more.
void Twins::flush_while_hearing() {
  bool all = hub().flush(mutex_, false);
  for (Way& way : ways_) all &= way.flush(mutex_, false);
  if (all) return;
  std::lock_guard lock(mutex_);
  flush_soon();
}

void Twins::serve_flushing() {
  std::unique_lock lock(mutex_);
  for (;;) {
    to_flush_.wait(lock, [this] { return flushes_soon_; });
    flushes_soon_ = false;
    lock.unlock();
    flush();
    lock.lock();
  }
}

// Answers of the world gather for a moment.
void Twins::serve_sending() {
  std::unique_lock lock(mutex_);
  for (;;) {
    to_send_.wait(lock, [this] { return sends_soon_; });
    lock.unlock();
    const timespec pause{0, std::chrono::nanoseconds(batch_time).count()};
    nanosleep(&pause, nullptr);
    lock.lock();
    sends_soon_ = false;
    Outbox out;
    decisions_.send_batch(out);
    put(out);
    changed_.notify_all();
    lock.unlock();
    flush();
    lock.lock();
  }
}

// At the program's next message it says how far it is.
void Twins::look_now() {
  {
    std::lock_guard lock(mutex_);
    Outbox out;
    sent_->tick(meetings_, out);
    report_found();
    put(out);
  }
  flush();
}

// Now and then the hub hears that this process lives. By a thread of its own: others may be held up by a twin that does not hear.
void Twins::serve_alive() {
  for (unsigned round = 1;; ++round) {
    std::this_thread::sleep_for(sent_ ? look_time : alive_time);
    if (sent_) look_now();
    if (sent_ && round % unsigned(alive_time / look_time) != 0) continue;
    {
      std::lock_guard lock(mutex_);
      Frame alive;
      alive.number = behind_ms();
      put(most_teams, alive);
      if (keeps() && own_log_.is_cut() && !std::exchange(told_that_log_ends_, true)) {
        Frame ends;
        ends.word = Word::log_ends;
        ends.team = uint16_t(place_.team), ends.rank = uint32_t(place_.rank);
        ends.payload = bytes_of("the log of the job in " + orders_.log + " has no more room");
        put(most_teams, ends);
      }
    }
    flush(hub());
  }
}

// -------------------------------------------------------------------------------------------------------------------- what comes

void Twins::hear(int way) {
  server_.watch(ways_[size_t(way)].socket.get(), [this, way] { return read_from(way); });
}

// The thread that listens. True always: it listens as long as the process lives.
bool Twins::read_from(int number) {
  Way& way = ways_[size_t(number)];
  static thread_local std::array<std::byte, 256 << 10> buffer;
  const ssize_t got = recv(way.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got > 0 && way.reader.add(ByteView(buffer.data(), size_t(got)))) {
    while (auto frame = way.reader.next()) came(number, *frame);
    flush_while_hearing();
    return true;
  }
  server_.forget(way.socket.get());
  if (number == most_teams) hub_is_lost();
  return true;  // a twin's end means nothing until the hub says so
}

void Twins::came(int way, const Frame& frame) {
  if (way == most_teams && frame.word == Word::twins) return meet_twins(std::string(text_of(frame.payload)));
  if (frame.word == Word::end) (void)::kill(getpid(), SIGKILL);
  std::lock_guard lock(mutex_);
  Outbox out;
  if (way < most_teams && follows())
    while (reads_on()) {  // what stands in the log was before what is heard
    }
  if (way < most_teams && frame.word == Word::welcome) read_all();
  if (way == most_teams && frame.word == Word::lives) live(frame);
  else if (way == most_teams && frame.word == Word::refused) no_place_ = text_of(frame.payload);
  else if (way == most_teams) return;
  else if (frame.word == Word::decisions || frame.word == Word::unite || frame.word == Word::arrived) decisions_.take(frame, out);
  else if (frame.word == Word::sent) {
    if (sent_) sent_->take(frame, meetings_, out), report_found();
  } else if (frame.word == Word::piece) {
    if (meetings_.lives(frame.team)) pieces_.take(frame, meetings_.number(frame.subject));
  } else meetings_.take(frame, out);
  put(out);
  changed_.notify_all();
}

// Under the lock.
void Twins::live(const Frame& frame) {
  const int before = meetings_.leader();
  if (past_ && !introduced_) return;  // it is told again then
  if (follows() && !(frame.subject & team_bit(before))) read_all();
  Outbox out;
  const uint32_t epoch = meetings_.epoch();
  meetings_.live(frame.epoch, frame.subject, out);
  if (sent_ && meetings_.epoch() != epoch) sent_->live(meetings_);
  decisions_.live(frame.epoch, meetings_.living(), meetings_.leader(), out);
  if (meetings_.leader() != before) ++successions_, said_ = true;
  put(out);
}

// Those of the teams before this one are called; those behind it call.
void Twins::meet_twins(const std::string& paragraphs) {
  std::istringstream lines(paragraphs);
  int team = 0;
  std::string endpoints;
  for (std::string line; std::getline(lines, line) && team < most_teams;) {
    if (!line.empty()) {
      endpoints += line + "\n";
      continue;
    }
    transport::Link link;
    const bool wanted = team < place_.team && !endpoints.empty();
    if (wanted && link.connect(endpoints, agreement(orders_.secret), orders_.deadline_ms).ok()) {
      Way& way = ways_[size_t(team)];
      raw::Fd socket = raw::out_of_the_way(raw::Fd(raw::fcntl(link.descriptor(), F_DUPFD_CLOEXEC)));
      transport::notice_a_dead_peer(socket.get());
      Frame who;
      who.word = Word::who, who.team = uint16_t(place_.team);
      {
        std::lock_guard lock(mutex_);
        way.socket = std::move(socket);
        put(team, who);
      }
      flush(way);
      hear(team);
    }
    endpoints.clear();
    ++team;
  }
  std::lock_guard lock(mutex_);
  if (past_ && !introduced_) open_logs();
  introduced_ = true;
  changed_.notify_all();
}

// It may have been declared dead and nobody could say so.
void Twins::hub_is_lost() {
  const timespec pause{time_t(orders_.deadline_ms / 1000), long(orders_.deadline_ms % 1000) * 1000000};
  nanosleep(&pause, nullptr);
  syscall(SYS_exit_group, lost_status);
}

// -------------------------------------------------------------------------------------------------------------------- beginning and end

bool Twins::all_there() const {
  if (!introduced_) return false;
  for (int team = 0; team < most_teams; ++team)
    if (team != place_.team && meetings_.lives(team) && !ways_[size_t(team)].socket) return false;
  return true;
}

Status Twins::begin() {
  HF_TRY(make_logs());
  transport::Link link;
  HF_TRY(link.connect(orders_.hub, agreement(orders_.secret), orders_.deadline_ms));
  hub().socket = raw::out_of_the_way(raw::Fd(raw::fcntl(link.descriptor(), F_DUPFD_CLOEXEC)));
  const std::string endpoints = server_.listen(orders_.reach, agreement(orders_.secret));
  server_.welcome = [this](raw::Fd& socket, ByteView early) -> std::unique_ptr<transport::Conversation> {
    const std::optional<Frame> who = first_frame(socket.get(), early, orders_.deadline_ms);
    if (!who || who->word != Word::who || who->team >= most_teams || int(who->team) == place_.team || ways_[who->team].socket) return nullptr;
    {
      std::lock_guard lock(mutex_);
      ways_[who->team].socket = raw::out_of_the_way(raw::Fd(raw::fcntl(socket.get(), F_DUPFD_CLOEXEC)));
    }
    hear(who->team);
    changed_.notify_all();
    flush_while_hearing();
    return nullptr;
  };
  hear(most_teams);
  Frame frame;
  frame.word = Word::join, frame.team = uint16_t(place_.team), frame.rank = uint32_t(place_.rank);
  frame.number = uint64_t(place_.ranks), frame.subject = uint64_t(getpid());
  frame.payload = bytes_of(host_name() + "\n" + endpoints);
  {
    std::lock_guard lock(mutex_);
    put(most_teams, frame);
  }
  flush();
  if (!start_quiet_thread([this] { server_.run(); }) || !start_quiet_thread([this] { serve_sending(); }) ||
      !start_quiet_thread([this] { serve_alive(); }) || !start_quiet_thread([this] { serve_flushing(); }))
    return Status(Kind::io, "no thread can be started");
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return all_there() || !no_place_.empty(); });
  return no_place_.empty() ? Status() : Status(Kind::invalid, no_place_);
}

// A child of fork is no replica: it has no threads, and the connections are its parent's.
void Twins::in_child() {
  now_.store(nullptr);
  for (Way& way : ways_)
    if (way.socket) raw::close(way.socket.get());
}

Twins* the_one = nullptr;

}  // namespace

Status Replica::join(const TeamOrders& orders, int rank, int ranks) {
  auto twins = std::make_unique<Twins>(orders, rank, ranks);
  const Status status = twins->begin();
  the_one = twins.release();  // never destroyed: its threads use it as long as the process lives
  if (!status.ok()) return status;
  pthread_atfork(nullptr, nullptr, [] { the_one->in_child(); });
  now_.store(the_one, std::memory_order_release);
  return Status();
}

}  // namespace holdfast::redundant
