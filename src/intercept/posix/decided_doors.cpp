// Clocks, random numbers and host names in a redundant job: the leader's answer is everybody's. Only where the program asks: MPI's own libraries keep their
// own time. One load where the process is no replica.
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "file/coordinated/alike.hpp"
#include "intercept/posix/decided_answers.hpp"
#include "intercept/posix/interpreter.hpp"
#include "intercept/posix/real.hpp"
#include "redundant/decisions/carried_clocks.hpp"
#include "redundant/subjects.hpp"
#include "redundant/twins/replica.hpp"

namespace {

using namespace holdfast::intercept::posix;
using holdfast::redundant::CarriedClock;
using holdfast::redundant::CarriedTime;
using holdfast::redundant::Replica;
using holdfast::redundant::Subject;

constexpr int64_t us_of_s = 1000000, ns_of_s = 1000000000;
int64_t us_of(const timeval& time) { return time.tv_sec * us_of_s + time.tv_usec; }
int64_t ns_of(const timespec& time) { return time.tv_sec * ns_of_s + time.tv_nsec; }
void go_on(CarriedTime& onward, timeval& time) {
  const int64_t us = onward.of(us_of(time));
  time = {time_t(us / us_of_s), suseconds_t(us % us_of_s)};
}
timespec time_of(int64_t ns) { return {time_t(ns / ns_of_s), long(ns % ns_of_s)}; }
void go_on(CarriedTime& onward, timespec& time) { time = time_of(onward.of(ns_of(time))); }

constinit CarriedTime process_time, processor_time;

int64_t ask_process_clock(timespec* at) {
  const int64_t answer = real().clock_gettime(CLOCK_PROCESS_CPUTIME_ID, at);
  if (answer == 0) go_on(process_time, *at);
  return answer;
}

int process_clock(Replica& replica, timespec* into) {
  timespec now{};
  const int64_t answer = decide_filled(replica, holdfast::redundant::clock_subject(CLOCK_PROCESS_CPUTIME_ID), &now, ask_process_clock);
  if (answer == 0) process_time.told(ns_of(now)), *into = now;
  return int(answer);
}

clock_t ask_processor() { return clock_t(processor_time.of(real().clock())); }

// Of clocks that run by themselves from a zero of their node's.
constexpr int64_t alike_ns = 1000000, alike_ticks = 2;
CarriedClock<int64_t>* carried(clockid_t which) {
  static constinit CarriedClock<int64_t> monotonic(alike_ns), coarse(alike_ns), raw(alike_ns), boot(alike_ns);
  switch (which) {
    case CLOCK_MONOTONIC: return &monotonic;
    case CLOCK_MONOTONIC_COARSE: return &coarse;
    case CLOCK_MONOTONIC_RAW: return &raw;
    case CLOCK_BOOTTIME: return &boot;
    default: return nullptr;
  }
}

int64_t ask_running_clock(const CarriedClock<int64_t>& clock, clockid_t which, timespec* at) {
  const int64_t answer = real().clock_gettime(which, at);
  if (answer == 0) *at = time_of(clock.of(ns_of(*at)));
  return answer;
}

// Also what stands behind this library, and asks the kernel by syscall(2), is asked for this process alone.
int running_clock(Replica& replica, CarriedClock<int64_t>& clock, clockid_t which, timespec* into) {
  const OurCode ours_now;
  timespec now{}, here{};
  bool own = false;
  const auto ask = [&](timespec* at) {
    own = true;
    return ask_running_clock(clock, which, at);
  };
  const int64_t answer = decide_filled(replica, holdfast::redundant::clock_subject(which), &now, ask);
  if (answer != 0) return int(answer);
  if (own) clock.said(ns_of(now));
  else if (real().clock_gettime(which, &here) == 0) clock.heard(ns_of(now), ns_of(here));
  *into = now;
  return 0;
}

template <class Made>
bool is_made(const Made& made, holdfast::Bytes& answer) {
  answer.resize(sizeof made);
  std::memcpy(answer.data(), &made, sizeof made);
  return true;
}

// For a thread of the program that has not asked, by one of ours. Processor time of that thread only it can ask for.
bool ask_clock_ahead(uint64_t clock, holdfast::Bytes& answer) {
  using holdfast::redundant::clock_subject;
  if (clock == uint64_t(Subject::seconds)) return is_made(real().time(nullptr), answer);
  if (clock == uint64_t(Subject::processor)) return is_made(ask_processor(), answer);
  if (clock == uint64_t(Subject::time_of_day))
    return is_made(whole_of<timeval>([](timeval* at) { return int64_t(real().gettimeofday(at, nullptr)); }), answer);
  if (clock == clock_subject(CLOCK_PROCESS_CPUTIME_ID)) return is_made(whole_of<timespec>(ask_process_clock), answer);
  if (clock < clock_subject(0) || clock > clock_subject(CLOCK_TAI) || clock == clock_subject(CLOCK_THREAD_CPUTIME_ID)) return false;
  const auto which = clockid_t(clock - clock_subject(0));
  auto* const running = carried(which);
  const auto made =
      whole_of<timespec>([=](timespec* at) { return running ? ask_running_clock(*running, which, at) : int64_t(real().clock_gettime(which, at)); });
  if (running && made.returned == 0) running->said(ns_of(made.filled));
  return is_made(made, answer);
}

__attribute__((constructor)) void clocks_may_be_asked_ahead() { Replica::asks_clocks_by(ask_clock_ahead); }

int own_usage(Replica& replica, struct rusage* into) {
  static constinit CarriedTime user, system;
  const auto ask = [](struct rusage* at) {
    const int64_t answer = real().getrusage(RUSAGE_SELF, at);
    if (answer == 0) go_on(user, at->ru_utime), go_on(system, at->ru_stime);
    return answer;
  };
  const int64_t answer = decide_filled(replica, uint64_t(Subject::usage), into, ask);
  if (answer == 0) user.told(us_of(into->ru_utime)), system.told(us_of(into->ru_stime));
  return int(answer);
}

constexpr size_t most_random = 256;
struct Random {
  std::byte bytes[most_random];
};

// In pieces: all replicas ask for the same number of bytes.
ssize_t decide_random(Replica& replica, void* into, size_t bytes, unsigned flags) {
  size_t done = 0;
  while (done < bytes) {
    const size_t piece = std::min(bytes - done, most_random);
    Random random;
    const int64_t got =
        decide_filled(replica, uint64_t(Subject::random), &random, [=](Random* at) { return real().getrandom(at->bytes, piece, flags); });
    if (got < 0) return done > 0 ? ssize_t(done) : -1;
    std::memcpy(static_cast<std::byte*>(into) + done, random.bytes, size_t(got));
    done += size_t(got);
    if (size_t(got) < piece) break;
  }
  return ssize_t(done);
}

// The C library's arc4random, and std::random_device of the C++ library, which asks the processor. Their symbols: they are not in every header.
void fill_random(Replica& replica, void* into, size_t bytes) { (void)decide_random(replica, into, bytes, 0); }

constexpr size_t most_host_name = 256;
struct HostName {
  char text[most_host_name];
};

// As the C library does: what has no room is cut, and is an error.
int decide_host_name(Replica& replica, char* into, size_t bytes) {
  HostName name;
  if (decide_filled(replica, uint64_t(Subject::host), &name, [](HostName* at) { return int64_t(real().gethostname(at->text, sizeof at->text)); }) < 0)
    return -1;
  const size_t needed = strnlen(name.text, sizeof name.text - 1) + 1;
  std::memcpy(into, name.text, std::min(needed, bytes));
  return needed <= bytes ? 0 : (errno = ENAMETOOLONG, -1);
}

}  // namespace

