// The plain ways to write and read: by offset, by pointer, together, through a view; durable, sized, deleted.
#include "check.h"

enum { N = 40000 };

static void by_offset(const char *path) {
  unsigned char *data = malloc(N), *back = calloc(1, N);
  fill(data, N, 7u + rank);
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Status status;
  OK(MPI_File_write_at(fh, (MPI_Offset)rank * N, data, N, MPI_BYTE, &status));
  SAME(count_of(&status, MPI_BYTE), N);
  OK(MPI_File_sync(fh));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_sync(fh));
  MPI_Offset size = 0;
  OK(MPI_File_get_size(fh, &size));
  SAME(size, (MPI_Offset)N * ranks);
  int other = (rank + 1) % ranks;
  OK(MPI_File_read_at(fh, (MPI_Offset)other * N, back, N, MPI_BYTE, &status));
  SAME(count_of(&status, MPI_BYTE), N);
  CHECK(holds(back, N, 7u + other));
  // Past the end: what there is.
  OK(MPI_File_read_at(fh, (MPI_Offset)ranks * N - 100, back, N, MPI_BYTE, &status));
  SAME(count_of(&status, MPI_BYTE), 100);
  OK(MPI_File_read_at(fh, (MPI_Offset)ranks * N + 100, back, N, MPI_BYTE, &status));
  SAME(count_of(&status, MPI_BYTE), 0);
  OK(MPI_File_close(&fh));
  CHECK(fh == MPI_FILE_NULL);
  free(data), free(back);
}

static void together(const char *path) {
  int *data = malloc(N * sizeof(int)), *back = calloc(N, sizeof(int));
  for (int i = 0; i < N; ++i) data[i] = i * ranks + rank;
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Datatype column;
  MPI_Type_vector(N, 1, ranks, MPI_INT, &column);
  MPI_Type_commit(&column);
  OK(MPI_File_set_view(fh, (MPI_Offset)(rank * sizeof(int)), MPI_INT, column, "native", MPI_INFO_NULL));
  MPI_Type_free(&column);
  MPI_Status status;
  OK(MPI_File_write_all(fh, data, N, MPI_INT, &status));
  SAME(count_of(&status, MPI_INT), N);
  MPI_Offset position = 0;
  OK(MPI_File_get_position(fh, &position));
  SAME(position, N);
  OK(MPI_File_seek(fh, 0, MPI_SEEK_SET));
  OK(MPI_File_read_all(fh, back, N, MPI_INT, &status));
  SAME(count_of(&status, MPI_INT), N);
  CHECK(memcmp(data, back, N * sizeof(int)) == 0);
  memset(back, 0, N * sizeof(int));
  OK(MPI_File_read_at_all(fh, 10, back, N - 10, MPI_INT, &status));
  CHECK(memcmp(data + 10, back, (N - 10) * sizeof(int)) == 0);
  OK(MPI_File_close(&fh));

  fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_RDONLY);
  int *all = malloc(sizeof(int) * N * ranks), wrong = 0;
  OK(MPI_File_read_at_all(fh, 0, all, N * ranks, MPI_INT, &status));
  for (int i = 0; i < N * ranks; ++i) wrong += all[i] != i;
  SAME(wrong, 0);
  OK(MPI_File_close(&fh));
  free(all), free(data), free(back);
}

