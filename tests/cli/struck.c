/* Writes a file by calls that are large enough to be shared out, or reads it so, and is struck at one of them in one team:
 *
 *   struck write|read FILE TEAM before|in:MICROSECONDS|after kill|stop|flip|nothing MARK MEBIBYTES
 *
 * That call is of so many mebibytes. What it has read it sums up in a line on standard output. MARK, a file that replicas do not know of, is made where the blow really falls in the call. Without MPI. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "of_team.h"

enum { CALLS = 5, STRUCK = 2, USUAL = 256 << 10 };

static volatile int in_the_call;
static int blow;
static long microseconds;
static size_t longest;
static const char *mark;

static void strike(void) { syscall(SYS_kill, (pid_t)syscall(SYS_getpid), blow); }

static void *strike_in_the_call(void *unused) {
  const struct timespec a_moment = {0, 50000}, some_way_into_it = {0, 1000 * microseconds};
  while (!in_the_call) syscall(SYS_nanosleep, &a_moment, NULL);
  syscall(SYS_nanosleep, &some_way_into_it, NULL);
  if (in_the_call) syscall(SYS_close, (int)syscall(SYS_openat, AT_FDCWD, mark, O_CREAT | O_WRONLY, 0644));
  strike();
  return unused;
}

static size_t bytes_of(int call) { return call == STRUCK ? longest : USUAL; }

static void fill(uint64_t *words, int call) {
  for (size_t i = 0; i < bytes_of(call) / sizeof *words; ++i) words[i] = (uint64_t)(call + 1) * 0x9e3779b97f4a7c15u ^ i;
}

static uint64_t sum_of(const uint64_t *words, int call, uint64_t sum) {
  for (size_t i = 0; i < bytes_of(call) / sizeof *words; ++i) sum = sum * 31 + words[i];
  return sum;
}

static int call_once(int writes, int fd, void *bytes, int call, off_t at, int is_struck) {
  in_the_call = is_struck;
  const ssize_t done = writes ? pwrite(fd, bytes, bytes_of(call), at) : pread(fd, bytes, bytes_of(call), at);
  in_the_call = 0;
  return done == (ssize_t)bytes_of(call);
}

/* Only the calls that are meant are struck: a reader has written everything before. */
static int make_all(int writes, int fd, uint64_t *bytes, const char *when, uint64_t *sum) {
  off_t at = 0;
  for (int call = 0; call < CALLS; ++call) {
    const int now = when && call == STRUCK;
    if (writes) fill(bytes, call);
    if (now && blow == 0) bytes[1000] ^= 4;
    if (now && blow && !strcmp(when, "before")) strike();
    if (!call_once(writes, fd, bytes, call, at, now)) return 0;
    if (now && blow && !strcmp(when, "after")) strike();
    if (!writes) *sum = sum_of(bytes, call, *sum);
    at += (off_t)bytes_of(call);
  }
  return 1;
}

int main(int count, char **words) {
  if (count != 8) return 2;
  const int reads = !strcmp(words[1], "read"), is_struck = is_of_team(words[3][0]) && strcmp(words[5], "nothing");
  pthread_t thread;
  const char *const when = is_struck ? words[4] : NULL;
  blow = !strcmp(words[5], "kill") ? SIGKILL : !strcmp(words[5], "stop") ? SIGSTOP : 0;
  microseconds = !strncmp(words[4], "in:", 3) ? atol(words[4] + 3) : 0;
  mark = words[6];
  longest = (size_t)atol(words[7]) << 20;
  /* Early: a new thread may have to wait for its first turn. */
  if (when && microseconds > 0 && pthread_create(&thread, NULL, strike_in_the_call, NULL) != 0) return 1;
  uint64_t *const bytes = malloc(longest);
  uint64_t sum = 0;
  const int fd = open(words[2], O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (!bytes || fd < 0 || !make_all(1, fd, bytes, reads ? NULL : when, &sum)) return perror(words[2]), 1;
  if (reads && (memset(bytes, 0, longest), !make_all(0, fd, bytes, when, &sum))) return perror(words[2]), 1;
  if (close(fd) != 0) return 1;
  printf("sum %016llx\n", (unsigned long long)sum);
  return 0;
}
