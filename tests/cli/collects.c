/* Rank 0 collects a value of each other rank in each step, from whichever comes first, and gives the sum back. Each rank writes ck/ck.STEP.RANK every ten
   steps, and goes on from the newest that all have. Prints the last sum.

     collects [STEPS [MICROSECONDS_PER_STEP]] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { every = 10 };

static void name_of(char* into, size_t bytes, long step, int rank) { snprintf(into, bytes, "ck/ck.%ld.%d", step, rank); }

static int load(long step, int rank, long* value) {
  char name[64];
  name_of(name, sizeof name, step, rank);
  FILE* file = fopen(name, "rb");
  if (!file) return 0;
  const size_t got = fread(value, sizeof *value, 1, file);
  fclose(file);
  return got == 1;
}

static void save(long step, int rank, long value) {
  char name[64];
  name_of(name, sizeof name, step, rank);
  FILE* file = fopen(name, "wb");
  if (!file || fwrite(&value, sizeof value, 1, file) != 1 || fclose(file) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int count, char** arguments) {
  int rank, ranks, mine, all = 0;
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const long steps = count > 1 ? atol(arguments[1]) : 100, pause_us = count > 2 ? atol(arguments[2]) : 0;
  long step = steps, value = 0;
  for (; step > 0 && !all; step -= all ? 0 : every) {
    mine = load(step, rank, &value);
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  }
  if (step == 0) value = rank + 1;
  while (step < steps) {
    long sum = value, other = 0;
    if (rank > 0) MPI_Send(&value, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD);
    for (int i = 1; rank == 0 && i < ranks; ++i) {
      MPI_Recv(&other, 1, MPI_LONG, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      sum += other;
    }
    MPI_Bcast(&sum, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    value = (value * 31 + sum) % 1000003;
    if (pause_us > 0) usleep((useconds_t)pause_us);
    if (++step % every == 0) save(step, rank, value);
  }
  if (rank == 0) printf("sum %ld\n", value);
  MPI_Finalize();
  return 0;
}