namespace holdfast::intercept::posix {

timespec own_time(clockid_t which, const timespec& told) {
  const auto* const clock = carried(which);
  const int64_t ahead = clock ? clock->ahead() : 0;
  return ahead == 0 ? told : time_of(std::max<int64_t>(ns_of(told) - ahead, 0));
}

ssize_t read_random(void* into, size_t bytes) {
  Replica* const replica = Replica::now();
  return replica ? decide_random(*replica, into, bytes, 0) : real().getrandom(into, bytes, 0);
}

}  // namespace holdfast::intercept::posix

HF_DOOR int clock_gettime(clockid_t which, timespec* into) noexcept {
  Replica* const replica = replica_for(HF_CALLER);
  if (!replica) [[likely]]
    return real().clock_gettime(which, into);
  auto* const running = carried(which);
  if (asks_for_interpreter(HF_CALLER, which)) return int(running ? ask_running_clock(*running, which, into) : real().clock_gettime(which, into));
  if (which == CLOCK_PROCESS_CPUTIME_ID) return process_clock(*replica, into);
  if (running) return running_clock(*replica, *running, which, into);
  const uint64_t subject = holdfast::redundant::clock_subject(which);
  return int(decide_filled(*replica, subject, into, [=](timespec* at) { return real().clock_gettime(which, at); }));
}
HF_DOOR int gettimeofday(timeval* into, void* zone) noexcept {
  Replica* const replica = zone ? nullptr : replica_for(HF_CALLER);
  if (!replica) [[likely]]
    return real().gettimeofday(into, static_cast<struct timezone*>(zone));
  return int(decide_filled(*replica, uint64_t(Subject::time_of_day), into, [](timeval* at) { return real().gettimeofday(at, nullptr); }));
}
HF_DOOR time_t time(time_t* into) noexcept {
  Replica* const replica = replica_for(HF_CALLER);
  if (!replica) [[likely]]
    return real().time(into);
  const auto now = decided<time_t>(*replica, uint64_t(Subject::seconds), [] { return real().time(nullptr); });
  if (into) *into = now;
  return now;
}
HF_DOOR clock_t clock() noexcept {
  Replica* const replica = replica_for(HF_CALLER);
  if (!replica) [[likely]]
    return real().clock();
  const auto now = decided<clock_t>(*replica, uint64_t(Subject::processor), ask_processor);
  processor_time.told(now);
  return now;
}
HF_DOOR clock_t times(tms* into) noexcept {
  Replica* const replica = replica_for(HF_CALLER);
  if (!replica) [[likely]]
    return real().times(into);
  const OurCode ours_now;
  static constinit CarriedTime user, system;
  static constinit CarriedClock<int64_t> since_start(alike_ticks);
  bool own = false;
  const auto ask = [&](tms* at) {
    own = true;
    const int64_t answer = since_start.of(real().times(at));
    at->tms_utime = user.of(at->tms_utime), at->tms_stime = system.of(at->tms_stime);
    return answer;
  };
  tms now{}, here{};
  const auto answer = clock_t(decide_filled(*replica, uint64_t(Subject::process_times), &now, ask));
  if (own) since_start.said(answer);
  else since_start.heard(answer, real().times(&here));
  user.told(now.tms_utime), system.told(now.tms_stime);
  if (into) *into = now;
  return answer;
}
HF_DOOR int getrusage(__rusage_who_t who, struct rusage* into) noexcept {
  Replica* const replica = replica_for(HF_CALLER);
  if (!replica) [[likely]]
    return real().getrusage(who, into);
  if (who == RUSAGE_SELF && into) return own_usage(*replica, into);
  return int(decide_filled(*replica, uint64_t(Subject::usage), into, [=](struct rusage* at) { return real().getrusage(who, at); }));
}
HF_DOOR ssize_t getrandom(void* into, size_t bytes, unsigned flags) {
  Replica* const replica = replica_for(HF_CALLER);
  if (!replica) [[likely]]
    return real().getrandom(into, bytes, flags);
  return decide_random(*replica, into, bytes, flags);
}
HF_DOOR int getentropy(void* into, size_t bytes) {
  Replica* const replica = replica_for(HF_CALLER);
  if (!replica) [[likely]]
    return real().getentropy(into, bytes);
  if (bytes > most_random) return errno = EIO, -1;
  return decide_random(*replica, into, bytes, 0) == ssize_t(bytes) ? 0 : -1;
}
HF_DOOR uint32_t arc4random() noexcept {
  static auto* const native = next_of_name<uint32_t()>("arc4random");
  Replica* const replica = replica_for(HF_CALLER);
  if (!replica) [[likely]]
    return native();
  uint32_t number = 0;
  fill_random(*replica, &number, sizeof number);
  return number;
}
HF_DOOR void arc4random_buf(void* into, size_t bytes) noexcept {
  static auto* const native = next_of_name<void(void*, size_t)>("arc4random_buf");
  Replica* const replica = replica_for(HF_CALLER);
  if (!replica) [[likely]]
    return native(into, bytes);
  fill_random(*replica, into, bytes);
}
HF_DOOR uint32_t arc4random_uniform(uint32_t bound) noexcept {
  static auto* const native = next_of_name<uint32_t(uint32_t)>("arc4random_uniform");
  Replica* const replica = replica_for(HF_CALLER);
  if (!replica) [[likely]]
    return native(bound);
  if (bound < 2) return 0;
  const uint32_t uneven = uint32_t(-bound) % bound;  // so many of the lowest would make some answers likelier than others
  uint32_t number = 0;
  do fill_random(*replica, &number, sizeof number);
  while (number < uneven);
  return number % bound;
}
// Nobody calls it: without one of ours the C++ library that is linked in would bring its own, and the call below with it.
extern "C" __attribute__((visibility("hidden"), used, noreturn)) void _ZNSt13random_device7_M_initEPKcm() { __builtin_trap(); }
HF_DOOR unsigned _ZNSt13random_device9_M_getvalEv(void* device) {
  static auto* const native = next_of_name<unsigned(void*)>("_ZNSt13random_device9_M_getvalEv");
  Replica* const replica = replica_for(HF_CALLER);
  if (!replica) [[likely]]
    return native(device);
  unsigned number = 0;
  fill_random(*replica, &number, sizeof number);
  return number;
}

// Each replica's own. From now on a path may have it in it.
HF_DOOR pid_t getpid() noexcept {
  if (replica_for(HF_CALLER)) [[unlikely]]
    holdfast::file::program_asks_for_its_number();
  return pid_t(syscall(SYS_getpid));
}
HF_DOOR int gethostname(char* into, size_t bytes) noexcept {
  Replica* const replica = replica_for(HF_CALLER);
  if (!replica) [[likely]]
    return real().gethostname(into, bytes);
  return decide_host_name(*replica, into, bytes);
}
HF_DOOR int __gethostname_chk(char* into, size_t bytes, size_t room) noexcept {
  static auto* const native = next_of_name<int(char*, size_t, size_t)>("__gethostname_chk");
  Replica* const replica = replica_for(HF_CALLER);
  if (!replica || bytes > room) [[likely]]
    return native(into, bytes, room);
  return decide_host_name(*replica, into, bytes);
}
HF_DOOR int uname(struct utsname* into) noexcept {
  Replica* const replica = replica_for(HF_CALLER);
  if (!replica) [[likely]]
    return real().uname(into);
  return int(decide_filled(*replica, uint64_t(Subject::system), into, [](struct utsname* at) { return int64_t(real().uname(at)); }));
}
