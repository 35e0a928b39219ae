/* Lines by plain calls: lines PREFIX. All ranks append to PREFIX.log by O_APPEND; each writes PREFIX.RANK by stdio, goes back in it and counts there. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { count_of_lines = 60 };

int main(int count, char **words) {
  int rank;
  char path[4096], line[80];
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(path, sizeof path, "%s.log", words[1]);
  const int log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
  snprintf(path, sizeof path, "%s.%d", words[1], rank);
  FILE *own = fopen(path, "w+");
  fprintf(own, "%8d lines\n", 0);
  for (int i = 0; i < count_of_lines; ++i) {
    const int length = snprintf(line, sizeof line, "line %d of rank %d\n", i, rank);
    if (write(log, line, (size_t)length) != length) MPI_Abort(MPI_COMM_WORLD, 1);
    fseek(own, 0, SEEK_END);
    fputs(line, own);
    rewind(own);
    fprintf(own, "%8d", i + 1);
    usleep(30000);
  }
  fclose(own);
  close(log);
  return MPI_Finalize();
}
