// Sleeps of a team that was started again: as long as it repeats what is written down, time need not pass for it. And sleeps until a time by a clock that is
// the leader's. One load where the process is no replica.
#include <time.h>
#include <unistd.h>

#include "base/in_mpi.hpp"
#include "frontend/posix/callers.hpp"
#include "intercept/posix/decided.hpp"
#include "intercept/posix/door.hpp"
#include "redundant/twins/replica.hpp"

namespace {

using holdfast::intercept::posix::next_of_name;
using holdfast::intercept::posix::own_time;
using holdfast::intercept::posix::replica_for;

bool is_behind(const void* caller) {
  auto* const replica = holdfast::redundant::Replica::now();
  return replica && holdfast::in_mpi_calls == 0 && holdfast::frontend::posix::is_of_the_program(caller) && replica->is_behind();
}

}  // namespace

HF_DOOR unsigned sleep(unsigned seconds) {
  static auto* const native = next_of_name<unsigned(unsigned)>("sleep");
  return is_behind(__builtin_return_address(0)) ? 0 : native(seconds);
}
HF_DOOR int usleep(useconds_t microseconds) {
  static auto* const native = next_of_name<int(useconds_t)>("usleep");
  return is_behind(__builtin_return_address(0)) ? 0 : native(microseconds);
}
HF_DOOR int nanosleep(const timespec* wanted, timespec* left) {
  static auto* const native = next_of_name<int(const timespec*, timespec*)>("nanosleep");
  return is_behind(__builtin_return_address(0)) ? 0 : native(wanted, left);
}
HF_DOOR int clock_nanosleep(clockid_t which, int flags, const timespec* wanted, timespec* left) {
  static auto* const native = next_of_name<int(clockid_t, int, const timespec*, timespec*)>("clock_nanosleep");
  if (is_behind(__builtin_return_address(0))) return 0;
  if (!(flags & TIMER_ABSTIME) || !wanted || !replica_for(__builtin_return_address(0))) [[likely]]
    return native(which, flags, wanted, left);
  const timespec until = own_time(which, *wanted);
  return native(which, flags, &until, left);
}
