/* Split collectives: begin and end, with other work and other calls in between. */
#include "check.h"

enum { N = 90000 };
static unsigned char out[N], in[N];

static void write_at_all(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "at_all", MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Status status;
  for (int round = 0; round < 3; ++round) {
    MPI_Offset at = ((MPI_Offset)round * ranks + rank) * N;
    fill(out, N, at, 1);
    OK(MPI_File_write_at_all_begin(file, at, out, N, MPI_BYTE));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_write_at_all_end(file, out, &status));
    MOVED(&status, MPI_BYTE, N);
    if (round == 1) MIDDLE();
  }
  MPI_Offset at = (MPI_Offset)(rank + ranks) * N;
  OK(MPI_File_read_at_all_begin(file, at, in, N, MPI_BYTE));
  OK(MPI_File_read_at_all_end(file, in, &status));
  MOVED(&status, MPI_BYTE, N);
  SAME(in, N, at, 1);
  OK(MPI_File_close(&file));
}

static void write_all(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "all", MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Datatype strided;
  OK(MPI_Type_vector(90, 1000, 1000 * ranks, MPI_BYTE, &strided));
  OK(MPI_Type_commit(&strided));
  OK(MPI_File_set_view(file, (MPI_Offset)rank * 1000, MPI_BYTE, strided, "native", MPI_INFO_NULL));
  fill(out, N, 0, 20 + rank);
  OK(MPI_File_write_all_begin(file, out, N, MPI_BYTE));
  OK(MPI_File_write_all_end(file, out, MPI_STATUS_IGNORE));
  MPI_Offset position = -1;
  OK(MPI_File_get_position(file, &position));
  CHECK(position == N, "position is %lld", (long long)position);
  OK(MPI_File_seek(file, 1500, MPI_SEEK_SET));
  OK(MPI_File_read_all_begin(file, in, N - 1500, MPI_BYTE));
  OK(MPI_File_read_all_end(file, in, MPI_STATUS_IGNORE));
  SAME(in, N - 1500, 1500, 20 + rank);
  OK(MPI_File_close(&file));
  MPI_Type_free(&strided);
}

static void ordered(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "ordered", MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Status status;
  fill(out, 3000, (int64_t)rank * 3000, 2);
  OK(MPI_File_write_ordered_begin(file, out, 3000, MPI_BYTE));
  OK(MPI_File_write_ordered_end(file, out, &status));
  MOVED(&status, MPI_BYTE, 3000);
  OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  OK(MPI_File_read_ordered_begin(file, in, 3000, MPI_BYTE));
  OK(MPI_File_read_ordered_end(file, in, &status));
  MOVED(&status, MPI_BYTE, 3000);
  SAME(in, 3000, (int64_t)rank * 3000, 2);
  OK(MPI_File_close(&file));
}

/* Noncollective calls on the handle are allowed between begin and end. */
static void independent_write_in_between(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "between", MPI_MODE_CREATE | MPI_MODE_RDWR);
  unsigned char more[500];
  fill(out, N, (int64_t)rank * N, 3);
  fill(more, 500, (int64_t)(ranks * N) + rank * 500, 3);
  OK(MPI_File_write_at_all_begin(file, (MPI_Offset)rank * N, out, N, MPI_BYTE));
  OK(MPI_File_write_at(file, (MPI_Offset)ranks * N + rank * 500, more, 500, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_write_at_all_end(file, out, MPI_STATUS_IGNORE));
  OK(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_sync(file));
  int other = (rank + 1) % ranks;
  OK(MPI_File_read_at(file, (MPI_Offset)ranks * N + other * 500, in, 500, MPI_BYTE, MPI_STATUS_IGNORE));
  SAME(in, 500, (int64_t)(ranks * N) + other * 500, 3);
  OK(MPI_File_close(&file));
}

int main(int argc, char **argv) {
  static const Entry entries[] = {{"write_at_all", write_at_all},
                                  {"write_all", write_all},
                                  {"ordered", ordered},
                                  {"independent_write_in_between", independent_write_in_between},
                                  {NULL, NULL}};
  return run_sections(argc, argv, entries);
}
