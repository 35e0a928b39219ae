/* One checkpoint file of all ranks, by the C library: each rank opens it by itself and writes its own rows.
     posix run STEPS MS HOW  from the newest there is: a file for each step, with a pause after it. HOW they open it is
                             trunc: all make and truncate it; first: rank 0 does, and the others open what it made; create: all make it, none
                             truncates it; stdio: as first, by streams
     posix late              the last rank comes to each step when all others have closed it, and truncates the file as they did
     posix torn              writes step 1, and in step 2 the last rank is killed; started again it finds step 1
     posix slots             two slots, written anew in turn and updated in place, then one that grows at its end
     posix calls             what a program may do with a file of all ranks that it has open */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { rows = 1500, numbers = 100 }; /* of each rank; rows of all ranks in turn, so that targets' rows are of several */
enum { row_bytes = numbers * sizeof(int) };

static const char* name(int step) {
  static char text[64];
  snprintf(text, sizeof text, "ck/ck.%d", step);
  return text;
}

static int value(int step, int of_rank, int i) { return step * 1000000 + of_rank * 100000 + i; }
static long file_bytes(void) { return (long)ranks * rows * row_bytes; }

static int* own_rows(int step) {
  static int own[rows * numbers];
  for (int i = 0; i < rows * numbers; ++i) own[i] = value(step, rank, i);
  return own;
}

static void write_rows(int fd, int step) {
  const int* own = own_rows(step);
  for (int row = 0; row < rows; ++row) {
    const off_t at = ((off_t)row * ranks + rank) * row_bytes;
    CHECK(pwrite(fd, own + row * numbers, row_bytes, at) == row_bytes);
  }
}

static void write_stream(const char* mode, int step) {
  const int* own = own_rows(step);
  FILE* file = fopen(name(step), mode);
  CHECK(file != NULL);
  if (!file) return;
  for (int row = 0; row < rows; ++row) {
    CHECK(fseeko(file, ((off_t)row * ranks + rank) * row_bytes, SEEK_SET) == 0);
    CHECK(fwrite(own + row * numbers, row_bytes, 1, file) == 1);
  }
  CHECK(fclose(file) == 0);
}

static void write_by(int flags, int step, int as_step) {
  const int fd = open(name(step), flags, 0644);
  CHECK(fd >= 0);
  if (fd < 0) return;
  write_rows(fd, as_step);
  CHECK(close(fd) == 0);
}

/* Each truncates it, before any of them writes. */
static void write_by_all(int step) {
  const int fd = open(name(step), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  CHECK(fd >= 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (fd < 0) return;
  write_rows(fd, step);
  CHECK(close(fd) == 0);
}

/* Rank 0's part is done before the others begin. */
static void after_rank_0(void (*part)(int first, int step), int step) {
  if (rank == 0) part(1, step);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 0) part(0, step);
}

static void by_descriptor(int first, int step) { write_by(first ? O_RDWR | O_CREAT | O_TRUNC : O_RDWR, step, step); }
static void by_stream(int first, int step) { write_stream(first ? "w" : "r+", step); }

static void write_step(int step, const char* how) {
  if (strcmp(how, "first") == 0) after_rank_0(by_descriptor, step);
  else if (strcmp(how, "stdio") == 0) after_rank_0(by_stream, step);
  else if (strcmp(how, "create") == 0) write_by(O_WRONLY | O_CREAT, step, step);
  else write_by_all(step);
}

/* All of it, by each rank. -1: there is none. */
static int read_step(int step, int as_step) {
  struct stat state;
  const int fd = open(name(step), O_RDONLY);
  if (fd < 0) return -1;
  CHECK(fstat(fd, &state) == 0 && state.st_size == file_bytes());
  char* all = malloc((size_t)file_bytes());
  long got = 0;
  for (ssize_t now; got < file_bytes() && (now = read(fd, all + got, (size_t)(file_bytes() - got))) > 0;) got += now;
  CHECK(got == file_bytes());
  int bad = 0;
  for (long i = 0; i < got / (long)sizeof(int); ++i) {
    const long row = i / numbers;
    bad += ((int*)all)[i] != value(as_step, (int)(row % ranks), (int)(row / ranks * numbers + i % numbers));
  }
  CHECK(bad == 0);
  free(all);
  CHECK(close(fd) == 0);
  return 0;
}

static int any_wrong(void) {
  int any = wrong;
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return any;
}

static void run(int steps, int ms, const char* how) {
  int begun = steps;
  while (begun > 0 && read_step(begun, begun) < 0) --begun;
  if (any_wrong()) return;
  if (rank == 0) printf("begins after step %d\n", begun), fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int step = begun + 1; step <= steps && !any_wrong(); ++step) {
    write_step(step, how);
    usleep((useconds_t)ms * 1000);
  }
  if (rank == 0) printf("ends after step %d\n", steps);
}

