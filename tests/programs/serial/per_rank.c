/* One file per rank by plain calls, as most MPI programs write their checkpoints; read back by the next rank. */
#include <fcntl.h>
#include <mpi.h>
#include "pause.h"

#define CHECK(what)                                                     \
  do {                                                                  \
    if (!(what)) {                                                      \
      fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, #what); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                     \
    }                                                                   \
  } while (0)

int main(int argc, char **argv) {
  static char piece[512], back[512];
  char name[2000];
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  snprintf(name, sizeof name, "%s.%d", argv[1], rank);
  FILE *out = fopen(name, "w");
  CHECK(out);
  for (int i = 0; i < 3000; ++i) {
    memset(piece, 'a' + (i + rank) % 26, sizeof piece);
    CHECK(fwrite(piece, 1, sizeof piece, out) == sizeof piece);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) half_way(argv[1]);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(fclose(out) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  snprintf(name, sizeof name, "%s.%d", argv[1], (rank + 1) % ranks);
  const int in = open(name, O_RDWR);
  CHECK(in >= 0 && pread(in, back, sizeof back, 512 * 1234) == sizeof back);
  memset(piece, 'a' + (1234 + (rank + 1) % ranks) % 26, sizeof piece);
  CHECK(memcmp(piece, back, sizeof piece) == 0);
  CHECK(pwrite(in, "once more", 9, 777) == 9 && close(in) == 0);
  MPI_Finalize();
  return 0;
}
