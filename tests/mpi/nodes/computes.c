/* Computes all the time and writes a line now and then: the step, the time, the time before, and what all ranks have computed: computes FILE STEPS ROUNDS. A team that
 * is started again does not catch up with the others, and a line that it writes differently is found out. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
  int rank;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int steps = atoi(words[2]);
  const long rounds = atol(words[3]);
  unsigned long mine = 88172645463325252UL + (unsigned long)rank, all = 0;
  double now = 0, before = 0;
  FILE *file = rank == 0 ? fopen(words[1], "w") : NULL;
  for (int step = 0; step < steps; ++step) {
    for (long i = 0; i < rounds; ++i) mine ^= mine << 13, mine ^= mine >> 7, mine ^= mine << 17;
    MPI_Allreduce(&mine, &all, 1, MPI_UNSIGNED_LONG, MPI_SUM, MPI_COMM_WORLD);
    before = now, now = MPI_Wtime();
    MPI_Bcast(&now, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (file) fprintf(file, "%d %.9f %.9f %lu\n", step, now, before, all), fflush(file);
  }
  if (file) fclose(file);
  return MPI_Finalize();
}
