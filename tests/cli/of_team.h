/* For programs that do another thing in one team of a redundant job than in the others. They define _GNU_SOURCE first. */
#pragma once
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As the kernel shows it to each replica for itself: what this process was started with. The variable is no longer in the environment then. */
static inline int is_of_team(char team) {
  static char all[1 << 16];
  const char variable[] = "HOLDFAST_REPLICA=";
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/environ", O_RDONLY | O_CLOEXEC);
  const long bytes = fd < 0 ? 0 : syscall(SYS_read, fd, all, sizeof all);
  if (fd >= 0) syscall(SYS_close, fd);
  const char *at = bytes > 0 ? memmem(all, (size_t)bytes, variable, sizeof variable - 1) : NULL;
  return at && at[sizeof variable - 1] == team;
}
