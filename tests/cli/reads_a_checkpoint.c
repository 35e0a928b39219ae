// All ranks open one checkpoint together to read, and each says what came of it.
#include <mpi.h>
#include <stdio.h>

int main(int count, char **words) {
  MPI_Init(&count, &words);
  int rank, length;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_File file;
  const int code = MPI_File_open(MPI_COMM_WORLD, words[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  char text[MPI_MAX_ERROR_STRING];
  MPI_Error_string(code, text, &length);
  printf("rank %d: %s\n", rank, text);
  if (code == MPI_SUCCESS) MPI_File_close(&file);
  return MPI_Finalize();
}
