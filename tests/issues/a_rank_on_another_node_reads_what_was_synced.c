/* One job, no fault. All ranks read the whole file, which fills their nodes' memory. Then each writes rows of its own, whole and in part, into
 * one half of the rounds' rows each, and after a sync all ranks read all of it: with their handles open all the time.
 *
 *   PATH */
#include <mpi.h>
#include <string.h>

#include "pattern.h"

enum { row = 8192, rows = 24, bytes = rows * row, rounds = 6 };

static int rank, ranks;

/* Who writes what in a round: rows in turn, another first one each round; every third row of it only in part. */
static void write_round(MPI_File file, int round, unsigned char *expected) {
  unsigned char *data = must_have(row);
  for (int r = 0; r < rows; r++) {
    const int writer = (r + round) % ranks;
    const long from = r % 3 == 0 ? 1000 : 0, count = r % 3 == 0 ? 3000 : row;
    if ((r + round) % 5 == 4) continue; /* stays as it is */
    pattern_fill(data, (unsigned)(round * 100 + writer), (long)r * row + from, count);
    memcpy(expected + (long)r * row + from, data, count);
    if (writer == rank) MUST(MPI_File_write_at(file, (MPI_Offset)r * row + from, data, (int)count, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  free(data);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_File file;
  MUST(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  unsigned char *expected = must_have(bytes), *seen = must_have(bytes);
  pattern_fill(expected, 1, 0, bytes);
  if (rank == 0) MUST(MPI_File_write_at(file, 0, expected, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  long wrong = 0;
  for (int round = 0; round < rounds; round++) {
    MUST(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    MUST(MPI_File_sync(file));
    MUST(MPI_File_read_at(file, 0, seen, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    char what[40];
    snprintf(what, sizeof what, "rank %d, round %d", rank, round);
    wrong += pattern_differ(what, seen, expected, 0, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    write_round(file, round, expected);
  }
  MUST(MPI_File_close(&file));
  MPI_Barrier(MPI_COMM_WORLD);
  wrong += pattern_file_differs(argv[1], expected, bytes);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  free(expected);
  free(seen);
  MPI_Finalize();
  return wrong != 0;
}
