/* Where the program and its libraries lie in this process's memory, and what its node is called, into the file that is named. Replicas on different
 * nodes have to say the same.
 * With a number so many lines on standard output, before that. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  for (int i = 0; argc > 2 && i < atoi(argv[2]); ++i) printf("line %d of those that nobody reads for a while\n", i);
  fflush(stdout);
  FILE *file = fopen(argv[1], "w");
  if (!file) return 1;
  char host[256], processor[MPI_MAX_PROCESSOR_NAME];
  struct utsname system;
  int length;
  if (gethostname(host, sizeof host) != 0 || uname(&system) != 0 || MPI_Get_processor_name(processor, &length) != MPI_SUCCESS) return 1;
  fprintf(file, "%p %p\n%s %s %s\n", (void *)&main, (void *)&printf, host, system.nodename, processor);
  if (fclose(file) != 0) return 1;
  MPI_Finalize();
  return 0;
}
