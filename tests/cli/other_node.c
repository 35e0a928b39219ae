/* Preloaded behind Holdfast: team 1 of a redundant job has the monotonic clock of a node that has been up for twelve days longer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#include "of_team.h"

static time_t ahead;

__attribute__((constructor)) static void look(void) {
  if (is_of_team('1')) ahead = 1000000;
}

int clock_gettime(clockid_t which, struct timespec *at) {
  const long failed = syscall(SYS_clock_gettime, which, at);
  if (failed == 0 && which == CLOCK_MONOTONIC) at->tv_sec += ahead;
  return (int)failed;
}

clock_t times(struct tms *used) { return (clock_t)syscall(SYS_times, used) + (clock_t)ahead * sysconf(_SC_CLK_TCK); }

/* All that wait by that clock. */
static struct timespec on_this_node(const struct timespec *wanted) { return (struct timespec){wanted->tv_sec - ahead, wanted->tv_nsec}; }

int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t which, const struct timespec *until) {
  const struct timespec here = on_this_node(until);
  int (*native)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *) = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
  return native(condition, mutex, which, which == CLOCK_MONOTONIC ? &here : until);
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
  const struct timespec here = on_this_node(until);
  int (*native)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *) = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  struct timespec today;
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &today);
  return native(condition, mutex, until->tv_sec > today.tv_sec - 100000000 ? until : &here);
}

int sem_clockwait(sem_t *semaphore, clockid_t which, const struct timespec *until) {
  const struct timespec here = on_this_node(until);
  int (*native)(sem_t *, clockid_t, const struct timespec *) = dlsym(RTLD_NEXT, "sem_clockwait");
  return native(semaphore, which, which == CLOCK_MONOTONIC ? &here : until);
}

int timerfd_settime(int fd, int flags, const struct itimerspec *wanted, struct itimerspec *before) {
  struct itimerspec here = *wanted;
  if (flags & TFD_TIMER_ABSTIME) here.it_value = on_this_node(&wanted->it_value);
  return (int)syscall(SYS_timerfd_settime, fd, flags, &here, before);
}

int timer_settime(timer_t timer, int flags, const struct itimerspec *wanted, struct itimerspec *before) {
  struct itimerspec here = *wanted;
  int (*native)(timer_t, int, const struct itimerspec *, struct itimerspec *) = dlsym(RTLD_NEXT, "timer_settime");
  if (flags & TIMER_ABSTIME) here.it_value = on_this_node(&wanted->it_value);
  return native(timer, flags, &here, before);
}

int clock_nanosleep(clockid_t which, int flags, const struct timespec *wanted, struct timespec *left) {
  struct timespec until = *wanted;
  if (which == CLOCK_MONOTONIC && (flags & TIMER_ABSTIME)) until.tv_sec -= ahead;
  return syscall(SYS_clock_nanosleep, which, flags, &until, left) == 0 ? 0 : errno;
}
