/* A serial program with plain calls: posix_bench --mode write|read|pass|names --path FILE --bytes N --piece N [--verify] [--sync]
   [--processes P | --files F] [--copies C]
   write and read move N bytes in pieces; pass reads one byte of a file N times, which measures the call;
   names opens a file to write, closes and looks at it N times. With --processes so many of
   them do it side by side, each with a file of its own, FILE.0 and so on; with --files one does it so often, one file
   after another. With --copies each piece is written to so many files, FILE,
   FILE.1 and so on: what C plain copies cost by hand. It knows nothing of Holdfast; the line that it prints is that
   of the MPI programs. */
#include <fcntl.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static double now_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double cpu_seconds(int who) {
  struct rusage used;
  getrusage(who, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static uint64_t peak_resident_bytes(int who) {
  struct rusage used;
  getrusage(who, &used);
  return (uint64_t)used.ru_maxrss * 1024;
}

/* What lies at a byte of the file does not depend on the pieces: it comes again every 16 MiB. */
enum { period = 16 << 20 };
static uint64_t word(uint64_t n) { return n % (period / 8) * 0x9e3779b97f4a7c15u + 1; }

static void fill(uint64_t *piece, uint64_t bytes, uint64_t at) {
  for (uint64_t i = 0; i < bytes / 8; ++i) piece[i] = word(at / 8 + i);
}

static void compare(const uint64_t *piece, uint64_t bytes, uint64_t at) {
  for (uint64_t i = 0; i < bytes / 8; ++i)
    if (piece[i] != word(at / 8 + i)) {
      fprintf(stderr, "wrong data at byte %llu\n", (unsigned long long)(at + 8 * i));
      exit(1);
    }
}

struct plan {
  const char *mode;
  uint64_t bytes, piece;
  int verify, sync, copies;
};
enum { most_copies = 8 };

static double opened, closing; /* when */

static int open_copy(const struct plan *plan, const char *path, int copy) {
  char name[4096];
  snprintf(name, sizeof name, copy ? "%s.%d" : "%s", path, copy);
  const int fd = open(name, !strcmp(plan->mode, "write") ? O_CREAT | O_TRUNC | O_WRONLY : O_RDONLY, 0666);
  if (fd < 0) fail(name);
  return fd;
}

static void move_pieces(const struct plan *plan, const int *files, char *data) {
  const int writes = !strcmp(plan->mode, "write");
  for (uint64_t at = 0; at < plan->bytes; at += plan->piece)
    for (int c = 0; c < plan->copies; ++c) {
      const ssize_t done = writes ? write(files[c], data + at % period, plan->piece) : read(files[c], data, plan->piece);
      if (done != (ssize_t)plan->piece) fail(plan->mode);
      if (plan->verify && !writes) compare((const uint64_t *)data, plan->piece, at);
    }
}

static void pass(const struct plan *plan, int file, char *data) {
  for (uint64_t i = 0; i < plan->bytes; ++i)
    if (pread(file, data, 1, 0) != 1) fail("pread");
}

static void use_name(const struct plan *plan, const char *path) {
  struct stat state;
  for (uint64_t i = 0; i < plan->bytes; ++i) {
    const int fd = open(path, O_CREAT | O_WRONLY, 0666);
    if (fd < 0 || close(fd) || stat(path, &state)) fail(path);
  }
}

static void move(const struct plan *plan, const char *path, char *data) {
  int files[most_copies];
  for (int c = 0; c < plan->copies; ++c) files[c] = open_copy(plan, path, c);
  opened = now_seconds();
  if (!strcmp(plan->mode, "pass")) pass(plan, files[0], data);
  else if (!strcmp(plan->mode, "names")) use_name(plan, path);
  else move_pieces(plan, files, data);
  for (int c = 0; plan->sync && c < plan->copies; ++c)
    if (fsync(files[c])) fail("fsync");
  closing = now_seconds();
  for (int c = 0; c < plan->copies; ++c)
    if (close(files[c])) fail("close");
}

static void move_one_by_one(const struct plan *plan, const char *path, char *data, int files) {
  for (int i = 0; i < files; ++i) {
    char own[4096];
    snprintf(own, sizeof own, "%s.%d", path, i);
    move(plan, own, data);
  }
}

/* Opening and closing are within each one's own time. */
static void move_each(const struct plan *plan, const char *path, char *data, int processes) {
  for (int i = 0; i < processes; ++i) {
    const pid_t child = fork();
    if (child < 0) fail("fork");
    if (child) continue;
    char own[4096];
    snprintf(own, sizeof own, "%s.%d", path, i);
    move(plan, own, data);
    _exit(0);
  }
  for (int i = 0, status; i < processes; ++i)
    if (wait(&status) < 0 || status != 0) {
      fputs("a process failed\n", stderr);
      exit(1);
    }
}

int main(int argc, char **argv) {
  static const struct option known[] = {{"mode", 1, 0, 'm'},   {"path", 1, 0, 'p'}, {"bytes", 1, 0, 'b'},     {"piece", 1, 0, 's'},
                                        {"verify", 0, 0, 'v'}, {"sync", 0, 0, 'y'}, {"processes", 1, 0, 'n'}, {"copies", 1, 0, 'c'},
                                        {"files", 1, 0, 'f'},  {0, 0, 0, 0}};
  struct plan plan = {"", 0, 512, 0, 0, 1};
  const char *path = "";
  int processes = 0, files = 0, c;
  while ((c = getopt_long(argc, argv, "", known, 0)) != -1) {
    if (c == 'm') plan.mode = optarg;
    else if (c == 'p') path = optarg;
    else if (c == 'b') plan.bytes = strtoull(optarg, 0, 10);
    else if (c == 's') plan.piece = strtoull(optarg, 0, 10);
    else if (c == 'v') plan.verify = 1;
    else if (c == 'y') plan.sync = 1;
    else if (c == 'n') processes = atoi(optarg);
    else if (c == 'c') plan.copies = atoi(optarg);
    else if (c == 'f') files = atoi(optarg);
    else return 2;
  }
  if (plan.piece == 0 || period % plan.piece) return fputs("--piece must divide 16 MiB\n", stderr), 2;
  if (plan.copies < 1 || plan.copies > most_copies) return fputs("--copies is between 1 and 8\n", stderr), 2;
  /* Made outside the clock: what is measured is the writing. */
  char *data = malloc(period);
  if (!data) fail("malloc");
  fill((uint64_t *)data, period, 0);

  const int who = processes ? RUSAGE_CHILDREN : RUSAGE_SELF;
  const double cpu = cpu_seconds(who), start = now_seconds();
  opened = closing = start;
  if (processes) move_each(&plan, path, data, processes);
  else if (files) move_one_by_one(&plan, path, data, files);
  else move(&plan, path, data);
  const double end = now_seconds();
  if (processes || files) opened = start, closing = end;
  const int ranks = processes ? processes : 1, times = files ? files : ranks;
  printf(
      "{\"program\": \"posix_bench\", \"mode\": \"%s\", \"ranks\": %d, \"bytes\": %llu, \"open_seconds\": %.6f, \"seconds\": %.6f, "
      "\"close_seconds\": %.6f, \"cpu_seconds\": %.6f, \"verified\": %s, \"peak_rss_bytes\": %llu}\n",
      plan.mode, ranks, (unsigned long long)plan.bytes * (unsigned long long)times, opened - start, end - start, end - closing,
      cpu_seconds(who) - cpu, plan.verify ? "true" : "false", (unsigned long long)peak_resident_bytes(who));
  return 0;
}
