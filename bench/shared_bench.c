/* Records through the shared file pointer, as in Kulkarni and Gabriel's benchmark: each rank writes records of one size by one
   of the four calls. --mode pwrite: the same ranks at offsets known beforehand, the limit of what any pointer can reach. --mode own: each
   rank to a POSIX file of its own. The clock runs over the calls alone; closing has its own. */
#include <fcntl.h>
#include <unistd.h>

#include "program.h"

static int rank, ranks;

/* Every record says whose it is and which, from its first to its last byte. */
static void mark(char *record, long bytes, int by, long number) {
  int64_t head[2] = {by, number};
  memset(record, (by * 31 + 7) & 255, (size_t)bytes);
  memcpy(record, head, sizeof head);
}

static void number_it(char *record, long number) {
  int64_t text = number;
  memcpy(record + 8, &text, sizeof text);
}

static void check_file(const char *path, long bytes, long each, int ordered) {
  if (rank != 0) return;
  char *record = malloc((size_t)bytes), *wanted = malloc((size_t)bytes);
  long *next = calloc((size_t)ranks, sizeof(long));
  FILE *file = fopen(path, "rb");
  if (!file) fail("the file is not there");
  for (long i = 0; i < each * ranks; ++i) {
    int64_t head[2];
    if (fread(record, 1, (size_t)bytes, file) != (size_t)bytes) fail("the file is too short");
    memcpy(head, record, sizeof head);
    if (head[0] < 0 || head[0] >= ranks || head[1] != next[head[0]]) fail("a record is lost, twice, or out of its rank's order");
    if (ordered && head[0] != i % ranks) fail("an ordered record is not in rank order");
    ++next[head[0]];
    mark(wanted, bytes, (int)head[0], (long)head[1]);
    if (memcmp(record, wanted, (size_t)bytes) != 0) fail("a record is not whole");
  }
  if (fgetc(file) != EOF) fail("the file is too long");
  fclose(file);
}

static void write_by_pwrite(const char *path, char *record, long bytes, long each, struct outcome *o) {
  int fd = open(path, O_CREAT | O_WRONLY, 0666);
  MPI_Barrier(MPI_COMM_WORLD);
  double start = now_seconds(), cpu = cpu_seconds();
  for (long i = 0; i < each; ++i) {
    number_it(record, i);
    if (pwrite(fd, record, (size_t)bytes, (i * ranks + rank) * bytes) != bytes) fail("pwrite");
  }
  double end = now_seconds();
  o->cpu_seconds = cpu_seconds() - cpu;
  o->seconds = span_seconds(start, end);
  close(fd);
}

/* A POSIX file of its own for each rank, made durable before it is closed: what a log for each process is measured against. */
static void write_own_file(const char *path, char *record, long bytes, long each, struct outcome *o) {
  char own[4096];
  snprintf(own, sizeof own, "%s.%d", path, rank);
  int fd = open(own, O_CREAT | O_WRONLY, 0666);
  MPI_Barrier(MPI_COMM_WORLD);
  double start = now_seconds(), cpu = cpu_seconds();
  for (long i = 0; i < each; ++i) {
    number_it(record, i);
    if (write(fd, record, (size_t)bytes) != bytes) fail("write");
  }
  double end = now_seconds();
  o->cpu_seconds = cpu_seconds() - cpu;
  if (fsync(fd) != 0 || close(fd) != 0) fail("fsync");
  o->seconds = span_seconds(start, end);
  o->close_seconds = span_seconds(end, now_seconds());
}

static void check_own_file(const char *path, long bytes, long each) {
  char own[4096], *record = malloc((size_t)bytes), *wanted = malloc((size_t)bytes);
  snprintf(own, sizeof own, "%s.%d", path, rank);
  FILE *file = fopen(own, "rb");
  if (!file) fail("the file is not there");
  for (long i = 0; i < each; ++i) {
    mark(wanted, bytes, rank, i);
    if (fread(record, 1, (size_t)bytes, file) != (size_t)bytes || memcmp(record, wanted, (size_t)bytes) != 0) fail("a record is not whole");
  }
  if (fgetc(file) != EOF) fail("the file is too long");
  fclose(file);
}

