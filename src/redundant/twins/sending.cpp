// What goes out, and when.
#include "redundant/twins/twins.hpp"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "base/own_numbers.hpp"

namespace holdfast::redundant {

namespace {

constexpr auto batch_time = std::chrono::milliseconds(1);
constexpr auto noes_time = std::chrono::milliseconds(8);  // each batch wakes a thread of each twin, and one here that hears of its arrival
constexpr auto alive_time = std::chrono::milliseconds(Stood::look_ms);
constexpr auto look_time = std::chrono::milliseconds(100);  // at what was sent

}  // namespace

// Under the lock.
void Twins::put(int way, const Frame& frame) {
  const bool comes = way < most_teams && meetings_.lives(way);                        // one that was started again, and has called
  if (way < most_teams && followers_[size_t(way)].is_there) pour(way, ~uint64_t(0));  // what stands in the log was before
  if (ways_[size_t(way)].socket || comes) ways_[size_t(way)].waiting.push_back(encode(frame));
}

void Twins::put(Outbox& out) {
  for (const auto& [team, frame] : out) put(team, frame);
  out.clear();
}

// The hub first: a twin that hangs holds up what is sent to it.
void Twins::flush() {
  pour_all();
  flush(hub());
  for (Way& way : ways_) flush(way);
}

// By the thread that listens. It must not wait for a twin that hears: two that waited for each other so would hear nothing any more.
void Twins::flush_while_hearing() {
  pour_all();
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

// Answers of the world gather for a moment. Noes alone do so for longer: a program asks again as long as it is told so, and what follows from a no to others
// goes with the next send.
void Twins::serve_sending() {
  std::unique_lock lock(mutex_);
  for (;;) {
    to_send_.wait(lock, [this] { return sends_soon_ || sends_later_; });
    to_send_.wait_for(lock, noes_time, [this] { return sends_soon_; });
    lock.unlock();
    const timespec pause{0, std::chrono::nanoseconds(batch_time).count()};
    nanosleep(&pause, nullptr);
    lock.lock();
    sends_soon_ = sends_later_ = false;
    Outbox out;
    decisions_.send_batch(out);
    put(out);
    changed_.notify_all();
    lock.unlock();
    flush();
    lock.lock();
  }
}

// At the program's next message it says how far it is. What is to be told another thread sends: this one says that the process lives, and a twin that
// hangs must not hold it up.
void Twins::look_now() {
  std::lock_guard lock(mutex_);
  Outbox out;
  sent_->tick(meetings_, out);
  report_found();
  put(out);
  flush_soon();
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
      alive.subject = uint64_t(lease_clock_ms());
      say_where_it_stands(look_whether_all_stand(), alive);
      put(most_teams, alive);
      if (keeps() && !own_log_.has_room() && !std::exchange(told_that_log_ends_, true)) {
        Frame ends;
        ends.word = Word::log_ends;
        ends.team = uint16_t(place_.team), ends.rank = uint32_t(place_.rank);
        ends.payload = bytes_of(log_trouble());
        put(most_teams, ends);
      }
    }
    flush(hub());
  }
}

// A thread of its own: others wait for sockets. Its time also passes while the node sleeps.
void Twins::serve_lease() {
  while (!is_cut_off()) std::this_thread::sleep_for(look_time);
  syscall(SYS_exit_group, lost_status);
}

int64_t Twins::lease_clock_ms() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return int64_t(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

}  // namespace holdfast::redundant
