// What comes in.
#include "redundant/twins/twins.hpp"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <sstream>
#include <thread>
#include <utility>

#include "base/quiet_thread.hpp"
#include "redundant/membership/complaints.hpp"
#include "transport/link.hpp"

namespace holdfast::redundant {

namespace {
constexpr auto pause_between_tries = std::chrono::milliseconds(100);
}  // namespace

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
    tell_of_a_lost_leader();
    return true;
  }
  server_.forget(way.socket.get());
  if (number == most_teams) hub_is_lost();
  std::unique_lock lock(mutex_);
  if (number < most_teams) let_go(number);
  if (meetings_.lives(number)) cannot_reach(number, "their connection has ended");  // which means nothing until the hub says so
  lock.unlock();
  flush_while_hearing();
  return true;
}

void Twins::tell_of_a_lost_leader() {
  std::function<void()> then;
  {
    std::lock_guard lock(mutex_);
    if (successions_told_ != successions_) then = when_a_leader_is_lost_;
    successions_told_ = successions_;
  }
  if (then) then();
}

void Twins::came(int way, Frame& frame) {
  if (way == most_teams && frame.word == Word::twins) return meet_twins(std::string(text_of(frame.payload)), frame.number);
  if (frame.word == Word::end) (void)::kill(getpid(), SIGKILL);
  std::lock_guard lock(mutex_);
  Outbox out;
  const bool about_log = frame.word == Word::log_part || frame.word == Word::log_taken;
  if (way < most_teams && follows() && !about_log)
    while (reads_on()) {  // what stands in the log was before what is heard
    }
  if (way < most_teams && frame.word == Word::welcome) read_all();
  if (way < most_teams && joining_ && !about_log) return early_frames_.emplace_back(way, std::move(frame)), void();
  if (way == most_teams && frame.word == Word::alive) lease_.renew(int64_t(frame.subject), int64_t(orders_.deadline_ms));
  else if (way == most_teams && frame.word == Word::lives) live(frame);
  else if (way == most_teams && frame.word == Word::refused && frame.number == 2) may_go_beyond_ = true;
  else if (way == most_teams && frame.word == Word::refused) no_place_ = text_of(frame.payload);
  else if (way == most_teams && frame.word == Word::await_all) await_all();
  else if (way == most_teams && frame.word == Word::may_tell) may_tell_ = true;
  else if (way == most_teams && frame.word == Word::failed) told_of_failure_ = int64_t(frame.number);
  else if (way == most_teams && frame.word == Word::becomes) may_become_ = true;
  else if (way == most_teams && frame.word == Word::may_append) {
    const auto waits = may_append_.find({frame.subject, frame.number});
    if (waits != may_append_.end()) waits->second = true;
  } else if (way == most_teams && (frame.word == Word::pointer || frame.word == Word::locks)) hub_answers_.take(frame);
  else if (way == most_teams) return;
  else came_of_twin(way, frame, out);
  if (decisions_.is_torn()) refuse(torn);
  put(out);
  say_that_it_awaits();
  ++frames_heard_;
  changed_.notify_all();
}

// Under the lock, as what follows.
void Twins::await_all() {
  Outbox out;
  decisions_.await_all(out);
  said_ = true;
  put(out);
}

void Twins::say_that_it_awaits() {
  if (!decisions_.has_begun_to_await()) return;
  Frame frame;
  frame.word = Word::awaits_all, frame.team = uint16_t(place_.team), frame.rank = uint32_t(place_.rank);
  put(most_teams, frame);
}

void Twins::came_of_twin(int way, Frame& frame, Outbox& out) {
  if (frame.word == Word::log_part) take_log(frame);
  else if (frame.word == Word::log_taken) log_taken(way, frame.number);
  else if (frame.word == Word::decisions || frame.word == Word::unite || frame.word == Word::arrived) decisions_.take(frame, out);
  else if (frame.word == Word::asks_ahead) answer_ahead(frame);
  else if (frame.word == Word::sent) {
    if (sent_) sent_->take(frame, meetings_, out), report_found();
  } else if (frame.word == Word::piece) {
    if (meetings_.lives(frame.team)) pieces_.take(std::move(frame), meetings_.number(frame.subject));
  } else if (frame.word == Word::waits_in_call || frame.word == Word::waits_for_answer) take_standing(frame);
  else {
    if (frame.word == Word::claim) standstill_.goes_on(frame.team);
    if (frame.word == Word::over || frame.word == Word::outcome) standstill_.is_past(frame.team, frame.subject);
    meetings_.take(frame, out);
  }
}

