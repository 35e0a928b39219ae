/* Two ranks, of which each has one replica at a file and the other one at a message of the other rank: crosswise HOW DIRECTORY.
 * `crosswise`: so it is, for in team 1 both do it in the other order. `slow`: in the same order, and rank 1 of team 1 is busy for 20 s meanwhile. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "of_team.h"

static int rank;

static void write_line(const char *directory) {
  char path[4096];
  snprintf(path, sizeof path, "%s/of-%d", directory, rank);
  FILE *file = fopen(path, "w");
  fprintf(file, "line\n");
  fclose(file);
}

static void exchange(void) {
  int got = 0;
  MPI_Sendrecv(&rank, 1, MPI_INT, !rank, 1, &got, 1, MPI_INT, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int count, char **words) {
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (count != 3) return MPI_Finalize(), 77;
  const int other_team = is_of_team('1'), crosswise = !strcmp(words[1], "crosswise");
  if (!crosswise && other_team && rank == 1) syscall(SYS_nanosleep, &(struct timespec){20, 0}, NULL);
  if (crosswise && rank == other_team) write_line(words[2]), exchange();
  else exchange(), write_line(words[2]);
  return MPI_Finalize();
}
