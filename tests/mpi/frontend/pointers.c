// Individual and shared pointers, ordered access, append, sequential.
#include "check.h"

static void individual(const char *path) {
  MPI_Status status;
  MPI_Offset at = -1;
  int data[100], back[100];
  for (int i = 0; i < 100; ++i) data[i] = 1000 * rank + i;
  MPI_File fh = open_file(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Datatype spaced;
  MPI_Type_vector(5, 2, 4, MPI_INT, &spaced);
  MPI_Type_commit(&spaced);
  OK(MPI_File_set_view(fh, 8, MPI_INT, spaced, "native", MPI_INFO_NULL));
  OK(MPI_File_write(fh, data, 7, MPI_INT, &status));
  OK(MPI_File_get_position(fh, &at));
  SAME(at, 7);
  OK(MPI_File_write(fh, data + 7, 20, MPI_INT, &status));
  OK(MPI_File_seek(fh, -10, MPI_SEEK_CUR));
  OK(MPI_File_get_position(fh, &at));
  SAME(at, 17);
  OK(MPI_File_read(fh, back, 10, MPI_INT, &status));
  CHECK(memcmp(back, data + 17, 40) == 0);
  OK(MPI_File_seek(fh, 0, MPI_SEEK_END));
  OK(MPI_File_get_position(fh, &at));
  SAME(at, 27);
  OK(MPI_File_seek(fh, -27, MPI_SEEK_END));
  OK(MPI_File_read(fh, back, 100, MPI_INT, &status));
  SAME(count_of(&status, MPI_INT), 27);
  OK(MPI_File_get_position(fh, &at));
  SAME(at, 27);
  CHECK(memcmp(back, data, 27 * 4) == 0);
  OK(MPI_File_get_byte_offset(fh, 3, &at));
  SAME(at, 8 + 5 * 4);
  OK(MPI_File_get_byte_offset(fh, 10, &at));  // the first of the second tile: its extent is 18 integers
  SAME(at, 8 + 18 * 4);
  SAME(error_class(MPI_File_seek(fh, -1, MPI_SEEK_SET)), MPI_ERR_ARG);
  MPI_Offset disp = 0;
  MPI_Datatype etype, filetype;
  char datarep[MPI_MAX_DATAREP_STRING] = "";
  OK(MPI_File_get_view(fh, &disp, &etype, &filetype, datarep));
  SAME(disp, 8);
  CHECK(etype == MPI_INT);
  int size = 0;
  MPI_Type_size(filetype, &size);
  SAME(size, 40);
  CHECK(strcmp(datarep, "native") == 0);
  MPI_Type_free(&filetype);
  MPI_Type_free(&spaced);
  OK(MPI_File_close(&fh));

  fh = open_file(MPI_COMM_SELF, path, MPI_MODE_WRONLY | MPI_MODE_APPEND);
  MPI_Offset end = 0;
  OK(MPI_File_get_size(fh, &end));
  OK(MPI_File_get_position(fh, &at));
  SAME(at, end);
  OK(MPI_File_write(fh, "more", 4, MPI_CHAR, &status));
  OK(MPI_File_get_size(fh, &at));
  SAME(at, end + 4);
  OK(MPI_File_close(&fh));
}

enum { RECORDS = 25 };

static void shared(const char *path) {
  MPI_Status status;
  MPI_Offset at = -1;
  int record[3], *all = calloc(3 * RECORDS * ranks, sizeof(int)), next[64] = {0};
  MPI_Datatype three;
  MPI_Type_contiguous(3, MPI_INT, &three);
  MPI_Type_commit(&three);
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  OK(MPI_File_set_view(fh, 0, three, three, "native", MPI_INFO_NULL));
  for (int i = 0; i < RECORDS; ++i) {
    record[0] = rank, record[1] = i, record[2] = rank * 1000 + i;
    OK(MPI_File_write_shared(fh, record, 1, three, &status));
  }
  OK(MPI_File_sync(fh));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_sync(fh));
  OK(MPI_File_get_position_shared(fh, &at));
  SAME(at, RECORDS * ranks);
  OK(MPI_File_read_at_all(fh, 0, all, RECORDS * ranks, three, &status));
  SAME(count_of(&status, three), RECORDS * ranks);
  for (int i = 0; i < RECORDS * ranks; ++i) {  // each once, a rank's own in its order
    const int by = all[3 * i];
    CHECK(by >= 0 && by < ranks);
    if (by < 0 || by >= ranks) break;
    SAME(all[3 * i + 1], next[by]++);
    SAME(all[3 * i + 2], by * 1000 + all[3 * i + 1]);
  }
  OK(MPI_File_seek_shared(fh, 2, MPI_SEEK_SET));
  OK(MPI_File_get_position_shared(fh, &at));
  SAME(at, 2);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_read_shared(fh, record, 1, three, &status));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_get_position_shared(fh, &at));
  SAME(at, 2 + ranks);
  OK(MPI_File_seek_shared(fh, -1, MPI_SEEK_END));
  OK(MPI_File_get_position_shared(fh, &at));
  SAME(at, RECORDS * ranks - 1);
  OK(MPI_File_close(&fh));
  MPI_Type_free(&three);
  free(all);
}

