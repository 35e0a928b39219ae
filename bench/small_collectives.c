/* Collective writes of few bytes a call, by four patterns that fill rows piece by piece:
     side     each call writes 64 KiB a rank, the ranks side by side (32 calls)
     odd      the same with 100,000 bytes a rank (20 calls)
     nested   a view of a three-dimensional array of cells of 5 doubles, cut into bars, one array a step (20 steps)
     tiny     4 KiB a rank (64 calls)
   The clock runs from before the open until after the close. --mode verify reads all of it and compares. */
#include "program.h"

static int rank, ranks;

struct pattern {
  const char *name;
  long each; /* bytes of a rank in a call; of `nested` it follows from the array */
  int calls;
};
static const struct pattern patterns[] = {{"side", 64 << 10, 32}, {"odd", 100000, 20}, {"nested", 0, 20}, {"tiny", 4 << 10, 64}};

enum { edge = 10, cell = 5 * sizeof(double), array_bytes = edge * edge * edge * cell };

static char byte_at(long offset) { return (char)(offset % 251 + offset / 4096); }

/* This rank's bar of a step's array: all of two dimensions, its part of the innermost but one. */
static long nested_view(MPI_File file, int step, MPI_Datatype *bar, int *begin, int *width) {
  *begin = edge * rank / ranks, *width = edge * (rank + 1) / ranks - *begin;
  int sizes[3] = {edge, edge, edge * cell}, parts[3] = {edge, *width, edge * cell}, starts[3] = {0, *begin, 0};
  must(MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_BYTE, bar), "MPI_Type_create_subarray");
  must(MPI_Type_commit(bar), "MPI_Type_commit");
  must(MPI_File_set_view(file, (MPI_Offset)step * array_bytes, MPI_BYTE, *bar, "native", MPI_INFO_NULL), "MPI_File_set_view");
  return (long)edge * *width * edge * cell;
}

static void write_nested(MPI_File file, int calls) {
  char *data = malloc(array_bytes);
  for (int step = 0; step < calls; ++step) {
    MPI_Datatype bar;
    MPI_Status status;
    int begin, width;
    const long bytes = nested_view(file, step, &bar, &begin, &width);
    for (long i = 0; i < bytes; ++i) {
      const long slab = i / ((long)width * edge * cell), within = i % ((long)width * edge * cell);
      data[i] = byte_at((long)step * array_bytes + slab * edge * edge * cell + (long)begin * edge * cell + within);
    }
    must(MPI_File_write_all(file, data, (int)bytes, MPI_BYTE, &status), "MPI_File_write_all");
    must_have_moved(&status, MPI_BYTE, (int)bytes, "MPI_File_write_all");
    MPI_Type_free(&bar);
  }
  free(data);
}

static void write_side_by_side(MPI_File file, const struct pattern *p) {
  char *data = malloc((size_t)p->each);
  for (int call = 0; call < p->calls; ++call) {
    const long at = ((long)call * ranks + rank) * p->each;
    MPI_Status status;
    for (long i = 0; i < p->each; ++i) data[i] = byte_at(at + i);
    must(MPI_File_write_at_all(file, at, data, (int)p->each, MPI_BYTE, &status), "MPI_File_write_at_all");
    must_have_moved(&status, MPI_BYTE, (int)p->each, "MPI_File_write_at_all");
  }
  free(data);
}

static void write_it(const char *path, const struct pattern *p, struct outcome *o) {
  MPI_File file;
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = now_seconds(), cpu = cpu_seconds();
  must(MPI_File_open(MPI_COMM_WORLD, (char *)path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file), "MPI_File_open");
  if (strcmp(p->name, "nested") == 0) write_nested(file, p->calls);
  else write_side_by_side(file, p);
  must(MPI_File_close(&file), "MPI_File_close");
  const double end = now_seconds();
  o->cpu_seconds = cpu_seconds() - cpu;
  o->seconds = span_seconds(start, end);
}

static void verify(const char *path, long bytes) {
  MPI_File file;
  MPI_Status status;
  char *data = malloc((size_t)bytes);
  must(MPI_File_open(MPI_COMM_WORLD, (char *)path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), "MPI_File_open");
  must(MPI_File_read_at(file, 0, data, (int)bytes, MPI_BYTE, &status), "MPI_File_read_at");
  must_have_moved(&status, MPI_BYTE, (int)bytes, "MPI_File_read_at");
  for (long i = 0; i < bytes; ++i)
    if (data[i] != byte_at(i)) fail("a byte is not what was written");
  must(MPI_File_close(&file), "MPI_File_close");
  free(data);
}

int main(int argc, char **argv) {
  const char *mode = "write", *path = NULL;
  const struct pattern *p = &patterns[0];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--mode") == 0) mode = argv[i + 1];
    else if (strcmp(argv[i], "--path") == 0) path = argv[i + 1];
    else if (strcmp(argv[i], "--pattern") == 0) {
      for (p = patterns; p < patterns + 4 && strcmp(p->name, argv[i + 1]) != 0; ++p) {
      }
      if (p == patterns + 4) fail("--pattern side|odd|nested|tiny");
    } else fail("unknown option");
  }
  if (!path) fail("usage: small_collectives --path FILE [--pattern side|odd|nested|tiny] [--mode write|verify]");
  const long bytes = p->each ? p->each * ranks * p->calls : (long)array_bytes * p->calls;
  struct outcome o = {"small_collectives", p->name, (uint64_t)bytes, 0, 0, 0, 0, 0};
  if (strcmp(mode, "verify") == 0) verify(path, bytes), o.verified = 1;
  else write_it(path, p, &o);
  report(&o);
  MPI_Finalize();
  return 0;
}
