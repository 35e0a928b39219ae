/* Writes a line for each step, and one for each SIGUSR1, until SIGTERM comes. Then it writes one more, and ends with 7: ends_in_order FILE.
 * With BY_DEFAULT a SIGTERM ends it. With SAYS it prints that, and takes its time. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif

static volatile sig_atomic_t stop, heard;
static void handle(int signal) {
  if (signal == SIGTERM) stop = signal;
  else heard = signal;
}

int main(int count, char **words) {
  char name[4096];
  int rank = 0;
#ifdef WITH_MPI
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#endif
  if (count < 2) return 2;
#ifndef BY_DEFAULT
  signal(SIGTERM, handle);
#endif
  signal(SIGUSR1, handle);
  snprintf(name, sizeof name, "%s.%d", words[1], rank);
  FILE *file = fopen(name, "w");
  if (!file) return 3;
  for (int step = 0; !stop && step < 20000; ++step) {
    fprintf(file, "step %d\n", step);
    if (heard) fprintf(file, "heard\n");
    heard = 0;
    fflush(file);
    usleep(5000);
  }
  fprintf(file, "signal %d\n", (int)stop);
  if (fclose(file) != 0) return 4;
#ifdef SAYS
  printf("saved\n"); /* to a terminal at once, as Open MPI's ranks have it */
  sleep(4);
#endif
  printf("ended in order\n");
  fflush(stdout);
#ifdef WITH_MPI
  MPI_Finalize();
#endif
  return 7;
}
