/* Offsets beyond 2 and 4 GiB in sparse files, views that begin there, and large-count calls where MPI has them. */
#include "check.h"

enum { N = 100000 };
static unsigned char data[N];
static const MPI_Offset GiB = (MPI_Offset)1 << 30;

static void offsets_beyond_4_gib(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "far", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
  const MPI_Offset places[3] = {2 * GiB - 50000, 4 * GiB - 50000, 5 * GiB + 12345};
  MPI_Status status;
  for (int p = 0; p < 3; ++p) {
    MPI_Offset at = places[p] + (MPI_Offset)rank * N;
    fill(data, N, at, 1);
    OK(MPI_File_write_at(file, at, data, N, MPI_BYTE, &status));
    MOVED(&status, MPI_BYTE, N);
  }
  OK(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_sync(file));
  MIDDLE();
  int other = (rank + 1) % ranks;
  for (int p = 0; p < 3; ++p) {
    MPI_Offset at = places[p] + (MPI_Offset)other * N;
    OK(MPI_File_read_at(file, at, data, N, MPI_BYTE, &status));
    MOVED(&status, MPI_BYTE, N);
    SAME(data, N, at, 1);
  }
  MPI_Offset size = 0, position = 0;
  OK(MPI_File_get_size(file, &size));
  CHECK(size == places[2] + (MPI_Offset)ranks * N, "size is %lld", (long long)size);
  OK(MPI_File_seek(file, -(MPI_Offset)N, MPI_SEEK_END));
  OK(MPI_File_get_position(file, &position));
  CHECK(position == size - N, "position is %lld", (long long)position);
  OK(MPI_File_read(file, data, N, MPI_BYTE, MPI_STATUS_IGNORE));
  SAME(data, N, size - N, 1);
  OK(MPI_File_close(&file));
}

static void views_beyond_4_gib(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "far_view", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
  MPI_Datatype wide;
  MPI_Aint stride = (MPI_Aint)(3 * GiB);
  OK(MPI_Type_create_hvector(2, 1000, stride, MPI_BYTE, &wide));
  OK(MPI_Type_commit(&wide));
  OK(MPI_File_set_view(file, 3 * GiB + (MPI_Offset)rank * 1000, MPI_BYTE, wide, "native", MPI_INFO_NULL));
  fill(data, 2000, 0, 10 + rank);
  OK(MPI_File_write_at_all(file, 0, data, 2000, MPI_BYTE, MPI_STATUS_IGNORE));
  MPI_Offset byte = 0;
  OK(MPI_File_get_byte_offset(file, 1500, &byte));
  CHECK(byte == 6 * GiB + rank * 1000 + 500, "etype 1500 is at byte %lld", (long long)byte);
  memset(data, 0, 2000);
  OK(MPI_File_read_at_all(file, 0, data, 2000, MPI_BYTE, MPI_STATUS_IGNORE));
  SAME(data, 2000, 0, 10 + rank);
  OK(MPI_File_close(&file));
  MPI_Type_free(&wide);
}

static void size_beyond_4_gib(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "far_size", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
  OK(MPI_File_set_size(file, 7 * GiB + 1));
  MPI_Offset size = 0;
  OK(MPI_File_get_size(file, &size));
  CHECK(size == 7 * GiB + 1, "size is %lld", (long long)size);
  MPI_Status status;
  memset(data, 1, N);
  OK(MPI_File_read_at(file, 7 * GiB - 10, data, N, MPI_BYTE, &status));
  MOVED(&status, MPI_BYTE, 11);
  for (int i = 0; i < 11; ++i) CHECK(data[i] == 0, "byte %d is %d", i, data[i]);
  OK(MPI_File_close(&file));
}

#if MPI_VERSION >= 4
static void large_counts(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "counts", MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Status status;
  MPI_Request request;
  MPI_Count moved = -1;
  MPI_Offset at = (MPI_Offset)rank * N;
  fill(data, N, at, 2);
  OK(MPI_File_write_at_all_c(file, at, data, (MPI_Count)N, MPI_BYTE, &status));
  OK(MPI_Get_count_c(&status, MPI_BYTE, &moved));
  CHECK(moved == N, "moved %lld", (long long)moved);
  memset(data, 0, N);
  OK(MPI_File_read_at_c(file, at, data, (MPI_Count)N, MPI_BYTE, &status));
  SAME(data, N, at, 2);
  OK(MPI_File_seek(file, at + (MPI_Offset)ranks * N, MPI_SEEK_SET));
  fill(data, N, at + (MPI_Offset)ranks * N, 2);
  OK(MPI_File_iwrite_c(file, data, (MPI_Count)N, MPI_BYTE, &request));
  OK(MPI_Wait(&request, &status));
  OK(MPI_File_iread_at_c(file, at + (MPI_Offset)ranks * N, data, (MPI_Count)N, MPI_BYTE, &request));
  OK(MPI_Wait(&request, &status));
  SAME(data, N, at + (MPI_Offset)ranks * N, 2);
  OK(MPI_File_write_ordered_c(file, data, (MPI_Count)0, MPI_BYTE, &status));
  OK(MPI_File_read_at_all_begin_c(file, at, data, (MPI_Count)N, MPI_BYTE));
  OK(MPI_File_read_at_all_end(file, data, &status));
  SAME(data, N, at, 2);
  MPI_Count extent = 0;
  OK(MPI_File_get_type_extent_c(file, MPI_DOUBLE, &extent));
  CHECK(extent == 8, "a double's extent is %lld", (long long)extent);
  OK(MPI_File_close(&file));
}
#endif

int main(int argc, char **argv) {
  static const Entry entries[] =
  { {"offsets_beyond_4_gib", offsets_beyond_4_gib},
    {"views_beyond_4_gib", views_beyond_4_gib},
    {"size_beyond_4_gib", size_beyond_4_gib},
#if MPI_VERSION >= 4
    {"large_counts", large_counts},
#endif
    {NULL, NULL} };
  return run_sections(argc, argv, entries);
}
