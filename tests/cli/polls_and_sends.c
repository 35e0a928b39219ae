/* Asks for the time again and again for some seconds, and now and then sends itself a message: polls_and_sends FILE SECONDS. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int count, char **words) {
  MPI_Init(&count, &words);
  const time_t begun = time(NULL), seconds = atoi(words[2]);
  FILE *file = fopen(words[1], "w");
  fprintf(file, "begun\n");
  fflush(file);
  struct timespec now = {begun, 0};
  for (long i = 0; now.tv_sec < begun + seconds; ++i) {
    clock_gettime(CLOCK_REALTIME, &now);
    long in = 0;
    if (i % 1000 == 0) MPI_Sendrecv(&i, 1, MPI_LONG, 0, 1, &in, 1, MPI_LONG, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  }
  fprintf(file, "ended\n");
  fclose(file);
  return MPI_Finalize();
}
