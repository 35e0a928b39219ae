/* A counter that several ranks, and several replicas of each, add to under a lock.
 *
 *   locks HOW TIMES PAUSE_MS     HOW: record, open, lockf, flock, beside (by flock on another file, read-only), try (F_SETLK until it succeeds),
 *                                linked (as record; every second rank by the name "linked")
 *
 * Each time the counter in the file "counter" is read and written one higher while the lock is held. A negative pause
 * ends when there is a file "go". Rank R writes what it has seen to "seen.R". */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif

static int record(int fd, int command, int type) {
  struct flock part = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 8};
  return fcntl(fd, command, &part);
}

static int lock(const char* how, int fd, int beside) {
  if (!strcmp(how, "record") || !strcmp(how, "linked")) return record(fd, F_SETLKW, F_WRLCK);
  if (!strcmp(how, "open")) return record(fd, F_OFD_SETLKW, F_WRLCK);
  if (!strcmp(how, "lockf")) return lockf(fd, F_LOCK, 0);
  if (!strcmp(how, "flock")) return flock(fd, LOCK_EX);
  if (!strcmp(how, "beside")) return flock(beside, LOCK_EX);
  while (record(fd, F_SETLK, F_WRLCK) != 0) {
    if (errno != EAGAIN && errno != EACCES) return -1;
    usleep(2000);
  }
  return 0;
}

static int unlock(const char* how, int fd, int beside) {
  if (!strcmp(how, "open")) return record(fd, F_OFD_SETLK, F_UNLCK);
  if (!strcmp(how, "lockf")) return lseek(fd, 0, SEEK_SET) == 0 ? lockf(fd, F_ULOCK, 0) : -1;
  if (!strcmp(how, "flock")) return flock(fd, LOCK_UN);
  if (!strcmp(how, "beside")) return flock(beside, LOCK_UN);
  return record(fd, F_SETLK, F_UNLCK);
}

static int fails(const char* what) { return fprintf(stderr, "%s: %s\n", what, strerror(errno)), 1; }

static int add(const char* how, int times, int pause_ms, int rank) {
  char text[32] = "", name[32];
  const char* counter = !strcmp(how, "linked") && rank % 2 ? "linked" : "counter";
  const int fd = open(counter, O_RDWR | O_CREAT, 0644), beside = open("beside", O_RDONLY | O_CREAT, 0644);
  snprintf(name, sizeof name, "seen.%d", rank);
  FILE* seen = fopen(name, "w");
  if (fd < 0 || beside < 0 || !seen) return fails("open");
  for (int i = 0; i < times; i++) {
    if (lseek(fd, 0, SEEK_SET) != 0 || lock(how, fd, beside) != 0) return fails("lock");
    const ssize_t got = pread(fd, text, 8, 0);
    const int value = got == 8 ? atoi(text) : 0;
    while (pause_ms < 0 && access("go", F_OK) != 0) usleep(10000);
    if (pause_ms > 0) usleep(1000 * (unsigned)pause_ms);
    snprintf(text, sizeof text, "%7d\n", value + 1);
    if (pwrite(fd, text, 8, 0) != 8) return fails("write");
    fprintf(seen, "%d\n", value);
    if (unlock(how, fd, beside) != 0) return fails("unlock");
  }
  return fclose(seen) != 0 || close(fd) != 0 || close(beside) != 0;
}

int main(int argc, char** argv) {
  int rank = 0;
#ifdef WITH_MPI
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#endif
  const int failed = argc < 4 || add(argv[1], atoi(argv[2]), atoi(argv[3]), rank);
#ifdef WITH_MPI
  MPI_Finalize();
#endif
  return failed;
}
