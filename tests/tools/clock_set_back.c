// Preloaded: what a process is told of the time of day is earlier by HOLDFAST_CLOCK_SET_BACK seconds.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec* into) {
  const int result = (int)syscall(SYS_clock_gettime, clock, into);
  const char* const seconds = getenv("HOLDFAST_CLOCK_SET_BACK");
  if (result == 0 && seconds && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) into->tv_sec -= atol(seconds);
  return result;
}