static void write_by_mpi(const char *path, const char *mode, char *record, long bytes, long each, struct outcome *o) {
  MPI_File file;
  MPI_Status status;
  MPI_Request request;
  must(MPI_File_open(MPI_COMM_WORLD, (char *)path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file), "MPI_File_open");
  MPI_Barrier(MPI_COMM_WORLD);
  double start = now_seconds(), cpu = cpu_seconds();
  for (long i = 0; i < each; ++i) {
    number_it(record, i);
    if (strcmp(mode, "shared") == 0) {
      must(MPI_File_write_shared(file, record, (int)bytes, MPI_BYTE, &status), "MPI_File_write_shared");
    } else if (strcmp(mode, "ishared") == 0) {
      must(MPI_File_iwrite_shared(file, record, (int)bytes, MPI_BYTE, &request), "MPI_File_iwrite_shared");
      must(MPI_Wait(&request, &status), "MPI_Wait");
    } else if (strcmp(mode, "ordered") == 0) {
      must(MPI_File_write_ordered(file, record, (int)bytes, MPI_BYTE, &status), "MPI_File_write_ordered");
    } else {
      must(MPI_File_write_ordered_begin(file, record, (int)bytes, MPI_BYTE), "MPI_File_write_ordered_begin");
      must(MPI_File_write_ordered_end(file, record, &status), "MPI_File_write_ordered_end");
    }
    must_have_moved(&status, MPI_BYTE, (int)bytes, mode);
  }
  double end = now_seconds();
  double called = cpu_seconds() - cpu;
  MPI_Barrier(MPI_COMM_WORLD);
  double closing = now_seconds();
  must(MPI_File_close(&file), "MPI_File_close");
  o->cpu_seconds = called;
  o->seconds = span_seconds(start, end);
  o->close_seconds = span_seconds(closing, now_seconds());
}

/* How long an open and a close take, for jobs that never use the pointer. */
static void open_and_close(const char *path, long each, struct outcome *o) {
  MPI_File file;
  MPI_Barrier(MPI_COMM_WORLD);
  double start = now_seconds(), cpu = cpu_seconds();
  for (long i = 0; i < each; ++i) {
    must(MPI_File_open(MPI_COMM_WORLD, (char *)path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file), "MPI_File_open");
    must(MPI_File_close(&file), "MPI_File_close");
  }
  double end = now_seconds();
  o->cpu_seconds = cpu_seconds() - cpu;
  o->seconds = span_seconds(start, end);
}

int main(int argc, char **argv) {
  const char *mode = "shared", *path = NULL;
  long bytes = 1024, each = 1000;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--mode") == 0) mode = argv[i + 1];
    else if (strcmp(argv[i], "--path") == 0) path = argv[i + 1];
    else if (strcmp(argv[i], "--record") == 0) bytes = atol(argv[i + 1]);
    else if (strcmp(argv[i], "--each") == 0) each = atol(argv[i + 1]);
    else fail("unknown option");
  }
  if (!path || bytes < 16)
    fail(
        "usage: shared_bench --path FILE [--mode pwrite|own|shared|ishared|ordered|split|open|verify|verify-ordered|verify-own] [--record BYTES] "
        "[--each RECORDS]");
  char *record = malloc((size_t)bytes);
  struct outcome o = {"shared_bench", mode, (uint64_t)bytes * (uint64_t)each * (uint64_t)ranks, 0, 0, 0, 0, 0};
  mark(record, bytes, rank, 0);
  if (strcmp(mode, "verify-own") == 0) check_own_file(path, bytes, each), o.verified = 1;
  else if (strncmp(mode, "verify", 6) == 0) check_file(path, bytes, each, strcmp(mode, "verify-ordered") == 0), o.verified = 1;
  else if (strcmp(mode, "open") == 0) open_and_close(path, each, &o);
  else if (strcmp(mode, "own") == 0) write_own_file(path, record, bytes, each, &o);
  else if (strcmp(mode, "pwrite") == 0) write_by_pwrite(path, record, bytes, each, &o);
  else write_by_mpi(path, mode, record, bytes, each, &o);
  MPI_Barrier(MPI_COMM_WORLD);
  report(&o);
  MPI_Finalize();
  return 0;
}
