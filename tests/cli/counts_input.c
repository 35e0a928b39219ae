/* Rank 0 counts what comes by standard input. */
#include <mpi.h>
#include <stdio.h>

int main(int count, char** words) {
  int rank = 0;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    long bytes = 0, sum = 0;
    for (int c; (c = getchar()) != EOF; ++bytes) sum = (sum * 31 + c) % 1000003;
    printf("%ld bytes, sum %ld\n", bytes, sum);
  }
  MPI_Finalize();
  return 0;
}
