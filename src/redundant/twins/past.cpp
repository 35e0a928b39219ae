// A team that was started again: what it reads of what was before it.
#include "redundant/twins/twins.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace holdfast::redundant {

namespace {

constexpr const char* log_is_gone = "its twin in the team that it follows is not reached, which has the log of what was done then";
constexpr const char* log_in_part = "what was done then has come in part only, and the team that it follows is lost";

}  // namespace

// In all teams alike, so that the program's memory lies at the same addresses.
Status Twins::make_logs() {
  if (!keeps()) return Status();
  HF_TRY(their_log_.set_aside());
  const std::string path = orders_.logs_travel ? orders_.log : log_path(orders_.log, place_.team, place_.rank);
  if (const Status made = orders_.logs_travel ? own_log_.make_unnamed(path) : own_log_.make(path); !made) {
    own_log_trouble_ = made.sentence();
    return own_log_.set_aside();
  }
  if (!past_) own_log_.set_whole();
  if (past_ && orders_.logs_travel)
    if (const Status made = their_log_.make_unnamed(path); !made) their_log_trouble_ = made.sentence();
  return Status();
}

std::string Twins::log_trouble() const {
  return own_log_trouble_.empty()        ? "the log of the job in " + orders_.log + " has no more room"
         : joining_ || own_log_.is_cut() ? own_log_trouble_
                                         : "the log of the job cannot be made: " + own_log_trouble_;
}

// Logs of teams that are lost, as far as the next one goes by them, are read now: they do not grow any more.
void Twins::open_logs() {
  if (orders_.logs_travel) {
    if (!their_log_trouble_.empty()) refuse(their_log_trouble_);
    else if (!ways_[size_t(orders_.follows[0])].socket) refuse(log_is_gone);
    return;
  }
  size_t first = 0;
  for (; first + 1 < orders_.follows.size(); ++first) {
    LogFile one(orders_.log_bytes);
    if (one.set_aside().ok() && one.open(log_path(orders_.log, orders_.follows[first], place_.rank)).ok() && one.is_whole()) break;
  }
  if (first > 0 && joining_) return refuse("the team that it follows has just come back itself, and has no whole log yet");
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
  log_is_over_ = true;
  if (joining_) {  // it knows no place there yet
    if (!log_has_come_) refuse(log_in_part);
    return;
  }
  past_->take_all(meetings_, decisions_);
  if (!log_has_come_) refuse(log_in_part);
  if (their_log_.is_cut()) refuse(cut_log);
  own_log_.set_whole();
}

void Twins::refuse(const std::string& why) {
  if (std::exchange(refused_, true)) return;
  Frame frame;
  frame.word = Word::refused, frame.team = uint16_t(place_.team), frame.rank = uint32_t(place_.rank);
  frame.payload = bytes_of(why);
  frame.number = orders_.joins == TeamOrders::if_it_can && !log_is_over_;
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

// One that is as fast as the one that it follows never comes to the end. It is near enough when that one need not wait long for it.
bool Twins::is_near() const {
  constexpr size_t few = 8;
  constexpr int64_t soon_ms = 100;
  return meetings_.learned() + decisions_.learned() <= few && log_clock_ms() - past_->read_until_ms() <= soon_ms;
}

bool Twins::reads_on() {
  if (!follows() || joining_ || !past_->take_one(meetings_, decisions_)) return false;
  if (!told_that_caught_up_ && is_near() && says_where_it_is()) {
    flush_soon();
  }
  return true;
}

// True: something is to be sent.
bool Twins::says_where_it_is() {
  if (!follows() || joining_ || !log_has_come_ || (meetings_.learned() + decisions_.learned() > 0 && !is_near())) return false;
  if (their_log_.is_cut()) refuse(cut_log);
  if (std::exchange(told_that_caught_up_, true)) return refused_;
  Frame frame;
  frame.word = Word::caught_up, frame.team = uint16_t(place_.team), frame.rank = uint32_t(place_.rank);
  put(most_teams, frame);
  return true;
}

// A log tells nobody that it has grown. `most` 0: as long as it takes.
void Twins::wait_for_more(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds most) {
  if (!follows()) return most.count() == 0 ? changed_.wait(lock) : void(changed_.wait_for(lock, most));
  if (says_where_it_is()) {
    lock.unlock();
    flush(hub());
    lock.lock();
  }
  changed_.wait_for(lock, std::chrono::milliseconds(1));
}

uint64_t Twins::behind_ms() const {
  if (!past_ || !has_unread()) return 0;
  return past_->read_until_ms() == 0 ? 0 : uint64_t(std::max<int64_t>(log_clock_ms() - past_->read_until_ms(), 0));
}

bool Twins::is_behind() {
  if (!past_) return false;
  const Busy now;
  std::lock_guard lock(mutex_);
  return joining_ || has_unread() || (follows() && !told_that_caught_up_);  // one that slept would stay behind by that
}

std::optional<Claim> Twins::claimed_then(uint64_t subject) {
  const Busy now;
  std::lock_guard lock(mutex_);
  return meetings_.claimed_then(known_as(subject));
}

void Twins::keep_read(uint64_t subject, ByteView bytes) {
  const Busy now;
  std::lock_guard lock(mutex_);
  subject = known_as(subject);
  if (!joining_) keeper_.bytes(subject, meetings_.number(subject), bytes);
}

std::optional<Bytes> Twins::read_then(uint64_t subject) {
  const Busy now;
  std::unique_lock lock(mutex_);
  subject = known_as(subject);
  for (;;) {
    if (auto bytes = past_->bytes(subject, meetings_.number(subject))) return bytes;
    if (reads_on()) continue;
    if (!follows() || their_log_.is_cut()) return std::nullopt;
    changed_.wait_for(lock, std::chrono::milliseconds(1));  // its twin is about to write it down
  }
}

}  // namespace holdfast::redundant
