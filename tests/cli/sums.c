/* Sums over ranks whose last bits show in which order they were made: sums [FILE]. The last rank writes them, a line each, under the names of the calls. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
enum { ALL = 300 };
static double own[ALL], sum[ALL];
static int rank, last;
static MPI_Request request;
static FILE *file;
static void show(const char *call) {
  for (int i = 0; i < ALL && rank == last; ++i) fprintf(file, "%s %a\n", call, sum[i]);
}
static void ended(const char *call) {
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  show(call);
}
int main(int count, char **words) {
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &last), --last;
  file = count > 1 && rank == last ? fopen(words[1], "w") : stdout;
  srand48(rank);
  for (int i = 0; i < ALL; ++i) own[i] = (drand48() - 0.5) * (1 << 5 * ((i + rank) % 6));
  MPI_Allreduce(own, sum, ALL, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  show("Allreduce");
  MPI_Reduce(own, sum, ALL, MPI_DOUBLE, MPI_SUM, last, MPI_COMM_WORLD);
  show("Reduce");
  MPI_Ireduce(own, sum, ALL, MPI_DOUBLE, MPI_SUM, last, MPI_COMM_WORLD, &request);
  ended("Ireduce");
  MPI_Scan(own, sum, ALL, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  show("Scan");
  MPI_Iscan(own, sum, ALL, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  ended("Iscan");
  fclose(file);
  return MPI_Finalize();
}
