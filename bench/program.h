/* What the benchmark programs share: failing loudly, the clock over all ranks, and the line of
   results. The programs are ordinary MPI programs: nothing here knows of Holdfast. */
#ifndef BENCH_PROGRAM_H
#define BENCH_PROGRAM_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static void fail(const char *what) {
  fprintf(stderr, "benchmark failed: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
  exit(1);
}

static inline void must(int code, const char *call) {
  char text[MPI_MAX_ERROR_STRING + 80], reason[MPI_MAX_ERROR_STRING];
  int length;
  if (code == MPI_SUCCESS) return;
  MPI_Error_string(code, reason, &length);
  snprintf(text, sizeof text, "%s: %s", call, reason);
  fail(text);
}

/* A count that does not match is a failed run, never a fast one. */
static inline void must_have_moved(MPI_Status *status, MPI_Datatype type, int expected, const char *call) {
  int count;
  MPI_Get_count(status, type, &count);
  if (count != expected) {
    char text[160];
    snprintf(text, sizeof text, "%s moved %d of %d elements", call, count, expected);
    fail(text);
  }
}

/* Seconds of the host's monotonic clock: all ranks run on one host, so the span of a phase is the latest end less
   the earliest start, however late the scheduler let a rank out of the barrier. */
static double now_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double cpu_seconds_of(int who) {
  struct rusage used;
  getrusage(who, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Processor time of this process so far, and of the processes that it has waited for (Holdfast's I/O runs in such, which
   end with the file): what a busy machine disturbs least. */
static double cpu_seconds(void) { return cpu_seconds_of(RUSAGE_SELF) + cpu_seconds_of(RUSAGE_CHILDREN); }

static inline double span_seconds(double start, double end) {
  double ends[2] = {-start, end}, latest[2];
  MPI_Allreduce(ends, latest, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return latest[1] + latest[0];
}

/* The most memory that this process ever had resident, in bytes: VmHWM of proc(5), which is in kB. */
static uint64_t peak_resident_bytes(void) {
  char line[256];
  unsigned long long kilobytes = 0;
  FILE *status = fopen("/proc/self/status", "r");
  if (!status) return 0;
  while (fgets(line, sizeof line, status))
    if (sscanf(line, "VmHWM: %llu", &kilobytes) == 1) break;
  fclose(status);
  return (uint64_t)kilobytes * 1024;
}

struct outcome {
  const char *program, *mode;
  uint64_t bytes;
  double open_seconds, seconds, close_seconds; /* `seconds` runs from before the open until after the close */
  double cpu_seconds;                          /* of this rank, while the clock ran */
  int verified;                                /* 1: every byte was compared; 0: not asked for */
};

/* Collective. Rank 0 prints the one line that the harness reads. */
static inline void report(const struct outcome *o) {
  int rank, ranks;
  uint64_t mine = peak_resident_bytes(), peak;
  double cpu_seconds;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Reduce(&mine, &peak, 1, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(&o->cpu_seconds, &cpu_seconds, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf(
        "{\"program\": \"%s\", \"mode\": \"%s\", \"ranks\": %d, \"bytes\": %llu, \"open_seconds\": %.6f, "
        "\"seconds\": %.6f, \"close_seconds\": %.6f, \"cpu_seconds\": %.6f, \"verified\": %s, \"peak_rss_bytes\": %llu}\n",
        o->program, o->mode, ranks, (unsigned long long)o->bytes, o->open_seconds, o->seconds, o->close_seconds, cpu_seconds,
        o->verified ? "true" : "false", (unsigned long long)peak);
}

#endif