static void sizes(const char *path) {
  char text[64] = "";
  MPI_Status status;
  MPI_Offset size = -1;
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  OK(MPI_File_set_size(fh, 3000000));
  OK(MPI_File_get_size(fh, &size));
  SAME(size, 3000000);
  OK(MPI_File_read_at(fh, 2999990, text, 20, MPI_CHAR, &status));
  SAME(count_of(&status, MPI_CHAR), 10);
  CHECK(memcmp(text, "\0\0\0\0\0\0\0\0\0\0", 10) == 0);
  OK(MPI_File_preallocate(fh, 1000));
  OK(MPI_File_get_size(fh, &size));
  SAME(size, 3000000);
  OK(MPI_File_preallocate(fh, 3500000));
  OK(MPI_File_get_size(fh, &size));
  SAME(size, 3500000);
  OK(MPI_File_set_size(fh, 5));
  OK(MPI_File_get_size(fh, &size));
  SAME(size, 5);
  if (rank == 0) OK(MPI_File_write_at(fh, 10, "abc", 3, MPI_CHAR, &status));
  OK(MPI_File_sync(fh));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_sync(fh));
  memset(text, 'x', sizeof text);
  OK(MPI_File_read_at_all(fh, 0, text, 64, MPI_CHAR, &status));
  SAME(count_of(&status, MPI_CHAR), 13);
  CHECK(memcmp(text, "\0\0\0\0\0\0\0\0\0\0abcx", 14) == 0);
  int amode = 0;
  OK(MPI_File_get_amode(fh, &amode));
  SAME(amode, MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Group group, world;
  int same = 0;
  OK(MPI_File_get_group(fh, &group));
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_compare(group, world, &same);
  SAME(same, MPI_IDENT);
  MPI_Group_free(&group), MPI_Group_free(&world);
  OK(MPI_File_close(&fh));
}

// Beyond 4 GiB: offsets must not lose their upper bits anywhere.
static void far_away(const char *path) {
  const MPI_Offset far = 5ll << 30;
  MPI_Status status;
  char text[16] = "";
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
  if (rank == ranks - 1) OK(MPI_File_write_at(fh, far, "far away", 8, MPI_CHAR, &status));
  OK(MPI_File_sync(fh));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_sync(fh));
  MPI_Offset size = 0;
  OK(MPI_File_get_size(fh, &size));
  SAME(size, far + 8);
  OK(MPI_File_seek(fh, -4, MPI_SEEK_END));
  OK(MPI_File_read(fh, text, 16, MPI_CHAR, &status));
  SAME(count_of(&status, MPI_CHAR), 4);
  CHECK(memcmp(text, "away", 4) == 0);
  OK(MPI_File_close(&fh));
}

// Every rank on its own, and several files at once.
static void alone(const char *directory) {
  char name[64], text[32], back[32] = "";
  snprintf(name, sizeof name, "alone%d", rank);
  snprintf(text, sizeof text, "by rank %d", rank);
  MPI_Status status;
  MPI_File mine = open_file(MPI_COMM_SELF, in(directory, name), MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_File ours = open_file(MPI_COMM_WORLD, in(directory, "ours"), MPI_MODE_CREATE | MPI_MODE_RDWR);
  OK(MPI_File_write(mine, text, (int)strlen(text), MPI_CHAR, &status));
  OK(MPI_File_write_at_all(ours, rank * 32, text, 32, MPI_CHAR, &status));
  OK(MPI_File_seek(mine, 0, MPI_SEEK_SET));
  OK(MPI_File_read(mine, back, 32, MPI_CHAR, &status));
  SAME(count_of(&status, MPI_CHAR), strlen(text));
  CHECK(strcmp(text, back) == 0);
  OK(MPI_File_read_at_all(ours, rank * 32, back, 32, MPI_CHAR, &status));
  CHECK(strcmp(text, back) == 0);
  OK(MPI_File_close(&mine));
  OK(MPI_File_close(&ours));
  OK(MPI_File_delete(in(directory, name), MPI_INFO_NULL));
  SAME(error_class(MPI_File_delete(in(directory, name), MPI_INFO_NULL)), MPI_ERR_NO_SUCH_FILE);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  for (int i = 1; i <= 2; ++i) {
    where = i == 1 ? "native" : "protected";
    by_offset(in(argv[i], "by_offset"));
    together(in(argv[i], "together"));
    if (i == 2) {  // Open MPI 4.1's own are wrong: preallocate, MPI_SEEK_END
      sizes(in(argv[i], "sizes"));
      far_away(in(argv[i], "far_away"));
    }
    alone(argv[i]);
    if (rank == 0) {
      MPI_File fh;
      SAME(error_class(MPI_File_open(MPI_COMM_SELF, in(argv[i], "far_away"), MPI_MODE_RDONLY, MPI_INFO_NULL, &fh)), MPI_ERR_NO_SUCH_FILE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  return finish();
}
