// Preloaded behind everything else: ranks that wait sleep for a moment after some looks in vain. Debian's MPICH spins, and Open MPI only gives its turn
// away, so it is soon back. On few processors each wait costs the time slices of all others that run there: tests beside it and its own ranks.
// What they do is otherwise what they do.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LOOKS_IN_VAIN = 50, NANOSECONDS = 20000 };

static void sleep_for_a_moment(void) {
  const struct timespec moment = {0, NANOSECONDS};
  const int error = errno;
  nanosleep(&moment, NULL);
  errno = error;
}

// Unified Communication X, which MPICH asks: how many events there were.
unsigned ucp_worker_progress(void *worker) {
  static unsigned (*progress)(void *);
  static __thread unsigned in_vain;
  if (progress == NULL) progress = (unsigned (*)(void *))dlsym(RTLD_NEXT, "ucp_worker_progress");
  const unsigned events = progress(worker);
  in_vain = events == 0 ? in_vain + 1 : 0;
  if (in_vain < LOOKS_IN_VAIN) return events;
  in_vain = 0;
  sleep_for_a_moment();
  return events;
}

// Nanoseconds. Asked of the kernel and not of the C library, for another preloaded library may answer there, and syscall(2) is a door of Holdfast's:
// a replica would wait until its leader asks as well. UCX's own thread comes here once, or not at all.
static int64_t now(void) {
  struct timespec time;
#if defined(__x86_64__)
  long answer;
  __asm__ volatile("syscall" : "=a"(answer) : "a"(SYS_clock_gettime), "D"(CLOCK_MONOTONIC), "S"(&time) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  register long number __asm__("x8") = SYS_clock_gettime;
  register long clock __asm__("x0") = CLOCK_MONOTONIC;
  register struct timespec *into __asm__("x1") = &time;
  __asm__ volatile("svc 0" : "+r"(clock) : "r"(number), "r"(into) : "memory");
#else
#error "another processor: how is the kernel asked there?"
#endif
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

// Open MPI gives its turn away after each look in vain. That one look was not is seen by the work after it only.
int sched_yield(void) {
  enum { YIELDS = 200, WORK = 200000 };
  static __thread unsigned in_vain;
  static __thread int64_t last;
  in_vain = now() - last < WORK ? in_vain + 1 : 0;
  if (in_vain < YIELDS) {
    syscall(SYS_sched_yield);
  } else {
    sleep_for_a_moment();
  }
  last = now();
  return 0;
}
