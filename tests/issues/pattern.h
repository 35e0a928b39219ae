/* What the programs of this folder share: bytes that say which write they come from, and MPI calls that have to succeed. */
#ifndef HOLDFAST_TESTS_ISSUES_PATTERN_H
#define HOLDFAST_TESTS_ISSUES_PATTERN_H
#include <stdio.h>
#include <stdlib.h>

/* What write number `version` leaves at `offset` of the file: never zero, so that a byte that was forgotten shows. */
static inline unsigned char pattern_byte(unsigned version, long offset) {
  unsigned long mixed = ((unsigned long)offset + version * 0x9E3779B1ul) * 0xD6E8FEB86659FD93ul;
  return (unsigned char)(1 + (mixed >> 40) % 255);
}

static inline void pattern_fill(unsigned char *bytes, unsigned version, long offset, long count) {
  for (long i = 0; i < count; i++) bytes[i] = pattern_byte(version, offset + i);
}

/* How many of `count` bytes from `offset` on differ from `expected`; says where the first one is. */
static inline long pattern_differ(const char *what, const unsigned char *bytes, const unsigned char *expected, long offset, long count) {
  long wrong = 0, zeros = 0, first = -1;
  for (long i = 0; i < count; i++) {
    if (bytes[i] == expected[i]) continue;
    if (first < 0) first = offset + i;
    wrong++;
    zeros += bytes[i] == 0;
  }
  if (wrong) fprintf(stderr, "%s: %ld wrong bytes, %ld of them zero, the first at %ld\n", what, wrong, zeros, first);
  return wrong;
}

#ifdef MPI_VERSION
#define MUST(call)                                                         \
  do {                                                                     \
    int must_error = (call);                                               \
    if (must_error != MPI_SUCCESS) must_stop(#call, __LINE__, must_error); \
  } while (0)

static inline void must_stop(const char *call, int line, int error) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, text, &length);
  fprintf(stderr, "line %d: %s: %s\n", line, call, text);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

static inline unsigned char *must_have(long bytes) {
  unsigned char *memory = calloc(bytes, 1);
  if (!memory) MPI_Abort(MPI_COMM_WORLD, 3);
  return memory;
}

/* Reads all that `expected` says and compares. */
static inline long pattern_file_differs(const char *path, const unsigned char *expected, long count) {
  unsigned char *bytes = must_have(count);
  MPI_File file;
  MPI_Status status;
  int got = 0;
  MUST(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  MUST(MPI_File_read_at(file, 0, bytes, (int)count, MPI_BYTE, &status));
  MUST(MPI_Get_count(&status, MPI_BYTE, &got));
  MUST(MPI_File_close(&file));
  if (got != count) fprintf(stderr, "%s: %d bytes instead of %ld\n", path, got, count);
  const long wrong = pattern_differ(path, bytes, expected, 0, got < count ? got : count);
  free(bytes);
  return got == count ? wrong : count;
}
#endif
#endif
