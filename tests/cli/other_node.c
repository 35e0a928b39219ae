/* Preloaded behind Holdfast: team 1 of a redundant job has the monotonic clock of a node that has been up for twelve days longer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static time_t ahead;

/* The variable is no longer in the environment when a program looks. */
__attribute__((constructor)) static void look(void) {
  static char all[1 << 16];
  const char variable[] = "HOLDFAST_REPLICA=1";
  const long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/environ", O_RDONLY | O_CLOEXEC);
  const long bytes = fd < 0 ? 0 : syscall(SYS_read, fd, all, sizeof all);
  syscall(SYS_close, fd);
  if (bytes > 0 && memmem(all, (size_t)bytes, variable, sizeof variable - 1)) ahead = 1000000;
}

int clock_gettime(clockid_t which, struct timespec *at) {
  const long failed = syscall(SYS_clock_gettime, which, at);
  if (failed == 0 && which == CLOCK_MONOTONIC) at->tv_sec += ahead;
  return (int)failed;
}

int clock_nanosleep(clockid_t which, int flags, const struct timespec *wanted, struct timespec *left) {
  struct timespec until = *wanted;
  if (which == CLOCK_MONOTONIC && (flags & TIMER_ABSTIME)) until.tv_sec -= ahead;
  return syscall(SYS_clock_nanosleep, which, flags, &until, left) == 0 ? 0 : errno;
}
