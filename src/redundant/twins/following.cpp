// Logs of teams on nodes of their own. Whoever follows has a copy of its own, which its twin sends it, and goes through that as if it were the twin's file.
// From when it is in step its twin shows nothing before the copy has what led to it. So the copy holds when the twin's node is lost.
#include "redundant/twins/twins.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redundant {

namespace {

constexpr uint64_t piece_bytes = 1 << 20, window_bytes = 8 << 20, near_bytes = 64 << 10;

}  // namespace

// All under the mutex, but pour_all.
void Twins::follow_me(int team) {
  followers_[size_t(team)] = {.is_there = true};
  followed_ = true;
}

void Twins::let_go(int team) {
  followers_[size_t(team)] = {};
  followed_ = std::any_of(followers_.begin(), followers_.end(), [](const Follower& one) { return one.is_there; });
}

// So much may be on its way at a time.
void Twins::pour(int team, uint64_t window) {
  Follower& one = followers_[size_t(team)];
  const auto send = [&](uint32_t what, ByteView bytes) {
    Frame part;
    part.word = Word::log_part, part.team = uint16_t(place_.team), part.epoch = meetings_.epoch();
    part.rank = what, part.subject = uint64_t(clock_ms());
    part.payload.assign(bytes.begin(), bytes.end());
    ways_[size_t(team)].waiting.push_back(encode(part));
  };
  while (one.sent - one.taken < window) {
    const ByteView piece = own_log_.since(one.sent, piece_bytes);
    if (piece.empty()) break;
    send(0, piece);
    one.sent += piece.size();
  }
  const bool is_all = one.sent == own_log_.end();
  if (is_all && own_log_.is_cut() && !std::exchange(one.told_cut, true)) send(log_is_cut, {});
  if (one.in_step || !is_all || !own_log_.is_whole() || one.sent - one.taken > near_bytes) return;
  one.in_step = true;
  send(log_in_step, {});
}

void Twins::pour_all() {
  if (!is_followed()) return;
  std::lock_guard lock(mutex_);
  for (int team = 0; team < most_teams; ++team)
    if (followers_[size_t(team)].is_there) pour(team, window_bytes);
}

void Twins::log_taken(int team, uint64_t to) {
  Follower& one = followers_[size_t(team)];
  if (one.is_there) one.taken = std::clamp(to, one.taken, one.sent);
}

// A copy that has no more room ends this team, and holds up nobody.
void Twins::take_log(const Frame& part) {
  log_skew_ms_ = clock_ms() - int64_t(part.subject);
  if (!their_log_.copy(part.payload) || (part.rank & log_is_cut)) their_log_.set_cut(), refuse(cut_log);
  log_has_come_ |= (part.rank & log_in_step) != 0;
  Frame taken;
  taken.word = Word::log_taken, taken.team = uint16_t(place_.team), taken.epoch = meetings_.epoch();
  taken.number = their_log_.has_room() ? their_log_.copied() : ~uint64_t(0);
  put(int(part.team), taken);
}

bool Twins::followers_have_all() const {
  return std::all_of(followers_.begin(), followers_.end(), [this](const Follower& one) { return !one.in_step || one.taken >= own_log_.end(); });
}

// True: it has waited, and others may live by now.
bool Twins::wait_for_followers(std::unique_lock<std::mutex>& lock) {
  if (followers_have_all()) return false;
  while (!followers_have_all()) wait_for_arrival(lock);
  return true;
}

// Before this process ends: as long as they take something.
void Twins::last_to_followers(std::unique_lock<std::mutex>& lock) {
  const auto lacks = [this](const Follower& one) { return one.is_there && (!one.in_step || one.taken < own_log_.end()); };
  const auto all_taken = [this] {
    uint64_t all = 0;
    for (const Follower& one : followers_) all += one.taken;
    return all;
  };
  uint64_t taken = all_taken();
  int64_t until = clock_ms() + int64_t(orders_.deadline_ms);
  while (std::any_of(followers_.begin(), followers_.end(), lacks) && clock_ms() < until) {
    lock.unlock();
    flush();
    lock.lock();
    changed_.wait_for(lock, std::chrono::milliseconds(10));
    if (std::exchange(taken, all_taken()) != taken) until = clock_ms() + int64_t(orders_.deadline_ms);
  }
}

}  // namespace holdfast::redundant
