// Threads that ask the time until another one ends them. How often they ask differs between replicas. So a follower's thread may wait for an answer that its
// leader's own thread never asks for. Its leader answers in the place of that thread, which is told the same where it asks after all.
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "redundant/subjects.hpp"
#include "redundant/twins/kernel_waits.hpp"
#include "redundant/twins/program_thread.hpp"
#include "redundant/twins/twins.hpp"

namespace holdfast::redundant {

namespace {

constexpr auto patience = std::chrono::milliseconds(50);  // before the leader is asked, and between two looks at its thread
constexpr int64_t long_ms = 2000;                         // then it answers whatever its thread does

}  // namespace

void Twins::thread_begins(uint32_t number) {
  const Busy now;
  std::lock_guard lock(mutex_);
  threads_[number] = int(::syscall(SYS_gettid));
  decisions_.thread_begins(number);
}

void Twins::thread_ends(uint32_t number) {
  const Busy now;
  std::lock_guard lock(mutex_);
  threads_.erase(number);
  decisions_.thread_ends(number);
}

// Under the mutex, as what follows. A program without threads asks alike in all replicas: one that waits there differs, and is to be found.
void Twins::wait_for_clock(uint64_t subject, Awaits& awaits, std::unique_lock<std::mutex>& lock) {
  const bool may_be_answered = program_has_started_threads.load(std::memory_order_relaxed) && is_clock(subject);
  const int64_t begins_ms = may_be_answered ? clock_ms() : 0;
  if (awaits.since_ms == 0) awaits = {begins_ms, begins_ms};
  const uint64_t number = decisions_.number(subject) + 1;
  wait_at(subject, number, nullptr, lock, may_be_answered ? patience : std::chrono::milliseconds(0));
  const int64_t now_ms = may_be_answered ? clock_ms() : 0;
  if (!may_be_answered || now_ms - awaits.told_ms < patience.count() || decisions_.number(subject) + 1 != number) return;
  const int asked = follows() ? orders_.follows[0] : meetings_.leader();
  if (asked == place_.team) return;  // it is about to lead
  awaits.told_ms = now_ms;
  Frame frame;
  frame.word = Word::asks_ahead, frame.team = uint16_t(place_.team), frame.epoch = meetings_.epoch();
  frame.subject = subject, frame.number = number, frame.rank = uint32_t(now_ms - awaits.since_ms);
  put(asked, frame);
  flush_soon();
}

// What its thread may be about to ask for it leaves to that one, which then is told the time of that moment.
void Twins::answer_ahead(const Frame& frame) {
  if (!is_clock(frame.subject) || !decisions_.may_answer_ahead(frame.subject, frame.number)) return;
  if (!asks_no_more(frame.subject, int64_t(frame.rank))) return;
  const std::optional<Bytes> answer = ask_clock(clock_of(frame.subject));
  if (!answer) return;
  seen_waiting_.erase(frame.subject);
  if (is_followed() || decisions_.awaits_all()) said_ = true, send_soon();
  if (decisions_.answered_ahead(frame.subject, *answer)) send_soon();
}

// It has ended, or has waited for the same thing at two looks.
bool Twins::asks_no_more(uint64_t subject, int64_t awaited_ms) {
  const uint32_t thread = thread_of(subject);
  if (awaited_ms >= long_ms || decisions_.has_ended(thread)) return true;
  const auto found = threads_.find(thread);
  if (thread != 0 && found == threads_.end()) return false;  // it has not begun
  std::string waits_in = where_it_waits(::getpid(), thread == 0 ? ::getpid() : found->second);
  std::string& before = seen_waiting_[subject];
  const bool is_the_same = !waits_in.empty() && waits_in == before;
  before = std::move(waits_in);
  return is_the_same;
}

}  // namespace holdfast::redundant
