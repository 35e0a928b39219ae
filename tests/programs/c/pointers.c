/* Explicit offsets, individual and shared file pointers, seeks and positions. */
#include "check.h"

enum { N = 50000 };
static unsigned char out[N], in[N];

static void explicit_offsets(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "explicit", MPI_MODE_CREATE | MPI_MODE_RDWR);
  for (int block = rank; block < 8 * ranks; block += ranks) {
    fill(out, N, (int64_t)block * N, 1);
    OK(MPI_File_write_at(file, (MPI_Offset)block * N, out, N, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  MPI_Offset position = -1;
  OK(MPI_File_get_position(file, &position));
  CHECK(position == 0, "explicit offsets moved the pointer to %lld", (long long)position);
  OK(MPI_File_sync(file));
  MIDDLE();
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_sync(file));
  for (int block = 0; block < 8 * ranks; ++block) {
    MPI_Status status;
    OK(MPI_File_read_at(file, (MPI_Offset)block * N, in, N, MPI_BYTE, &status));
    MOVED(&status, MPI_BYTE, N);
    SAME(in, N, (int64_t)block * N, 1);
  }
  OK(MPI_File_close(&file));
}

static void individual_pointer(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "individual", MPI_MODE_CREATE | MPI_MODE_RDWR);
  OK(MPI_File_seek(file, (MPI_Offset)rank * 4 * N, MPI_SEEK_SET));
  for (int i = 0; i < 4; ++i) {
    fill(out, N, ((int64_t)rank * 4 + i) * N, 2);
    OK(MPI_File_write(file, out, N, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  MPI_Offset position = -1;
  OK(MPI_File_get_position(file, &position));
  CHECK(position == (MPI_Offset)(rank + 1) * 4 * N, "position is %lld", (long long)position);
  OK(MPI_File_seek(file, -2 * (MPI_Offset)N, MPI_SEEK_CUR));
  OK(MPI_File_read(file, in, N, MPI_BYTE, MPI_STATUS_IGNORE));
  SAME(in, N, ((int64_t)rank * 4 + 2) * N, 2);
  OK(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_sync(file));
  OK(MPI_File_seek(file, -(MPI_Offset)N, MPI_SEEK_END));
  OK(MPI_File_read(file, in, N, MPI_BYTE, MPI_STATUS_IGNORE));
  SAME(in, N, ((int64_t)ranks * 4 - 1) * N, 2);
  MPI_Status status;
  OK(MPI_File_read(file, in, N, MPI_BYTE, &status));
  MOVED(&status, MPI_BYTE, 0);
  OK(MPI_File_close(&file));
}

static void seek_before_the_beginning_fails(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "individual", MPI_MODE_RDONLY);
  OK(MPI_File_seek(file, 10, MPI_SEEK_SET));
  int code = MPI_File_seek(file, -11, MPI_SEEK_CUR);
  CHECK(code != MPI_SUCCESS, "a seek to -1 succeeded");
  MPI_Offset position = -1;
  OK(MPI_File_get_position(file, &position));
  CHECK(position == 10, "the refused seek moved the pointer to %lld", (long long)position);
  OK(MPI_File_close(&file));
}

static void offsets_count_etypes_of_the_view(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "etypes", MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Datatype every_other, resized;
  OK(MPI_Type_contiguous(2, MPI_DOUBLE, &every_other));
  OK(MPI_Type_create_resized(every_other, 0, 2 * (MPI_Aint)ranks * (MPI_Aint)sizeof(double), &resized));
  OK(MPI_Type_commit(&resized));
  OK(MPI_File_set_view(file, 24 + (MPI_Offset)rank * 16, MPI_DOUBLE, resized, "native", MPI_INFO_NULL));
  double values[10], back[10];
  for (int i = 0; i < 10; ++i) values[i] = rank * 100 + i;
  OK(MPI_File_write(file, values, 10, MPI_DOUBLE, MPI_STATUS_IGNORE));
  MPI_Offset position = -1, byte = -1;
  OK(MPI_File_get_position(file, &position));
  CHECK(position == 10, "position is %lld etypes", (long long)position);
  OK(MPI_File_get_byte_offset(file, 3, &byte));
  CHECK(byte == 24 + rank * 16 + 16 * ranks + 8, "etype 3 is at byte %lld", (long long)byte);
  OK(MPI_File_read_at(file, 4, back, 6, MPI_DOUBLE, MPI_STATUS_IGNORE));
  CHECK(memcmp(back, values + 4, 6 * sizeof(double)) == 0, "read other doubles than were written");
  MPI_Offset displacement;
  MPI_Datatype etype, filetype;
  char representation[MPI_MAX_DATAREP_STRING];
  OK(MPI_File_get_view(file, &displacement, &etype, &filetype, representation));
  CHECK(displacement == 24 + rank * 16, "displacement is %lld", (long long)displacement);
  CHECK(strcmp(representation, "native") == 0, "representation is %s", representation);
  MPI_Type_free(&filetype);
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  OK(MPI_File_get_position(file, &position));
  CHECK(position == 0, "a new view left the pointer at %lld", (long long)position);
  OK(MPI_File_close(&file));
  MPI_Type_free(&every_other);
  MPI_Type_free(&resized);
}

/* Every rank writes and reads records through the shared pointer: each record is whole, none is lost, none twice. */
static void shared_pointer(void) {
  enum { RECORD = 1000, EACH = 20 };
  MPI_File file = open_file(MPI_COMM_WORLD, "shared", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
  int record[RECORD];
  for (int i = 0; i < EACH; ++i) {
    for (int k = 0; k < RECORD; ++k) record[k] = rank * EACH + i;
    OK(MPI_File_write_shared(file, record, RECORD, MPI_INT, MPI_STATUS_IGNORE));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Offset position = -1;
  OK(MPI_File_get_position_shared(file, &position));
  CHECK(position == (MPI_Offset)ranks * EACH * RECORD * 4, "shared position is %lld", (long long)position);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_sync(file));
  OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  int seen[EACH * 64] = {0}, all[EACH * 64];
  for (int i = 0; i < EACH; ++i) {
    OK(MPI_File_read_shared(file, record, RECORD, MPI_INT, MPI_STATUS_IGNORE));
    int whole = record[0] >= 0 && record[0] < EACH * ranks;
    for (int k = 0; k < RECORD; ++k) whole = whole && record[k] == record[0];
    CHECK(whole, "record %d is mixed", i);
    if (whole) ++seen[record[0]];
  }
  MPI_Allreduce(seen, all, EACH * 64, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < EACH * ranks; ++i) CHECK(all[i] == 1, "record %d was read %d times", i, all[i]);
  OK(MPI_File_close(&file));
}

static void ordered_goes_by_rank(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "ordered", MPI_MODE_CREATE | MPI_MODE_RDWR);
  int64_t at = 0;
  for (int round = 0; round < 3; ++round) {
    int64_t before = 0;
    for (int r = 0; r < rank; ++r) before += 1000 * (r + 1);
    fill(out, 1000 * (rank + 1), at + before, 6);
    OK(MPI_File_write_ordered(file, out, 1000 * (rank + 1), MPI_BYTE, MPI_STATUS_IGNORE));
    at += 1000 * ranks * (ranks + 1) / 2;
  }
  OK(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_sync(file));
  OK(MPI_File_seek_shared(file, 500, MPI_SEEK_SET));
  OK(MPI_File_read_ordered(file, in, 2000, MPI_BYTE, MPI_STATUS_IGNORE));
  if (500 + 2000 * (rank + 1) <= at) SAME(in, 2000, 500 + 2000 * (int64_t)rank, 6);
  MPI_Offset position = -1;
  OK(MPI_File_get_position_shared(file, &position));
  CHECK(position == 500 + 2000 * ranks, "shared position is %lld", (long long)position);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_seek_shared(file, -1000, MPI_SEEK_END));
  OK(MPI_File_get_position_shared(file, &position));
  CHECK(position == at - 1000, "shared position is %lld", (long long)position);
  OK(MPI_File_close(&file));
}

int main(int argc, char **argv) {
  static const Entry entries[] = {{"explicit_offsets", explicit_offsets},
                                  {"individual_pointer", individual_pointer},
                                  {"seek_before_the_beginning_fails", seek_before_the_beginning_fails},
                                  {"offsets_count_etypes_of_the_view", offsets_count_etypes_of_the_view},
                                  {"shared_pointer", shared_pointer},
                                  {"ordered_goes_by_rank", ordered_goes_by_rank},
                                  {NULL, NULL}};
  return run_sections(argc, argv, entries);
}
