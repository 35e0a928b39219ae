/* Rank 0 takes in ranks 1 and 2 by MPI_Comm_accept, each as if it were of another job, and writes who came first: accepts FILE. In team 0 that is rank 1, in
 * the others rank 2: the later one waits for the earlier one. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>

#include "of_team.h"

static void take_two(const char *port, const char *path) {
  FILE *file = fopen(path, "w");
  for (int i = 0; i < 2; ++i) {
    MPI_Comm other;
    int who;
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    MPI_Recv(&who, 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE);
    fprintf(file, "%d\n", who);
    MPI_Comm_disconnect(&other);
  }
  fclose(file);
}

static void come(const char *port, int rank) {
  MPI_Comm other;
  MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
  MPI_Send(&rank, 1, MPI_INT, 0, 0, other);
  MPI_Comm_disconnect(&other);
}

int main(int count, char **words) {
  char port[MPI_MAX_PORT_NAME] = "";
  int rank;
  MPI_Comm both;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &both);
  if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
  MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    take_two(port, words[1]);
    MPI_Close_port(port);
  } else {
    const int is_first = (rank == 1) == is_of_team('0');
    if (!is_first) MPI_Barrier(both);
    come(port, rank);
    if (is_first) MPI_Barrier(both);
  }
  return MPI_Finalize();
}
