/* Pi by chance: chance FILE [SEED...]. Seeds come from the clock unless they are given, one for each rank. The file begins with them: with the
 * same seeds the program writes the same file. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { rounds = 40, throws = 20000 };

static unsigned long seed_of_now(int rank) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (unsigned long)time(NULL) * 1000003 + (unsigned long)now.tv_nsec * 31 + (unsigned long)rank;
}

int main(int count, char **words) {
  int rank, ranks;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  unsigned long seed = count > 2 + rank ? strtoul(words[2 + rank], NULL, 10) : seed_of_now(rank), seeds[64];
  MPI_Gather(&seed, 1, MPI_UNSIGNED_LONG, seeds, 1, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
  FILE *file = rank == 0 ? fopen(words[1], "w") : NULL;
  if (file) {
    fprintf(file, "seeds");
    for (int i = 0; i < ranks; ++i) fprintf(file, " %lu", seeds[i]);
    fprintf(file, "\n");
  }
  unsigned short state[3] = {(unsigned short)seed, (unsigned short)(seed >> 16), (unsigned short)(seed >> 32)};
  long inside = 0, all = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < throws; ++i) {
      const double x = erand48(state), y = erand48(state);
      inside += x * x + y * y <= 1;
    }
    MPI_Reduce(&inside, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (file) fprintf(file, "%d: %.12f\n", round, 4.0 * (double)all / ((double)throws * (round + 1) * ranks)), fflush(file);
    usleep(50000);
  }
  if (file) fclose(file);
  return MPI_Finalize();
}
