// For the self-checking programs of this folder. Each is started with two directories: files in the first are MPI's
// own, files in the second are protected; a scenario runs in both and says what it saw.
#ifndef HOLDFAST_TESTS_CHECK_H
#define HOLDFAST_TESTS_CHECK_H
#include <mpi.h>
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wstringop-overflow"  // MPI_STATUSES_IGNORE is an address without room behind it
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, failures;
static const char *where = "";  // "native" or "protected"

#define CHECK(condition)                                                                         \
  do {                                                                                           \
    if (!(condition)) {                                                                          \
      printf("%s:%d: rank %d, %s: not true: %s\n", __FILE__, __LINE__, rank, where, #condition); \
      ++failures;                                                                                \
    }                                                                                            \
  } while (0)
#define SAME(seen, wanted)                                                                                          \
  do {                                                                                                              \
    long long seen_ = (long long)(seen), wanted_ = (long long)(wanted);                                             \
    if (seen_ != wanted_) {                                                                                         \
      printf("%s:%d: rank %d, %s: %s is %lld, not %lld\n", __FILE__, __LINE__, rank, where, #seen, seen_, wanted_); \
      ++failures;                                                                                                   \
    }                                                                                                               \
  } while (0)
#define OK(call) SAME(error_class(call), MPI_SUCCESS)

static int error_class(int code) {
  int class = code;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  return class;
}

// A directory as argument 1 or 2 and a name make a path.
static char *in(const char *directory, const char *name) {
  static char path[8][4096];
  static int next;
  char *p = path[next++ % 8];
  snprintf(p, 4096, "%s/%s", directory, name);
  return p;
}

// The program's answer: all ranks' failures; rank 0 says so.
static int finish(void) {
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf(all ? "FAILED: %d\n" : "passed\n", all);
  MPI_Finalize();
  return all != 0;
}

static void begin(int *argc, char ***argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (*argc < 3) {
    if (rank == 0) fprintf(stderr, "usage: %s NATIVE_DIRECTORY PROTECTED_DIRECTORY\n", (*argv)[0]);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
}

static MPI_File open_file(MPI_Comm comm, const char *path, int amode) {
  MPI_File fh = MPI_FILE_NULL;
  OK(MPI_File_open(comm, (char *)path, amode, MPI_INFO_NULL, &fh));
  return fh;
}

static int count_of(MPI_Status *status, MPI_Datatype type) {
  int count = -1;
  MPI_Get_count(status, type, &count);
  return count;
}

// Deterministic bytes that differ by seed and place.
static unsigned char byte_at(unsigned seed, size_t i) {
  unsigned x = seed * 2654435761u + (unsigned)(i * 40503u) + (unsigned)(i >> 16);
  x ^= x >> 13;
  return (unsigned char)(x * 2246822519u >> 24);
}
static void fill(void *buffer, size_t bytes, unsigned seed) {
  for (size_t i = 0; i < bytes; ++i) ((unsigned char *)buffer)[i] = byte_at(seed, i);
}
static int holds(const void *buffer, size_t bytes, unsigned seed) {
  for (size_t i = 0; i < bytes; ++i) {
    if (((const unsigned char *)buffer)[i] != byte_at(seed, i)) return 0;
  }
  return 1;
}

static unsigned long long random_state = 88172645463325252ull;
static unsigned random_below(unsigned limit) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (unsigned)(random_state >> 11) % limit;
}
#endif
