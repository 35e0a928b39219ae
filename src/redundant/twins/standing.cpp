// Where this process waits for its twins, and whether they wait for it in turn, each at another place.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "redundant/subjects.hpp"
#include "redundant/twins/kernel_waits.hpp"
#include "redundant/twins/program_thread.hpp"
#include "redundant/twins/twins.hpp"

namespace holdfast::redundant {

namespace {

constexpr int64_t standing_patience_ms = 1000;  // for what is on its way; what stands still is proven

std::string name_of_question(uint64_t subject) {
  if (subject == name_subject(subject)) return "a question about a file";
  if (is_clock(subject)) return "a question about the time";
  if (subject == uint64_t(Subject::random)) return "a request for random numbers";
  return subject < uint64_t(Subject::clocks) ? "a question about its node" : "a question about messages";
}

}  // namespace

// Without the mutex: a process that is forked off ends threads, too, and the mutex may have been another's then.
void Twins::counts_this_thread() {
  static constinit thread_local bool has_called __attribute__((tls_model("initial-exec"))) = false;
  if (std::exchange(has_called, true)) return;
  ++callers_, their_numbers_ += syscall(SYS_gettid);
  pthread_setspecific(when_one_ends_, this);
}

// What our own threads write for the program's children is called by them, and they end.
void Twins::forgets_this_thread() { --callers_, their_numbers_ -= syscall(SYS_gettid); }

// Under the mutex, as what follows.
void Twins::wait_at(uint64_t subject, uint64_t number, const std::function<std::string()>* what, std::unique_lock<std::mutex>& lock,
                    std::chrono::milliseconds most) {
  Standing there{subject, number, what == nullptr, {}};
  if (!stands_.there.is_at(there)) stands_ = {std::move(there), nullptr, clock_ms(), false};
  stands_.what = what;
  static constinit thread_local int thread __attribute__((tls_model("initial-exec"))) = 0;
  if (thread == 0) thread = int(syscall(SYS_gettid));
  standing_.insert(thread);
  stands_.now = true;
  wait_for_more(lock, most);
  standing_.erase(thread);
  stands_.now = false;  // others that wait wake as well, and say so again
}

// Where it has what it waits for by now, its thread is about to go on. So it is with a clock that a program with threads asks: its leader answers (ahead.cpp).
bool Twins::stands_still() const {
  const Standing& there = stands_.there;
  if (there.is_question && is_clock(there.subject) && program_has_started_threads.load(std::memory_order_relaxed)) return false;
  const bool is_in_the_past = (past_ && has_unread()) || meetings_.learned() > 0;  // else what it was told and does not ask for helps nobody
  if (!stands_.now || clock_ms() - stands_.since_ms < standing_patience_ms || !meetings_.is_member() || is_in_the_past) return false;
  return there.is_question ? decisions_.number(there.subject) < there.number : meetings_.state(there.subject) == Meetings::State::wait;
}

// One thread alone calls, and the others are idle: a thread that has never called and computes could come to any place. Threads are looked at only where
// somebody waits. Where several call nothing is proven: that they all wait is told, no more.
bool Twins::look_whether_all_stand() {
  const int waiting = stands_.now ? -1 : team_that_waits_for_this();
  if (callers_ > 1 && stands_.now) return idle_threads_.all_but_these_wait_for_threads(standing_) && stands_still();
  if (callers_ != 1 || (!stands_.now && waiting < 0)) return idle_threads_.forget(), false;
  if (!idle_threads_.are_all_but(stands_.now ? int(their_numbers_) : 0)) return false;
  if (!stands_.now) return look_at_children(waiting), false;
  if (!stands_still()) return false;
  Standing own = stands_.there;
  own.what = own.is_question ? name_of_question(own.subject) : (*stands_.what)();
  own.proof = meetings_.proof();
  if (std::exchange(stands_.told_epoch, meetings_.epoch()) != meetings_.epoch()) tell_twins(own);
  if (meetings_.leads()) judge_standstill(own);
  return true;
}

// 0: in none, or some thread of it does something.
int64_t Twins::in_one_call_ms() {
  const OtherCall now = other_call_ && acting_ == 0 && meetings_.is_member() ? other_call_() : OtherCall{};
  if (!now.name) return idle_beside_.forget(), in_other_call_ = {}, 0;
  const bool is_the_same = now.number == in_other_call_.number && now.name == in_other_call_.name;
  in_other_call_ = now;
  return stood_in_other_call_.look(idle_beside_.are_all_but(now.thread, true) && is_the_same, clock_ms());
}

// The hub, which hears it of all, knows when no rank goes on (membership/stillness).
void Twins::say_where_it_stands(bool waits_for_twins, Frame& alive) {
  const int64_t in_other_ms = stands_.now ? 0 : in_one_call_ms();
  const int64_t since_ms = waits_for_twins ? stands_.since_ms : 0;
  const int64_t stood_ms = stood_.look(since_ms != 0 && since_ms == stood_since_ms_, clock_ms());
  stood_since_ms_ = since_ms;
  if (!waits_for_twins && in_other_ms == 0) return;
  const Standing& there = stands_.there;
  alive.epoch = uint32_t(waits_for_twins ? stood_ms : in_other_ms);
  alive.rank = waits_for_twins ? 1 : 0;
  alive.payload = bytes_of(!waits_for_twins ? in_other_call_.name : there.is_question ? name_of_question(there.subject) : (*stands_.what)());
}

void Twins::tell_twins(const Standing& own) {
  Frame frame;
  frame.word = own.is_question ? Word::waits_for_answer : Word::waits_in_call;
  frame.team = uint16_t(place_.team), frame.epoch = meetings_.epoch(), frame.rank = uint32_t(own.proof);
  frame.subject = own.subject, frame.number = own.number, frame.payload = bytes_of(own.what);
  for (int team = 0; team < most_teams; ++team)
    if (team != place_.team && meetings_.lives(team)) put(team, frame);
  flush_soon();
}

uint64_t Twins::number_at(const Standing& there) const {
  return there.is_question ? decisions_.number(there.subject) : meetings_.number(there.subject);
}

// -1: none on this node.
int Twins::team_that_waits_for_this() const {
  if (!shares_node() || !meetings_.is_member()) return -1;
  const uint64_t heard = meetings_.living() & (meetings_.leads() ? ~uint64_t(0) : team_bit(meetings_.leader()));
  return standstill_.waiting_for([this](const Standing& there) { return number_at(there); }, heard, meetings_.epoch());
}

// A twin waits for this process, which may wait for one that it has started. That one may wait for a lock of the twin's.
void Twins::look_at_children(int team) {
  ucred twin{};
  socklen_t bytes = sizeof twin;
  if (getsockopt(ways_[size_t(team)].socket.get(), SOL_SOCKET, SO_PEERCRED, &twin, &bytes) != 0 || twin.pid <= 0) return;
  if (const std::string why = child_waits_for_lock_of(twin.pid); !why.empty()) refuse(why);
}

void Twins::take_standing(const Frame& frame) {
  if (!meetings_.lives(frame.team)) return;
  standstill_.said(frame.team, frame.epoch,
                   {frame.subject, frame.number, frame.word == Word::waits_for_answer, std::string(text_of(frame.payload)), frame.rank});
}

void Twins::judge_standstill(const Standing& own) {
  const bool is_in_it = !own.is_question && meetings_.number(own.subject) == own.number;  // else it waits for a piece of its next one
  const auto come = is_in_it ? meetings_.claims(own.subject) : std::vector<std::pair<int, Claim>>();
  const auto has_come = [&](int team) -> std::optional<uint64_t> {
    const auto found = std::find_if(come.begin(), come.end(), [team](const auto& one) { return one.first == team; });
    return found == come.end() ? std::nullopt : std::optional(found->second.proof);
  };
  const auto number = [this](const Standing& there) { return number_at(there); };
  const auto found = standstill_.judge(own, {place_.team, meetings_.living(), meetings_.epoch(), has_come, number});
  if (!found || std::exchange(stands_.reported_epoch, meetings_.epoch()) == meetings_.epoch()) return;
  report(found->claims, found->what);
  flush_soon();
}

}  // namespace holdfast::redundant
