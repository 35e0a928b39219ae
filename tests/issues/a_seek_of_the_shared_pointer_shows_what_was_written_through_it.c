/* One job, four ranks, no fault. All ranks write records through the shared pointer. A collective call moves it back, and all ranks read through
 * it, without a sync between: each record is read whole, and by one rank.
 *
 *   PATH ALGORITHM   that of the shared pointer: window, individual or single */
#include <mpi.h>
#include <string.h>

#include "pattern.h"

enum { record = 500, each = 40, rounds = 3 }; /* no record is a row's, and few fill one */

static int rank, ranks;
static MPI_File file;

static unsigned number_of(int round, int of_rank, int i) { return (unsigned)((round * ranks + of_rank) * each + i); }

static void write_records(int round) {
  unsigned char bytes[record];
  for (int i = 0; i < each; i++) {
    const unsigned number = number_of(round, rank, i);
    pattern_fill(bytes, number, 0, record);
    memcpy(bytes, &number, sizeof number);
    if (round == 2) MUST(MPI_File_write_ordered(file, bytes, record, MPI_BYTE, MPI_STATUS_IGNORE));
    else MUST(MPI_File_write_shared(file, bytes, record, MPI_BYTE, MPI_STATUS_IGNORE));
  }
}

/* How many records are not what they were written as. */
static long read_records(int round) {
  unsigned char bytes[record], expected[record];
  int *seen = calloc(ranks * each, sizeof *seen), *by_all = calloc(ranks * each, sizeof *by_all);
  long wrong = 0;
  for (int i = 0; i < each; i++) {
    unsigned number;
    memset(bytes, 0, record);
    MUST(MPI_File_read_shared(file, bytes, record, MPI_BYTE, MPI_STATUS_IGNORE));
    memcpy(&number, bytes, sizeof number);
    pattern_fill(expected, number, 0, record);
    memcpy(expected, &number, sizeof number);
    const unsigned first = number_of(round, 0, 0);
    if (number >= first && number < first + (unsigned)(ranks * each) && memcmp(bytes, expected, record) == 0) seen[number - first]++;
    else wrong++;
  }
  MPI_Allreduce(seen, by_all, ranks * each, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; rank == 0 && i < ranks * each; i++) wrong += by_all[i] != 1;
  if (wrong) fprintf(stderr, "rank %d, round %d: %ld records are not what was written\n", rank, round, wrong);
  free(seen);
  free(by_all);
  return wrong;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "holdfast_shared_pointer", argv[2]);
  MUST(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
  MPI_Info_free(&info);
  long wrong = 0;
  for (int round = 0; round < rounds; round++) {
    write_records(round);
    MPI_Barrier(MPI_COMM_WORLD); /* Open MPI's own seek waits for nobody */
    if (round == 1) MUST(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    else MUST(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    wrong += read_records(round);
    MPI_Barrier(MPI_COMM_WORLD);
    MUST(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  }
  MUST(MPI_File_close(&file));
  MPI_Finalize();
  return wrong ? 1 : 0;
}
