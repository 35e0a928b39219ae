/* What the self-checking programs share. Each is an ordinary MPI program:
 *
 *   PROGRAM PREFIX [--skip SECTION]... [--only SECTION] [--pause FILE]
 *
 * Its files are PREFIX.<something>; those that stay at the end have the same bytes in every run with as many ranks. A failure is a
 * line "FAIL <section>: <text>" and exit code 1. --pause: at the first MIDDLE() rank 0 creates FILE and everybody waits until
 * it is gone again: that is when a test takes targets away. */
#ifndef HOLDFAST_TESTS_CHECK_H
#define HOLDFAST_TESTS_CHECK_H
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks;
static long failures;
static const char *section = "start";
static const char *prefix;
static const char *pause_file;

__attribute__((unused, format(printf, 2, 3))) static void fail_at(int line, const char *format, ...) {
  ++failures;
  if (failures > 10) return;
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  printf("FAIL %s: rank %d, line %d: %s\n", section, rank, line, text);
  fflush(stdout);
}

#define CHECK(condition, ...)                         \
  do {                                                \
    if (!(condition)) fail_at(__LINE__, __VA_ARGS__); \
  } while (0)

/* The call has to succeed. */
#define OK(call) ok_at(__LINE__, #call, call)
__attribute__((unused)) static int ok_at(int line, const char *what, int code) {
  if (code != MPI_SUCCESS) {
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    fail_at(line, "%.80s: %s", what, text);
  }
  return code;
}

/* The call has to fail with this error class. */
#define FAILS(expected, call) fails_at(__LINE__, #expected, expected, #call, call)
__attribute__((unused)) static void fails_at(int line, const char *name, int expected, const char *what, int code) {
  int class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  if (class == expected) return;
  char text[MPI_MAX_ERROR_STRING] = "success";
  int length;
  if (code != MPI_SUCCESS) MPI_Error_string(class, text, &length);
  fail_at(line, "%.80s: expected %s, got %s", what, name, text);
}

/* The status has to say that `count` of `type` were moved. */
#define MOVED(status, type, count) moved_at(__LINE__, status, type, count)
__attribute__((unused)) static void moved_at(int line, MPI_Status *status, MPI_Datatype type, int expected) {
  int count = -7;
  MPI_Get_count(status, type, &count);
  if (count != expected) fail_at(line, "moved %d, expected %d", count, expected);
}

/* A byte that tells where in which stream it belongs. */
__attribute__((unused)) static unsigned char mark(int64_t position, int stream) {
  uint64_t x = (uint64_t)position * 0x9E3779B97F4A7C15u + (uint64_t)(stream + 1) * 0xC2B2AE3D27D4EB4Fu;
  return (unsigned char)(x >> 56);
}
__attribute__((unused)) static void fill(unsigned char *buffer, int64_t count, int64_t position, int stream) {
  for (int64_t i = 0; i < count; ++i) buffer[i] = mark(position + i, stream);
}
#define SAME(buffer, count, position, stream) same_at(__LINE__, buffer, count, position, stream)
__attribute__((unused)) static void same_at(int line, const unsigned char *buffer, int64_t count, int64_t position, int stream) {
  for (int64_t i = 0; i < count; ++i)
    if (buffer[i] != mark(position + i, stream)) {
      fail_at(line, "byte %lld of stream %d is %d, expected %d", (long long)(position + i), stream, buffer[i], mark(position + i, stream));
      return;
    }
}

__attribute__((unused)) static const char *path(const char *suffix) {
  static char names[8][4096];
  static int next;
  char *name = names[next++ % 8];
  snprintf(name, sizeof names[0], "%s.%s", prefix, suffix);
  return name;
}

__attribute__((unused)) static MPI_File open_file(MPI_Comm comm, const char *suffix, int mode) {
  MPI_File file = MPI_FILE_NULL;
  if (OK(MPI_File_open(comm, path(suffix), mode, MPI_INFO_NULL, &file)) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1);
  return file;
}

__attribute__((unused)) static void MIDDLE(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!pause_file) return;
  if (rank == 0) {
    FILE *flag = fopen(pause_file, "w");
    if (flag) fclose(flag);
    for (int tries = 0; tries < 6000 && access(pause_file, F_OK) == 0; ++tries) usleep(10000);
  }
  pause_file = NULL;
  MPI_Barrier(MPI_COMM_WORLD);
}

typedef void (*Section)(void);
typedef struct {
  const char *name;
  Section run;
} Entry;

__attribute__((unused)) static int run_sections(int argc, char **argv, const Entry *entries) {
  if (argc < 2) {
    fprintf(stderr, "usage: %s PREFIX [--skip SECTION]... [--only SECTION] [--pause FILE]\n", argv[0]);
    return 2;
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  prefix = argv[1];
  for (int i = 2; i + 1 < argc; ++i)
    if (strcmp(argv[i], "--pause") == 0) pause_file = argv[i + 1];
  for (; entries->name; ++entries) {
    int skipped = 0;
    for (int i = 2; i + 1 < argc; ++i) {
      if (strcmp(argv[i], "--skip") == 0 && strcmp(argv[i + 1], entries->name) == 0) skipped = 1;
      if (strcmp(argv[i], "--only") == 0 && strcmp(argv[i + 1], entries->name) != 0) skipped = 1;
    }
    if (skipped) continue;
    section = entries->name;
    entries->run();
    MPI_Barrier(MPI_COMM_WORLD);
  }
  long sum = 0;
  MPI_Allreduce(&failures, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%s: %ld failures\n", argv[0], sum);
  MPI_Finalize();
  return sum != 0;
}
#endif
