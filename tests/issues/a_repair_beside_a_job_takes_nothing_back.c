/* A job fills the holes of a file that has its size already, row after row, while somebody repairs the file again and again. PATH GO: the job
 * makes the file GO when it begins to write. */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <unistd.h>

#include "pattern.h"

enum { row = 8192, rows = 400, size = row * rows, pause_us = 3000 };

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  unsigned char *expected = must_have(size);
  pattern_fill(expected, 1, 0, size);
  MPI_File file;
  MUST(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  MUST(MPI_File_set_size(file, size));
  if (rank == 0) fclose(fopen(argv[2], "w"));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = rank; i < rows; i += ranks) {
    MUST(MPI_File_write_at(file, (MPI_Offset)i * row, expected + i * row, row, MPI_BYTE, MPI_STATUS_IGNORE));
    usleep(pause_us); /* so that repairs come in the middle */
  }
  MUST(MPI_File_close(&file));
  MPI_Barrier(MPI_COMM_WORLD);
  const long wrong = rank == 0 ? pattern_file_differs(argv[1], expected, size) : 0;
  MPI_Finalize();
  return wrong ? 1 : 0;
}
