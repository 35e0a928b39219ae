// An instrument's records, as many programs keep them: each rank writes a plain file of its own, PREFIX.0000.dat and so on, one small record
// at a time, and now and then says how far it is.
//   mpirun -n 4 ./records PREFIX [RECORDS]
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct record {
  long number;
  double values[7];
};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const long count = argc > 2 ? atol(argv[2]) : 100000;
  char path[4096];
  snprintf(path, sizeof path, "%s.%04d.dat", argc > 1 ? argv[1] : "records", rank);
  const int file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0666);
  if (file < 0) {
    perror(path);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (long i = 0; i < count; ++i) {
    struct record one = {i, {0}};
    for (int k = 0; k < 7; ++k) one.values[k] = (double)(i * 7 + k) / (rank + 1);
    if (write(file, &one, sizeof one) != sizeof one) {
      perror(path);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (i % 10000 == 0) printf("rank %d: %ld of %ld records\n", rank, i, count);
  }
  if (close(file) != 0) {
    perror(path);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return MPI_Finalize();
}
