/* A small Jacobi solver with checkpoints, as programs have them that know nothing of Holdfast: each rank writes its rows to ck/ck.STEP.RANK every
   few steps, starts from the newest step that it finds, and prints a checksum of the result.

     jacobi_checkpoint [STEPS [EVERY [ROWS_PER_RANK [MICROSECONDS_PER_STEP [shared]]]]]

   With "shared" the ranks write one file together, ck/ck.STEP, by MPI-IO.
   The checksum is of the bits: it is the same however often the program was started again. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { columns = 256 };

static int shared = 0;

static void name_of(char* into, size_t bytes, long step, int rank) { snprintf(into, bytes, "ck/ck.%ld.%d", step, rank); }

/* Each rank's rows one after another. 1 where the whole of it was there. */
static int load_shared(long step, int rank, double* rows, size_t count) {
  char name[64];
  MPI_File file;
  MPI_Status status;
  int got = 0;
  snprintf(name, sizeof name, "ck/ck.%ld", step);
  if (MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS) return 0;
  if (MPI_File_read_at_all(file, (MPI_Offset)rank * (MPI_Offset)(count * sizeof *rows), rows, (int)count, MPI_DOUBLE, &status) == MPI_SUCCESS)
    MPI_Get_count(&status, MPI_DOUBLE, &got);
  MPI_File_close(&file);
  return got == (int)count;
}

static void save_shared(long step, int rank, const double* rows, size_t count) {
  char name[64];
  MPI_File file;
  snprintf(name, sizeof name, "ck/ck.%ld", step);
  if (MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS ||
      MPI_File_write_at_all(file, (MPI_Offset)rank * (MPI_Offset)(count * sizeof *rows), rows, (int)count, MPI_DOUBLE, MPI_STATUS_IGNORE) !=
          MPI_SUCCESS ||
      MPI_File_close(&file) != MPI_SUCCESS) {
    fprintf(stderr, "%s cannot be written\n", name);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

/* 1 where the whole of it was there. */
static int load(long step, int rank, double* rows, size_t count) {
  if (shared) return load_shared(step, rank, rows, count);
  char name[64];
  name_of(name, sizeof name, step, rank);
  FILE* file = fopen(name, "rb");
  if (!file) return 0;
  const size_t got = fread(rows, sizeof *rows, count, file);
  fclose(file);
  return got == count;
}

static void save(long step, int rank, const double* rows, size_t count) {
  if (shared) return save_shared(step, rank, rows, count);
  char name[64];
  name_of(name, sizeof name, step, rank);
  FILE* file = fopen(name, "wb");
  if (!file || fwrite(rows, sizeof *rows, count, file) != count || fclose(file) != 0) {
    perror(name);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

/* The newest step of which every rank has its file. */
static long newest_step(long steps, long every, int rank, double* rows, size_t count) {
  for (long step = steps / every * every; step > 0; step -= every) {
    int mine = load(step, rank, rows, count), all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (all) return step;
  }
  return 0;
}

static void exchange_edges(double* rows, long own, int rank, int ranks) {
  const int above = rank > 0 ? rank - 1 : MPI_PROC_NULL, below = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
  double *first = rows + columns, *last = rows + own * columns;
  MPI_Sendrecv(first, columns, MPI_DOUBLE, above, 0, last + columns, columns, MPI_DOUBLE, below, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(last, columns, MPI_DOUBLE, below, 1, rows, columns, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int count, char** arguments) {
  int rank, ranks;
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const long steps = count > 1 ? atol(arguments[1]) : 100, every = count > 2 ? atol(arguments[2]) : 10;
  const long own = count > 3 ? atol(arguments[3]) : 64, pause_us = count > 4 ? atol(arguments[4]) : 0;
  shared = count > 5 && !strcmp(arguments[5], "shared");
  const size_t cells = (size_t)(own + 2) * columns; /* with a row of each neighbour */
  double *rows = calloc(cells, sizeof *rows), *next = calloc(cells, sizeof *next);
  if (!rows || !next) MPI_Abort(MPI_COMM_WORLD, 1);
  mkdir("ck", 0777);

  long step = newest_step(steps, every, rank, rows, cells);
  if (step == 0) {
    memset(rows, 0, cells * sizeof *rows);
    if (rank == 0)
      for (int x = 0; x < columns; ++x) rows[x] = 1.0; /* one hot edge */
  }
  if (rank == 0) printf("begins after step %ld\n", step), fflush(stdout);

  while (step < steps) {
    exchange_edges(rows, own, rank, ranks);
    memcpy(next, rows, cells * sizeof *rows);
    for (long y = 1; y <= own; ++y)
      for (int x = 1; x < columns - 1; ++x) {
        const double* cell = rows + y * columns + x;
        next[y * columns + x] = 0.25 * (cell[-1] + cell[1] + cell[-columns] + cell[columns]);
      }
    double* last = rows;
    rows = next;
    next = last;
    if (pause_us > 0) usleep((useconds_t)pause_us);
    if (++step % every == 0) save(step, rank, rows, cells);
  }

  uint64_t sum = 14695981039346656037u, all = 0; /* FNV-1a of the bits */
  for (size_t i = columns; i < (size_t)(own + 1) * columns; ++i) {
    uint64_t bits;
    memcpy(&bits, rows + i, sizeof bits);
    sum = (sum ^ bits) * 1099511628211u;
  }
  sum *= (uint64_t)rank * 2 + 1;
  MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("checksum %016llx\n", (unsigned long long)all);
  free(rows);
  free(next);
  MPI_Finalize();
  return 0;
}
