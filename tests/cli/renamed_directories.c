/* Ranks write their files into a directory of another name, which rank 0 renames when all are there: ck/tmp.STEP becomes ck/STEP. Each reads its own back.

     renamed_directories STEPS MICROSECONDS */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { values_each = 20000 };

static void fail(const char* what) {
  perror(what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void save(const char* directory, long step, int rank) {
  char name[64];
  snprintf(name, sizeof name, "%s/part.%d", directory, rank);
  FILE* file = fopen(name, "wb");
  if (!file) fail(name);
  for (long i = 0; i < values_each; ++i) {
    const long value = 1000000 * step + 100 * i + rank;
    if (fwrite(&value, sizeof value, 1, file) != 1) fail(name);
  }
  if (fclose(file) != 0) fail(name);
}

static long load(const char* directory, int rank) {
  static long values[values_each];
  char name[64];
  long sum = 0;
  snprintf(name, sizeof name, "%s/part.%d", directory, rank);
  FILE* file = fopen(name, "rb");
  if (!file || fread(values, sizeof *values, values_each, file) != values_each) fail(name);
  fclose(file);
  for (long i = 0; i < values_each; ++i) sum += values[i];
  return sum;
}

int main(int count, char** words) {
  MPI_Init(&count, &words);
  const long steps = count > 1 ? atol(words[1]) : 3;
  const useconds_t pause = count > 2 ? (useconds_t)atol(words[2]) : 0;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  long own = 0, all = 0;
  for (long step = 1; step <= steps; ++step) {
    char temporary[32], named[32];
    snprintf(temporary, sizeof temporary, "ck/tmp.%ld", step);
    snprintf(named, sizeof named, "ck/%ld", step);
    if (rank == 0 && mkdir(temporary, 0777) != 0 && errno != EEXIST) fail(temporary);
    MPI_Barrier(MPI_COMM_WORLD);
    save(temporary, step, rank);
    usleep(pause);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && rename(temporary, named) != 0) fail(named);
    MPI_Barrier(MPI_COMM_WORLD);
    own += load(named, rank);
  }
  MPI_Reduce(&own, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("sum %ld\n", all);
  return MPI_Finalize();
}
