// Further doors by which a program learns the time, and how busy its node is, in a redundant job: the leader's answer is everybody's.
#include <sched.h>
#include <stdlib.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timeb.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <time.h>

#include "intercept/posix/decided_answers.hpp"
#include "intercept/posix/real.hpp"

namespace {

using namespace holdfast::intercept::posix;
using holdfast::redundant::clock_subject;
using holdfast::redundant::Subject;

// Beyond the clocks of clock_gettime(2).
enum OtherClock : int { kernel_time = 0x1000, kernel_time_short, milliseconds, interval_timers = 0x1100, descriptors = 0x2000, timers = 0x3000 };
constexpr unsigned most_timers = 0x1000;

// The C library's own by its name, or everybody's answer, which it fills.
template <class Filled, class Native>
int filled_by_leader(const void* caller, uint64_t subject, Filled* into, Native native) {
  auto* const replica = into ? replica_for(caller) : nullptr;
  if (!replica) [[likely]]
    return native(into);
  return int(decide_filled(*replica, subject, into, [=](Filled* at) { return int64_t(native(at)); }));
}

// It is told what to set, as well: each replica has to, then.
int ask_kernel_time(const void* caller, struct timex* both, int (*native)(struct timex*)) {
  if (!both || both->modes != 0) return native(both);
  return filled_by_leader(caller, clock_subject(kernel_time), both, [=](struct timex* at) { return at->modes = 0, native(at); });
}

struct Loads {
  double of[3];
};

}  // namespace

HF_DOOR int timespec_get(timespec* into, int base) noexcept {
  static auto* const native = next_of_name<int(timespec*, int)>("timespec_get");
  auto* const replica = base == TIME_UTC ? replica_for(HF_CALLER) : nullptr;
  if (!replica) [[likely]]
    return native(into, base);
  return int(decide_filled(*replica, clock_subject(CLOCK_REALTIME), into, [=](timespec* at) { return real().clock_gettime(CLOCK_REALTIME, at); })) ==
                 0
             ? base
             : 0;
}
HF_DOOR int ftime(struct timeb* into) {
  static auto* const native = next_of_name<int(struct timeb*)>("ftime");
  return filled_by_leader(HF_CALLER, clock_subject(milliseconds), into, native);
}
HF_DOOR int getitimer(__itimer_which_t which, itimerval* into) noexcept {
  static auto* const native = next_of_name<int(__itimer_which_t, itimerval*)>("getitimer");
  return filled_by_leader(HF_CALLER, clock_subject(interval_timers + int(which)), into, [=](itimerval* at) { return native(which, at); });
}
HF_DOOR int timerfd_gettime(int fd, itimerspec* into) noexcept {
  static auto* const native = next_of_name<int(int, itimerspec*)>("timerfd_gettime");
  const int which = descriptors + int(unsigned(fd) % most_timers);
  return filled_by_leader(HF_CALLER, clock_subject(which), into, [=](itimerspec* at) { return native(fd, at); });
}
HF_DOOR int timer_gettime(timer_t timer, itimerspec* into) noexcept {
  static auto* const native = next_of_name<int(timer_t, itimerspec*)>("timer_gettime");
  return filled_by_leader(HF_CALLER, clock_subject(timers), into, [=](itimerspec* at) { return native(timer, at); });
}
HF_DOOR int adjtimex(struct timex* both) noexcept {
  static auto* const native = next_of_name<int(struct timex*)>("adjtimex");
  return ask_kernel_time(HF_CALLER, both, native);
}
HF_DOOR int ntp_adjtime(struct timex* both) noexcept {
  static auto* const native = next_of_name<int(struct timex*)>("ntp_adjtime");
  return ask_kernel_time(HF_CALLER, both, native);
}
// By this name the header calls ntp_gettime.
HF_DOOR int ntp_gettimex(struct ntptimeval* into) noexcept {
  static auto* const native = next_of_name<int(struct ntptimeval*)>("ntp_gettimex");
  return filled_by_leader(HF_CALLER, clock_subject(kernel_time_short), into, native);
}

HF_DOOR int sysinfo(struct sysinfo* into) noexcept {
  static auto* const native = next_of_name<int(struct sysinfo*)>("sysinfo");
  return filled_by_leader(HF_CALLER, uint64_t(Subject::node), into, native);
}
HF_DOOR int getloadavg(double* into, int count) noexcept {
  static auto* const native = next_of_name<int(double*, int)>("getloadavg");
  auto* const replica = replica_for(HF_CALLER);
  constexpr int most = sizeof(Loads) / sizeof(double);
  if (!replica || count < 1 || count > most) [[likely]]
    return native(into, count);
  Loads loads{};
  const auto got = int(decide_filled(*replica, uint64_t(Subject::load), &loads, [=](Loads* at) { return int64_t(native(at->of, count)); }));
  for (int i = 0; i < got; ++i) into[i] = loads.of[i];
  return got;
}
// The number of a processor is what programs print. Where a thread may run is each replica's own.
HF_DOOR int sched_getcpu() noexcept {
  static auto* const native = next_of_name<int()>("sched_getcpu");
  auto* const replica = replica_for(HF_CALLER);
  if (!replica) [[likely]]
    return native();
  return decided<int>(*replica, uint64_t(Subject::own_processor), [] { return native(); });
}
