/* Small writes to one file, as `test_buffers_of_replicas.py` wants them:

     small_writes steps FILE STEPS REST_MS   for each step 64 KiB in pieces of 1 KiB, then a rest; prints the seconds and how many calls have failed
     small_writes gather FILE CALLS          a byte a call, once `begun` is there
     small_writes append FILE LINES REST_MS  a line a call, at the end, and a rest
     small_writes ranks FILE                 of two ranks (with -DWITH_MPI): what one writes when both use it, the other one reads */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static int open_to(const char *path, int flags) {
  const int fd = open(path, flags, 0666);
  if (fd < 0) fail(path);
  return fd;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void rest(int ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
  nanosleep(&time, 0);
}

enum { most_failed = 20 };

static int steps(const char *path, int count, int rest_ms) {
  char piece[1024];
  int failed = 0;
  const int fd = open_to(path, O_CREAT | O_TRUNC | O_WRONLY);
  const double begun = now();
  for (int step = 0; step < count; ++step) {
    memset(piece, 'a' + step % 26, sizeof piece);
    for (int i = 0; i < 64; ++i)
      if (write(fd, piece, sizeof piece) != (ssize_t)sizeof piece) {
        ++failed, --i;
        if (failed == most_failed) printf("%s\n", strerror(errno)), exit(3);
      }
    rest(rest_ms);
  }
  if (close(fd) != 0) ++failed;
  printf("%.3f s, %d failed\n", now() - begun, failed);
  return 0;
}

static int gather(const char *path, int calls) {
  const int fd = open_to(path, O_CREAT | O_TRUNC | O_WRONLY);
  while (access("begun", F_OK) != 0) rest(10);
  for (int call = 0; call < calls; ++call)
    if (write(fd, "x", 1) != 1) fail("write");
  return close(fd);
}

static int append(const char *path, int lines, int rest_ms) {
  const int fd = open_to(path, O_CREAT | O_APPEND | O_WRONLY);
  for (int line = 0; line < lines; ++line) {
    char text[32];
    const int length = snprintf(text, sizeof text, "line %d\n", line);
    if (write(fd, text, (size_t)length) != length) fail("write");
    rest(rest_ms);
  }
  return close(fd);
}

#ifdef WITH_MPI
/* The last piece is written after both have used it, and is read before anybody closes it. */
static int ranks(const char *path) {
  char piece[100], seen[400];
  int rank, fd = -1;
  ssize_t got = 0;
  MPI_Init(0, 0);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    fd = open_to(path, O_CREAT | O_TRUNC | O_RDWR);
    memset(piece, 'a', sizeof piece);
    for (int i = 0; i < 2; ++i)
      if (write(fd, piece, sizeof piece) != (ssize_t)sizeof piece) fail("write");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) fd = open_to(path, O_RDONLY), (void)!pread(fd, seen, 1, 0); /* by which it has buffers, too */
  rest(50);                                                                  /* a tick of the kernel's clock at least */
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0 && (memset(piece, 'b', sizeof piece), write(fd, piece, sizeof piece)) != (ssize_t)sizeof piece) fail("write");
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    got = pread(fd, seen, sizeof seen, 0);
    printf("%zd bytes, the last one is %c\n", got, got > 0 ? seen[got - 1] : '-');
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (close(fd) != 0) fail("close");
  MPI_Finalize();
  return 0;
}
#endif

int main(int argc, char **argv) {
  if (argc == 5 && !strcmp(argv[1], "steps")) return steps(argv[2], atoi(argv[3]), atoi(argv[4]));
  if (argc == 4 && !strcmp(argv[1], "gather")) return gather(argv[2], atoi(argv[3]));
  if (argc == 5 && !strcmp(argv[1], "append")) return append(argv[2], atoi(argv[3]), atoi(argv[4]));
#ifdef WITH_MPI
  if (argc == 3 && !strcmp(argv[1], "ranks")) return ranks(argv[2]);
#endif
  return 2;
}
