// Preloaded behind everything else: Debian's MPICH, whose ranks spin while they wait, sleeps for a moment after some looks in vain. On few processors
// each wait costs it the time slices of all others that run there: tests beside it and its own ranks. What it does is otherwise what it does.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <time.h>

enum { LOOKS_IN_VAIN = 50, NANOSECONDS = 20000 };

// Unified Communication X: how many events there were.
unsigned ucp_worker_progress(void *worker) {
  static unsigned (*progress)(void *);
  static __thread unsigned in_vain;
  if (progress == NULL) progress = (unsigned (*)(void *))dlsym(RTLD_NEXT, "ucp_worker_progress");
  const unsigned events = progress(worker);
  in_vain = events == 0 ? in_vain + 1 : 0;
  if (in_vain < LOOKS_IN_VAIN) return events;
  in_vain = 0;
  const struct timespec moment = {0, NANOSECONDS};
  const int error = errno;
  nanosleep(&moment, NULL);
  errno = error;
  return events;
}