/* Nobody waits for anybody. */
static void late(void) {
  const int is_last = rank == ranks - 1;
  for (int step = 1; step <= 2; ++step) {
    if (is_last) sleep(2);
    write_by(O_WRONLY | O_CREAT, step, step);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(read_step(1, 1) == 0);
  CHECK(read_step(2, 2) == 0);
}

static void torn(void) {
  const int is_there = read_step(1, 1) == 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (is_there) {
    CHECK(access(name(2), F_OK) == -1 && errno == ENOENT);
    if (rank == 0) printf("found\n");
    return;
  }
  write_step(1, "trunc");
  MPI_Barrier(MPI_COMM_WORLD);
  const int fd = open(name(2), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  MPI_Barrier(MPI_COMM_WORLD);
  write_rows(fd, 2);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != ranks - 1) CHECK(close(fd) == 0);
  sleep(3); /* step 1 becomes whole: all have begun another one */
  if (rank == ranks - 1) kill(getpid(), SIGKILL);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void slots(void) {
  for (int turn = 1; turn <= 4; ++turn) {
    if (rank == 0) write_by(O_WRONLY | O_CREAT | O_TRUNC, 1 + turn % 2, turn);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) write_by(O_WRONLY, 1 + turn % 2, turn);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(read_step(1 + turn % 2, turn) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  /* In place; then one to whose end each rank adds. */
  write_by(O_RDWR, 2, 5);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(read_step(2, 5) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  const int fd = open(name(3), O_WRONLY | O_CREAT | O_APPEND, 0644);
  char text[16];
  snprintf(text, sizeof text, "rank %d\n", rank % 10);
  CHECK(write(fd, text, 7) == 7);
  CHECK(close(fd) == 0);
}

static void calls(void) {
  struct stat state, by_name;
  char text[5];
  const off_t mine = rank * 4;
  const int fd = open(name(1), O_RDWR | O_CREAT, 0640);
  CHECK(fd >= 0 && pwrite(fd, "abcd", 4, mine) == 4);
  CHECK(pread(fd, text, 4, mine) == 4 && memcmp(text, "abcd", 4) == 0); /* its own, before anybody has closed it */
  CHECK(fsync(fd) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(stat(name(1), &by_name) == 0 && by_name.st_size == 4 * ranks && (by_name.st_mode & 0777) == 0640);
  const int other = dup(fd);
  CHECK(close(fd) == 0 && pwrite(other, "ef", 2, mine) == 2);
  const pid_t child = fork();
  if (child == 0) _exit(pwrite(other, "g", 1, mine + 2) == 1 ? 0 : 1);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(fstat(other, &state) == 0 && state.st_size == 4 * ranks);
  CHECK(close(other) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  const int all = open(name(1), O_RDONLY);
  for (int of = 0; of < ranks; ++of) CHECK(pread(all, text, 4, of * 4) == 4 && memcmp(text, "efgd", 4) == 0);
  CHECK(close(all) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(open(name(1), O_WRONLY | O_CREAT | O_EXCL, 0644) == -1 && errno == EEXIST);
  CHECK(open(name(3), O_WRONLY) == -1 && errno == ENOENT);
  MPI_Barrier(MPI_COMM_WORLD);
  /* One that is removed while it grows; and one that lives on in what follows. */
  write_by(O_WRONLY | O_CREAT, 2, 2);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) CHECK(unlink(name(2)) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(access(name(2), F_OK) == -1 && errno == ENOENT);
  MPI_Barrier(MPI_COMM_WORLD);
  write_by(O_WRONLY | O_CREAT, 4, 4);
}

int main(int count, char** words) {
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (count == 5 && strcmp(words[1], "run") == 0) run(atoi(words[2]), atoi(words[3]), words[4]);
  else if (count == 2 && strcmp(words[1], "late") == 0) late();
  else if (count == 2 && strcmp(words[1], "torn") == 0) torn();
  else if (count == 2 && strcmp(words[1], "slots") == 0) slots();
  else if (count == 2 && strcmp(words[1], "calls") == 0) calls();
  else wrong = 1;
  const int failed = any_wrong();
  MPI_Finalize();
  return failed;
}