// Under the lock. Who is lost himself must not act any more, whoever was to end him.
void Twins::live(const Frame& frame) {
  if (frame.number & team_bit(place_.team)) syscall(SYS_exit_group, lost_status);
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
  for (int team = 0; team < most_teams; ++team) {
    if (!followers_[size_t(team)].is_there) continue;
    if (meetings_.lives(team)) pour(team, ~uint64_t(0));  // from now on it hears of all by other ways
    if (meetings_.lives(team) || (frame.number & team_bit(team))) let_go(team);
  }
  // What is on its way to a node that is gone holds nobody up.
  for (int team = 0; team < most_teams; ++team)
    if ((frame.number & team_bit(team)) && ways_[size_t(team)].socket) ::shutdown(ways_[size_t(team)].socket.get(), SHUT_WR);
}

// Under the lock. The hub hears of it, and judges where both go on living.
void Twins::cannot_reach(int team, const std::string& why) { tell_of_reaching(Word::unreached, team, why); }

void Twins::tell_of_reaching(Word word, int team, const std::string& why) {
  Frame frame;
  frame.word = word, frame.team = uint16_t(place_.team), frame.rank = uint32_t(place_.rank), frame.subject = uint64_t(team);
  frame.payload = bytes_of(why);
  put(most_teams, frame);
}

void Twins::has_met(int team, const transport::Link& link) {
  Way& way = ways_[size_t(team)];
  raw::Fd socket = raw::out_of_the_way(raw::Fd(raw::fcntl(link.descriptor(), F_DUPFD_CLOEXEC)));
  transport::notice_a_dead_peer(socket.get());
  Frame who;
  who.word = Word::who, who.team = uint16_t(place_.team);
  who.number = orders_.logs_travel && past_ && team == orders_.follows[0];
  {
    std::lock_guard lock(mutex_);
    way.socket = std::move(socket);
    put(team, who);
  }
  flush(way);
  hear(team);
}

// A twin on a busy node may answer later. Another thread tries, for this one has to hear. It does so until the hub has judged.
void Twins::go_on_trying(int team, const std::string& endpoints) {
  struct Later {
    raw::Fd over = raw::out_of_the_way(raw::Fd(eventfd(0, EFD_CLOEXEC)));
    transport::Link link;
    bool has_met = false;
  };
  auto later = std::make_shared<Later>();
  const int64_t until_ms = clock_ms() + int64_t(orders_.deadline_ms) + Complaints::grace_ms;
  server_.watch(later->over.get(), [this, later, team] {
    server_.forget(later->over.get());
    if (!later->has_met) return true;
    has_met(team, later->link);
    std::lock_guard lock(mutex_);
    tell_of_reaching(Word::reached, team, "");
    changed_.notify_all();
    flush_soon();
    return true;
  });
  (void)start_quiet_thread([this, later, endpoints, until_ms] {
    while (!later->has_met && clock_ms() < until_ms) {
      later->has_met = later->link.connect(endpoints, agreement(orders_.secret), orders_.deadline_ms / 2).ok();
      if (!later->has_met) std::this_thread::sleep_for(pause_between_tries);
    }
    (void)eventfd_write(later->over.get(), 1);
  });
}

// Those of the teams before this one are called; those behind it call.
void Twins::meet_twins(const std::string& paragraphs, uint64_t first_process) {
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
    // Half the deadline: who tries hears nothing meanwhile, not of the hub either.
    const Status met = wanted ? link.connect(endpoints, agreement(orders_.secret), orders_.deadline_ms / 2) : Status();
    if (!met) {
      {
        std::lock_guard lock(mutex_);
        cannot_reach(team, met.sentence());
      }
      go_on_trying(team, endpoints);
    } else if (wanted) {
      has_met(team, link);
    }
    endpoints.clear();
    ++team;
  }
  {
    std::lock_guard lock(mutex_);
    if (past_ && !introduced_) open_logs();
    numbers_ = {int(getpid()), int(first_process)};
    introduced_ = true;
    changed_.notify_all();
  }
  flush_while_hearing();
}

// It may have been declared dead and nobody could say so.
void Twins::hub_is_lost() {
  const timespec pause{time_t(orders_.deadline_ms / 1000), long(orders_.deadline_ms % 1000) * 1000000};
  nanosleep(&pause, nullptr);
  syscall(SYS_exit_group, lost_status);
}

}  // namespace holdfast::redundant
