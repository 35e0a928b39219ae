/* Collective calls: interleaved views, unequal shares, ranks with nothing, many rows at once, rewriting. */
#include "check.h"

static void interleaved_records(void) {
  enum { RECORD = 777, RECORDS = 2000 };
  MPI_File file = open_file(MPI_COMM_WORLD, "interleaved", MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Datatype record, strided;
  OK(MPI_Type_contiguous(RECORD, MPI_BYTE, &record));
  OK(MPI_Type_create_resized(record, 0, (MPI_Aint)RECORD * ranks, &strided));
  OK(MPI_Type_commit(&strided));
  OK(MPI_File_set_view(file, (MPI_Offset)rank * RECORD, MPI_BYTE, strided, "native", MPI_INFO_NULL));
  unsigned char *data = malloc((size_t)RECORD * RECORDS);
  MPI_Status status;
  for (int half = 0; half < 2; ++half) {
    fill(data, (int64_t)RECORD * RECORDS / 2, (int64_t)half * RECORD * RECORDS / 2, 30 + rank);
    OK(MPI_File_write_all(file, data, RECORD * RECORDS / 2, MPI_BYTE, &status));
    MOVED(&status, MPI_BYTE, RECORD * RECORDS / 2);
    if (half == 0) MIDDLE();
  }
  memset(data, 0, (size_t)RECORD * RECORDS);
  OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
  OK(MPI_File_read_all(file, data, RECORD * RECORDS, MPI_BYTE, &status));
  MOVED(&status, MPI_BYTE, RECORD * RECORDS);
  SAME(data, (int64_t)RECORD * RECORDS, 0, 30 + rank);
  OK(MPI_File_close(&file));
  free(data);
  MPI_Type_free(&record);
  MPI_Type_free(&strided);
}

static void unequal_shares_and_nothing(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "unequal", MPI_MODE_CREATE | MPI_MODE_RDWR);
  int mine = rank == 0 ? 0 : 100000 * rank + 1;
  MPI_Offset at = 0;
  for (int r = 0; r < rank; ++r) at += r == 0 ? 0 : 100000 * r + 1;
  unsigned char *data = malloc((size_t)mine + 1);
  MPI_Status status;
  fill(data, mine, at, 2);
  OK(MPI_File_write_at_all(file, at, data, mine, MPI_BYTE, &status));
  MOVED(&status, MPI_BYTE, mine);
  memset(data, 0, (size_t)mine);
  OK(MPI_File_read_at_all(file, at, data, mine, MPI_BYTE, &status));
  MOVED(&status, MPI_BYTE, mine);
  SAME(data, mine, at, 2);
  OK(MPI_File_write_at_all(file, 5, NULL, 0, MPI_BYTE, &status));
  MOVED(&status, MPI_BYTE, 0);
  OK(MPI_File_close(&file));
  free(data);
}

static void rewriting_synced_data(void) {
  enum { N = 400000 };
  MPI_File file = open_file(MPI_COMM_WORLD, "rewritten", MPI_MODE_CREATE | MPI_MODE_RDWR);
  unsigned char *data = malloc(N);
  for (int round = 0; round < 3; ++round) {
    fill(data, N, (int64_t)rank * N, 40 + round);
    OK(MPI_File_write_at_all(file, (MPI_Offset)rank * N, data, N, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(file));
  }
  /* Small writes here and there over synced rows, by all ranks, in the same rows. */
  for (int i = 0; i < 50; ++i) {
    MPI_Offset at = (MPI_Offset)(i * ranks + rank) * 7919 % ((MPI_Offset)ranks * N - 100);
    at = at / 100 * 100;
    fill(data, 100, at, 50);
    OK(MPI_File_write_at_all(file, at, data, 100, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  OK(MPI_File_sync(file));
  for (int i = 0; i < 50; ++i) {
    int other = (rank + 1) % ranks;
    MPI_Offset at = (MPI_Offset)(i * ranks + other) * 7919 % ((MPI_Offset)ranks * N - 100);
    at = at / 100 * 100;
    OK(MPI_File_read_at_all(file, at, data, 100, MPI_BYTE, MPI_STATUS_IGNORE));
    SAME(data, 100, at, 50);
  }
  OK(MPI_File_close(&file));
  free(data);
}

static void independent_then_collective_on_the_same_rows(void) {
  enum { N = 200000 };
  MPI_File file = open_file(MPI_COMM_WORLD, "both", MPI_MODE_CREATE | MPI_MODE_RDWR);
  unsigned char *data = malloc(N);
  fill(data, N, (int64_t)rank * N, 60);
  OK(MPI_File_write_at(file, (MPI_Offset)rank * N, data, N, MPI_BYTE, MPI_STATUS_IGNORE));
  MPI_Barrier(MPI_COMM_WORLD);
  fill(data, 1000, (int64_t)rank * N + 500, 61);
  OK(MPI_File_write_at_all(file, (MPI_Offset)rank * N + 500, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_sync(file));
  int other = (rank + 1) % ranks;
  OK(MPI_File_read_at_all(file, (MPI_Offset)other * N, data, N, MPI_BYTE, MPI_STATUS_IGNORE));
  SAME(data, 500, (int64_t)other * N, 60);
  SAME(data + 500, 1000, (int64_t)other * N + 500, 61);
  SAME(data + 1500, N - 1500, (int64_t)other * N + 1500, 60);
  OK(MPI_File_close(&file));
  free(data);
}

/* More than is packed at once, and more on some ranks than on others: all go on until none has more. */
static void large_shares_with_gaps_in_memory(void) {
  enum { BLOCK = 1000, STRIDE = 1300 };
  const int blocks = rank % 2 ? 18000 : 700;
  const int64_t mine = (int64_t)BLOCK * blocks, at = (int64_t)BLOCK * (rank / 2 * 18700 + rank % 2 * 700);
  MPI_File file = open_file(MPI_COMM_WORLD, "gaps", MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Datatype gapped;
  OK(MPI_Type_vector(blocks, BLOCK, STRIDE, MPI_BYTE, &gapped));
  OK(MPI_Type_commit(&gapped));
  unsigned char *data = malloc((size_t)STRIDE * (size_t)blocks);
  MPI_Status status;
  for (int b = 0; b < blocks; ++b) fill(data + (size_t)b * STRIDE, BLOCK, at + (int64_t)b * BLOCK, 50);
  OK(MPI_File_write_at_all(file, at, data, 1, gapped, &status));
  MOVED(&status, MPI_BYTE, (int)mine);
  memset(data, 0, (size_t)STRIDE * (size_t)blocks);
  OK(MPI_File_read_at_all(file, at, data, 1, gapped, &status));
  MOVED(&status, MPI_BYTE, (int)mine);
  for (int b = 0; b < blocks; ++b) SAME(data + (size_t)b * STRIDE, BLOCK, at + (int64_t)b * BLOCK, 50);
  OK(MPI_File_close(&file));
  free(data);
  MPI_Type_free(&gapped);
}

int main(int argc, char **argv) {
  static const Entry entries[] = {{"interleaved_records", interleaved_records},
                                  {"unequal_shares_and_nothing", unequal_shares_and_nothing},
                                  {"rewriting_synced_data", rewriting_synced_data},
                                  {"independent_then_collective_on_the_same_rows", independent_then_collective_on_the_same_rows},
                                  {"large_shares_with_gaps_in_memory", large_shares_with_gaps_in_memory},
                                  {NULL, NULL}};
  return run_sections(argc, argv, entries);
}
