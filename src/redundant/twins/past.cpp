// A team that was started again: what it reads of what was before it.
#include "redundant/twins/twins.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace holdfast::redundant {

namespace {

constexpr const char* cut_log = "what was done then is written down in part, for the log had no more room";

}  // namespace

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

}  // namespace holdfast::redundant
