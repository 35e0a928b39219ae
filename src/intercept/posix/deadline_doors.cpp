// Waits until a time by a clock that is the leader's (CLOCK_MONOTONIC and its kin): that time is one of this node's clock then. One load where the process
// is no replica.
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <time.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/keep_errno.hpp"
#include "base/process_facts.hpp"
#include "base/without_signals.hpp"
#include "intercept/posix/decided.hpp"
#include "intercept/posix/door.hpp"

namespace {

using namespace holdfast::intercept::posix;
using holdfast::WithoutSignals;

// By which clock each timer goes. Timers may be set in a handler of a signal: whoever has the mutex is interrupted by none.
struct Timers {
  std::mutex mutex;
  std::map<timer_t, clockid_t> clocks;
};
Timers& timers() {
  static auto* const all = new Timers;  // never destroyed: timers are used to the end
  return *all;
}

std::optional<clockid_t> clock_of(timer_t timer) {
  const WithoutSignals none;
  const std::lock_guard lock(timers().mutex);
  const auto found = timers().clocks.find(timer);
  return found == timers().clocks.end() ? std::nullopt : std::optional(found->second);
}

void forget_timer(timer_t timer) {
  const WithoutSignals none;
  const std::lock_guard lock(timers().mutex);
  timers().clocks.erase(timer);
}

// As the kernel shows it.
std::optional<clockid_t> clock_of_descriptor(int fd) {
  constexpr const char* mark = "clockid: ";
  const std::string text = holdfast::small_file(fmt::format("/proc/self/fdinfo/{}", fd));
  const size_t at = text.find(mark);
  return at == std::string::npos ? std::nullopt : std::optional(clockid_t(std::atoi(text.c_str() + at + std::char_traits<char>::length(mark))));
}

// The C library keeps the clock of a condition in this bit, and has no call that asks for it.
bool goes_by_running_clock(const pthread_cond_t* condition) {
  constexpr unsigned by_monotonic = 2;
  return condition->__data.__wrefs & by_monotonic;
}

// Waits with the time that is meant. `native` takes it.
template <class Native>
int wait_until(const void* caller, clockid_t which, const timespec* until, Native native) {
  if (!until || !replica_for(caller)) [[likely]]
    return native(until);
  const timespec own = own_time(which, *until);
  return native(&own);
}

// The time of a timer that is to go off once at a time, or from then on.
template <class Native>
int set_timer(const std::optional<clockid_t>& which, const itimerspec& wanted, Native native) {
  itimerspec own = wanted;
  const bool is_off = wanted.it_value.tv_sec == 0 && wanted.it_value.tv_nsec == 0;
  if (which && !is_off) own.it_value = own_time(*which, wanted.it_value);
  // A time before this node's start: at once. Nothing at all would mean never.
  if (!is_off && own.it_value.tv_sec == 0 && own.it_value.tv_nsec == 0) own.it_value.tv_nsec = 1;
  return native(&own);
}

}  // namespace

HF_DOOR int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t which, const timespec* until) {
  static auto* const native = next_of_name<int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)>("pthread_cond_clockwait");
  return wait_until(HF_CALLER, which, until, [=](const timespec* own) { return native(condition, mutex, which, own); });
}
HF_DOOR int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  static auto* const native = next_of_name<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)>("pthread_cond_timedwait");
  const clockid_t which = goes_by_running_clock(condition) ? CLOCK_MONOTONIC : CLOCK_REALTIME;
  return wait_until(HF_CALLER, which, until, [=](const timespec* own) { return native(condition, mutex, own); });
}
HF_DOOR int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t which, const timespec* until) noexcept {
  static auto* const native = next_of_name<int(pthread_mutex_t*, clockid_t, const timespec*)>("pthread_mutex_clocklock");
  return wait_until(HF_CALLER, which, until, [=](const timespec* own) { return native(mutex, which, own); });
}
HF_DOOR int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t which, const timespec* until) noexcept {
  static auto* const native = next_of_name<int(pthread_rwlock_t*, clockid_t, const timespec*)>("pthread_rwlock_clockrdlock");
  return wait_until(HF_CALLER, which, until, [=](const timespec* own) { return native(lock, which, own); });
}
HF_DOOR int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t which, const timespec* until) noexcept {
  static auto* const native = next_of_name<int(pthread_rwlock_t*, clockid_t, const timespec*)>("pthread_rwlock_clockwrlock");
  return wait_until(HF_CALLER, which, until, [=](const timespec* own) { return native(lock, which, own); });
}
HF_DOOR int sem_clockwait(sem_t* semaphore, clockid_t which, const timespec* until) {
  static auto* const native = next_of_name<int(sem_t*, clockid_t, const timespec*)>("sem_clockwait");
  return wait_until(HF_CALLER, which, until, [=](const timespec* own) { return native(semaphore, which, own); });
}

HF_DOOR int timerfd_settime(int fd, int flags, const itimerspec* wanted, itimerspec* before) noexcept {
  static auto* const native = next_of_name<int(int, int, const itimerspec*, itimerspec*)>("timerfd_settime");
  if (!(flags & TFD_TIMER_ABSTIME) || !wanted || !replica_for(HF_CALLER)) [[likely]]
    return native(fd, flags, wanted, before);
  const auto which = [fd] {
    const OurCode ours_now;
    const holdfast::KeepErrno keep;
    return clock_of_descriptor(fd);
  }();
  return set_timer(which, *wanted, [=](const itimerspec* own) { return native(fd, flags, own, before); });
}

HF_DOOR int timer_create(clockid_t which, sigevent* event, timer_t* made) noexcept {
  static auto* const native = next_of_name<int(clockid_t, sigevent*, timer_t*)>("timer_create");
  const int answer = native(which, event, made);
  if (answer != 0 || !made || !replica_for(HF_CALLER)) [[likely]]
    return answer;
  const WithoutSignals none;
  const std::lock_guard lock(timers().mutex);
  timers().clocks[*made] = which;
  return answer;
}
HF_DOOR int timer_delete(timer_t timer) noexcept {
  static auto* const native = next_of_name<int(timer_t)>("timer_delete");
  if (holdfast::redundant::Replica::now()) forget_timer(timer);  // before another thread may get its number
  return native(timer);
}
HF_DOOR int timer_settime(timer_t timer, int flags, const itimerspec* wanted, itimerspec* before) noexcept {
  static auto* const native = next_of_name<int(timer_t, int, const itimerspec*, itimerspec*)>("timer_settime");
  if (!(flags & TIMER_ABSTIME) || !wanted || !replica_for(HF_CALLER)) [[likely]]
    return native(timer, flags, wanted, before);
  return set_timer(clock_of(timer), *wanted, [=](const itimerspec* own) { return native(timer, flags, own, before); });
}
