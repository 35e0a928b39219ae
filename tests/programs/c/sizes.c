/* The size of a file: set, preallocated, grown by writes, cut; holes; reads past the end; delete. */
#include "check.h"

enum { N = 300000 };
static unsigned char data[N];

static MPI_Offset size_of(MPI_File file) {
  MPI_Offset size = -1;
  OK(MPI_File_get_size(file, &size));
  return size;
}

static int all_zero(const unsigned char *bytes, int count) {
  for (int i = 0; i < count; ++i)
    if (bytes[i]) return 0;
  return 1;
}

static void cut_and_grown(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "cut", MPI_MODE_CREATE | MPI_MODE_RDWR);
  CHECK(size_of(file) == 0, "a new file has size %lld", (long long)size_of(file));
  fill(data, N, (int64_t)rank * N, 1);
  OK(MPI_File_write_at_all(file, (MPI_Offset)rank * N, data, N, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(size_of(file) == (MPI_Offset)ranks * N, "size is %lld", (long long)size_of(file));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_set_size(file, 123457));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(size_of(file) == 123457, "size is %lld after the cut", (long long)size_of(file));
  MIDDLE();
  OK(MPI_File_set_size(file, 250000));
  CHECK(size_of(file) == 250000, "size is %lld after growing", (long long)size_of(file));
  MPI_Status status;
  OK(MPI_File_read_at(file, 0, data, N, MPI_BYTE, &status));
  MOVED(&status, MPI_BYTE, 250000);
  SAME(data, 123457, 0, 1);
  CHECK(all_zero(data + 123457, 250000 - 123457), "what was cut off is back");
  OK(MPI_File_close(&file));
}

static void preallocate_keeps_content(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "preallocated", MPI_MODE_CREATE | MPI_MODE_RDWR);
  fill(data, 5000, (int64_t)rank * 5000, 2);
  OK(MPI_File_write_at_all(file, (MPI_Offset)rank * 5000, data, 5000, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_sync(file)); /* OMPIO preallocates by writing what it has read */
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_preallocate(file, 1000000));
  CHECK(size_of(file) == 1000000, "size is %lld", (long long)size_of(file));
  OK(MPI_File_preallocate(file, 10));
  CHECK(size_of(file) == 1000000, "a smaller preallocation cut to %lld", (long long)size_of(file));
  OK(MPI_File_read_at_all(file, (MPI_Offset)rank * 5000, data, 5000, MPI_BYTE, MPI_STATUS_IGNORE));
  SAME(data, 5000, (int64_t)rank * 5000, 2);
  OK(MPI_File_close(&file));
}

static void holes_read_as_zeros(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "holes", MPI_MODE_CREATE | MPI_MODE_RDWR);
  fill(data, 10, 1000000 + rank * 10, 3);
  OK(MPI_File_write_at(file, 1000000 + rank * 10, data, 10, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_sync(file));
  MPI_Status status;
  memset(data, 1, N);
  OK(MPI_File_read_at(file, 0, data, N, MPI_BYTE, &status));
  MOVED(&status, MPI_BYTE, N);
  CHECK(all_zero(data, N), "a hole is not zero");
  CHECK(size_of(file) == 1000000 + ranks * 10, "size is %lld", (long long)size_of(file));
  OK(MPI_File_close(&file));
}

static void reads_past_the_end_are_short(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "short", MPI_MODE_CREATE | MPI_MODE_RDWR);
  fill(data, 1000, 0, 4);
  if (rank == 0) OK(MPI_File_write_at(file, 0, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_sync(file));
  MPI_Status status;
  memset(data, 0xAB, 2000);
  OK(MPI_File_read_at(file, 900, data, 500, MPI_BYTE, &status));
  MOVED(&status, MPI_BYTE, 100);
  SAME(data, 100, 900, 4);
  OK(MPI_File_read_at(file, 1000, data, 500, MPI_BYTE, &status));
  MOVED(&status, MPI_BYTE, 0);
  OK(MPI_File_close(&file));
}

static void collective_reads_past_the_end_are_short(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "short", MPI_MODE_RDONLY);
  MPI_Status status;
  OK(MPI_File_read_at_all(file, 5000000, data, 500, MPI_BYTE, &status));
  MOVED(&status, MPI_BYTE, 0);
  OK(MPI_File_read_at_all(file, 998 - rank, data, 500, MPI_BYTE, &status));
  MOVED(&status, MPI_BYTE, 2 + rank);
  OK(MPI_File_close(&file));
}

static void strided_reads_past_the_end_are_short(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "short", MPI_MODE_RDONLY);
  MPI_Datatype strided;
  OK(MPI_Type_create_resized(MPI_INT, 0, 64, &strided));
  OK(MPI_Type_commit(&strided));
  OK(MPI_File_set_view(file, 0, MPI_INT, strided, "native", MPI_INFO_NULL));
  MPI_Status status;
  int numbers[40];
  OK(MPI_File_read_at(file, 0, numbers, 40, MPI_INT, &status));
  MOVED(&status, MPI_INT, 16); /* ints at 0, 64, ..., 960 */
  OK(MPI_File_close(&file));
  MPI_Type_free(&strided);
}

static void sync_makes_writes_visible(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "synced", MPI_MODE_CREATE | MPI_MODE_RDWR);
  for (int round = 0; round < 5; ++round) {
    fill(data, 700, (int64_t)rank * 700, 50 + round);
    OK(MPI_File_write_at(file, (MPI_Offset)rank * 700, data, 700, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_sync(file));
    int other = (rank + 1) % ranks;
    OK(MPI_File_read_at(file, (MPI_Offset)other * 700, data, 700, MPI_BYTE, MPI_STATUS_IGNORE));
    SAME(data, 700, (int64_t)other * 700, 50 + round);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  OK(MPI_File_close(&file));
}

static void deleted_files_are_gone(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "deleted", MPI_MODE_CREATE | MPI_MODE_WRONLY);
  OK(MPI_File_write_at_all(file, (MPI_Offset)rank * 1000, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) OK(MPI_File_delete(path("deleted"), MPI_INFO_NULL));
  MPI_Barrier(MPI_COMM_WORLD);
  FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_WORLD, path("deleted"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_delete(path("deleted"), MPI_INFO_NULL));
  /* The name is free again. */
  file = open_file(MPI_COMM_WORLD, "deleted", MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR);
  CHECK(size_of(file) == 0, "the new file has the old one's size %lld", (long long)size_of(file));
  OK(MPI_File_close(&file));
}

int main(int argc, char **argv) {
  static const Entry entries[] = {{"cut_and_grown", cut_and_grown},
                                  {"preallocate_keeps_content", preallocate_keeps_content},
                                  {"holes_read_as_zeros", holes_read_as_zeros},
                                  {"reads_past_the_end_are_short", reads_past_the_end_are_short},
                                  {"collective_reads_past_the_end_are_short", collective_reads_past_the_end_are_short},
                                  {"strided_reads_past_the_end_are_short", strided_reads_past_the_end_are_short},
                                  {"sync_makes_writes_visible", sync_makes_writes_visible},
                                  {"deleted_files_are_gone", deleted_files_are_gone},
                                  {NULL, NULL}};
  return run_sections(argc, argv, entries);
}
