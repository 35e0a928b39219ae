/* One job, two ranks, no fault. Rank 1 has read near rows that do not exist yet. Rank 0 then writes these rows whole, and parts of them once
 * more before anybody syncs: both writes are in the file after the sync, also where rank 1 puts the parts in.
 *
 *   PATH preallocated   the file has its size before rank 1 reads
 *   PATH growing        rank 1 reads what rank 0 has written and synced; the rows come beyond the end of the file as it knows it */
#include <mpi.h>
#include <string.h>

#include "pattern.h"

enum { stripe = 8192, rows = 32, size = stripe * (rows + 1) }; /* a row where two units of 4096 bytes make one */

static int rank;
static MPI_File file;
static unsigned char *expected;

static void write_pattern(unsigned version, long offset, long count) {
  pattern_fill(expected + offset, version, offset, count);
  if (rank == 0) MUST(MPI_File_write_at(file, offset, expected + offset, (int)count, MPI_BYTE, MPI_STATUS_IGNORE));
}

/* As the standard says: what was written before it is seen by all after it. */
static void sync_barrier_sync(void) {
  MUST(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  MUST(MPI_File_sync(file));
}

static void look_at_the_beginning(void) {
  unsigned char few[10];
  if (rank == 1) MUST(MPI_File_read_at(file, 0, few, sizeof few, MPI_BYTE, MPI_STATUS_IGNORE));
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char *path = argv[1];
  expected = must_have(size);
  MUST(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  if (strcmp(argv[2], "preallocated") == 0) {
    MUST(MPI_File_set_size(file, size));
  } else {
    write_pattern(1, 0, 10);
    sync_barrier_sync();
  }
  look_at_the_beginning();
  write_pattern(2, stripe, (long)rows * stripe);
  for (int row = 1; row <= rows; row++) write_pattern(3, (long)row * stripe + 37 * row, 100);
  sync_barrier_sync();

  unsigned char *seen = must_have(size);
  MUST(MPI_File_read_at(file, stripe, seen + stripe, rows * stripe, MPI_BYTE, MPI_STATUS_IGNORE));
  long wrong = pattern_differ(rank ? "rank 1, after the sync" : "rank 0, after the sync", seen + stripe, expected + stripe, stripe, rows * stripe);
  MUST(MPI_File_close(&file));
  wrong += pattern_file_differs(path, expected, size);
  MPI_Finalize();
  return wrong ? 1 : 0;
}