// Rank r brings r + 1 integers; they lie in rank order.
static void ordered(const char *path) {
  MPI_Status status;
  MPI_Offset at = -1;
  int mine[64], back[64], total = ranks * (ranks + 1) / 2, before = rank * (rank + 1) / 2;
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i <= rank; ++i) mine[i] = round * total + before + i;
    OK(MPI_File_write_ordered(fh, mine, rank + 1, MPI_INT, &status));
    SAME(count_of(&status, MPI_INT), rank + 1);
  }
  for (int i = 0; i <= rank; ++i) mine[i] = 3 * total + before + i;
  OK(MPI_File_write_ordered_begin(fh, mine, rank + 1, MPI_INT));
  OK(MPI_File_write_ordered_end(fh, mine, &status));
  OK(MPI_File_get_position_shared(fh, &at));
  SAME(at, 4 * total);
  OK(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET));
  for (int round = 0; round < 4; ++round) {
    if (round < 3) {
      OK(MPI_File_read_ordered(fh, back, rank + 1, MPI_INT, &status));
    } else {
      OK(MPI_File_read_ordered_begin(fh, back, rank + 1, MPI_INT));
      OK(MPI_File_read_ordered_end(fh, back, &status));
    }
    SAME(count_of(&status, MPI_INT), rank + 1);
    for (int i = 0; i <= rank; ++i) SAME(back[i], round * total + before + i);
  }
  OK(MPI_File_read_ordered(fh, back, rank + 1, MPI_INT, &status));
  SAME(count_of(&status, MPI_INT), 0);
  OK(MPI_File_close(&fh));
}

static void sequential(const char *path) {
  MPI_Status status;
  char text[64] = "";
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
  SAME(error_class(MPI_File_write_at(fh, 0, "x", 1, MPI_CHAR, &status)), MPI_ERR_UNSUPPORTED_OPERATION);
  SAME(error_class(MPI_File_write(fh, "x", 1, MPI_CHAR, &status)), MPI_ERR_UNSUPPORTED_OPERATION);
  SAME(error_class(MPI_File_seek(fh, 0, MPI_SEEK_SET)), MPI_ERR_UNSUPPORTED_OPERATION);
  OK(MPI_File_write_ordered(fh, "ab", 2, MPI_CHAR, &status));
  OK(MPI_File_set_view(fh, MPI_DISPLACEMENT_CURRENT, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL));
  OK(MPI_File_write_shared(fh, "c", 1, MPI_CHAR, &status));
  OK(MPI_File_close(&fh));
  fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_RDONLY);
  OK(MPI_File_read_at(fh, 0, text, 64, MPI_CHAR, &status));
  SAME(count_of(&status, MPI_CHAR), 3 * ranks);
  for (int i = 0; i < 2 * ranks; ++i) SAME(text[i], i % 2 ? 'b' : 'a');
  for (int i = 2 * ranks; i < 3 * ranks; ++i) SAME(text[i], 'c');
  OK(MPI_File_close(&fh));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  where = "protected";
  char name[32];
  snprintf(name, sizeof name, "individual%d", rank);
  individual(in(argv[2], name));
  shared(in(argv[2], "shared"));
  ordered(in(argv[2], "ordered"));
  sequential(in(argv[2], "sequential"));
  // Of MPI's own files the shared pointer is ours too.
  where = "native";
  shared(in(argv[1], "shared"));
  ordered(in(argv[1], "ordered"));
  sequential(in(argv[1], "sequential"));
  return finish();
}
