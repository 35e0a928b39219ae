/* A serial program with plain calls: posix_bench --mode write|read|pass --path FILE --bytes N --piece N [--verify]
   write and read move N bytes in pieces; pass reads one byte of a file N times, which measures the call. It knows nothing of
   Holdfast; the line that it prints is that of the MPI programs. */
#include <fcntl.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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

static double cpu_seconds(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static uint64_t peak_resident_bytes(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
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

int main(int argc, char **argv) {
  static const struct option known[] = {{"mode", 1, 0, 'm'}, {"path", 1, 0, 'p'}, {"bytes", 1, 0, 'b'}, {"piece", 1, 0, 's'}, {"verify", 0, 0, 'v'}, {0, 0, 0, 0}};
  const char *mode = "", *path = "";
  uint64_t bytes = 0, piece = 512;
  int verify = 0, c;
  while ((c = getopt_long(argc, argv, "", known, 0)) != -1) {
    if (c == 'm') mode = optarg;
    else if (c == 'p') path = optarg;
    else if (c == 'b') bytes = strtoull(optarg, 0, 10);
    else if (c == 's') piece = strtoull(optarg, 0, 10);
    else if (c == 'v') verify = 1;
    else return 2;
  }
  const int writes = !strcmp(mode, "write"), pass = !strcmp(mode, "pass");
  if (period % piece) return fputs("--piece must divide 16 MiB\n", stderr), 2;
  /* Made outside the clock: what is measured is the writing. */
  char *data = malloc(period);
  if (!data) fail("malloc");
  fill((uint64_t *)data, period, 0);

  const double cpu = cpu_seconds(), start = now_seconds();
  const int fd = open(path, writes ? O_CREAT | O_TRUNC | O_WRONLY : O_RDONLY, 0666);
  if (fd < 0) fail(path);
  const double opened = now_seconds();
  if (pass) {
    for (uint64_t i = 0; i < bytes; ++i)
      if (pread(fd, data, 1, 0) != 1) fail("pread");
  } else {
    for (uint64_t at = 0; at < bytes; at += piece) {
      const ssize_t done = writes ? write(fd, data + at % period, piece) : read(fd, data, piece);
      if (done != (ssize_t)piece) fail(mode);
      if (verify && !writes) compare((const uint64_t *)data, piece, at);
    }
  }
  const double closing = now_seconds();
  if (close(fd)) fail("close");
  const double end = now_seconds();
  printf("{\"program\": \"posix_bench\", \"mode\": \"%s\", \"ranks\": 1, \"bytes\": %llu, \"open_seconds\": %.6f, \"seconds\": %.6f, "
         "\"close_seconds\": %.6f, \"cpu_seconds\": %.6f, \"verified\": %s, \"peak_rss_bytes\": %llu}\n",
         mode, (unsigned long long)bytes, opened - start, end - start, end - closing, cpu_seconds() - cpu, verify ? "true" : "false",
         (unsigned long long)peak_resident_bytes());
  return 0;
}
