/* Checkpoints by MPI-IO, a file of each rank: what a program may do with such a file, and what it is told.
     mpi_io write | read
     mpi_io close LOOK    LOOK RANK is a command that succeeds where the rank's file of step 1 is protected */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { numbers = 1000 };

static const char* name(int step, int of_rank) {
  static char text[64];
  snprintf(text, sizeof text, "ck/ck.%d.%d", step, of_rank);
  return text;
}

static int class_of(int code) {
  int class = MPI_SUCCESS;
  MPI_Error_class(code, &class);
  return class;
}

static void fill(int* values, int step, int of_rank) {
  for (int i = 0; i < numbers; ++i) values[i] = step * 1000000 + of_rank * 10000 + i;
}

static void expect(MPI_File file, int step, int of_rank) {
  int values[numbers], got[numbers];
  MPI_Offset size = 0;
  fill(values, step, of_rank);
  DONE(MPI_File_get_size(file, &size));
  CHECK(size == (MPI_Offset)sizeof values);
  DONE(MPI_File_read_at(file, 0, got, numbers, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(memcmp(values, got, sizeof got) == 0);
}

/* Each second number through a view, the others with offsets. */
static void write_step(int step) {
  int values[numbers], amode = 0;
  MPI_File file;
  MPI_Datatype second;
  fill(values, step, rank);
  DONE(MPI_File_open(MPI_COMM_SELF, name(step, rank), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  DONE(MPI_File_get_amode(file, &amode));
  CHECK(amode == (MPI_MODE_CREATE | MPI_MODE_RDWR));
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &second);
  MPI_Type_commit(&second);
  DONE(MPI_File_set_view(file, 0, MPI_INT, second, "native", MPI_INFO_NULL));
  int evens[numbers / 2];
  for (int i = 0; i < numbers / 2; ++i) evens[i] = values[2 * i];
  DONE(MPI_File_write_all(file, evens, numbers / 2, MPI_INT, MPI_STATUS_IGNORE));
  DONE(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  for (int i = 1; i < numbers; i += 2) DONE(MPI_File_write_at(file, i, &values[i], 1, MPI_INT, MPI_STATUS_IGNORE));
  DONE(MPI_File_sync(file));
  expect(file, step, rank);
  DONE(MPI_File_close(&file));
  MPI_Type_free(&second);
}

static void read_step(int step, MPI_Comm comm, int of_rank) {
  MPI_File file;
  DONE(MPI_File_open(comm, name(step, of_rank), MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  expect(file, step, of_rank);
  DONE(MPI_File_close(&file));
}

static void what_is_refused(void) {
  MPI_File file;
  CHECK(class_of(MPI_File_open(MPI_COMM_SELF, name(9, rank), MPI_MODE_RDONLY, MPI_INFO_NULL, &file)) == MPI_ERR_NO_SUCH_FILE);
  CHECK(class_of(MPI_File_open(MPI_COMM_SELF, name(9, rank), MPI_MODE_WRONLY, MPI_INFO_NULL, &file)) == MPI_ERR_NO_SUCH_FILE);
  CHECK(class_of(MPI_File_open(MPI_COMM_SELF, name(1, rank), MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY, MPI_INFO_NULL, &file)) ==
        MPI_ERR_FILE_EXISTS);
}

/* It goes as its name alone. */
static void remove_link_at_close(int step) {
  char link[64];
  MPI_File file;
  snprintf(link, sizeof link, "ck/latest.%d", rank);
  CHECK(symlink(strrchr(name(step, rank), '/') + 1, link) == 0);
  DONE(MPI_File_open(MPI_COMM_SELF, link, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
  DONE(MPI_File_close(&file));
  CHECK(access(link, F_OK) != 0);
  read_step(step, MPI_COMM_SELF, rank);
}

/* Its second half is written again by an open that appends. */
static void append_half(int step) {
  MPI_File file;
  MPI_Offset at = 0;
  int values[numbers];
  const int half = numbers / 2;
  fill(values, step, rank);
  DONE(MPI_File_open(MPI_COMM_SELF, name(step, rank), MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
  DONE(MPI_File_set_size(file, half * sizeof(int)));
  DONE(MPI_File_close(&file));
  DONE(MPI_File_open(MPI_COMM_SELF, name(step, rank), MPI_MODE_APPEND | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
  DONE(MPI_File_get_position(file, &at));
  CHECK(at == (MPI_Offset)(half * sizeof(int)));
  DONE(MPI_File_write(file, values + half, half - 10, MPI_INT, MPI_STATUS_IGNORE));
  DONE(MPI_File_close(&file));
  DONE(MPI_File_open(MPI_COMM_SELF, name(step, rank), MPI_MODE_APPEND | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  DONE(MPI_File_write_shared(file, values + numbers - 10, 10, MPI_INT, MPI_STATUS_IGNORE));
  DONE(MPI_File_close(&file));
  read_step(step, MPI_COMM_SELF, rank);
}

/* Steps 0 and 3 are removed, 2 is updated in place. */
static void write_all(void) {
  MPI_File file;
  int values[numbers];
  write_step(0);
  DONE(MPI_File_delete(name(0, rank), MPI_INFO_NULL));
  CHECK(access(name(0, rank), F_OK) != 0);
  write_step(1);
  what_is_refused();
  DONE(MPI_File_open(MPI_COMM_SELF, name(3, rank), MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
  fill(values, 3, rank);
  DONE(MPI_File_write(file, values, 3, MPI_INT, MPI_STATUS_IGNORE));
  DONE(MPI_File_close(&file));
  CHECK(access(name(3, rank), F_OK) != 0);
  write_step(2);
  DONE(MPI_File_open(MPI_COMM_SELF, name(2, rank), MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
  DONE(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  fill(values, 2, rank);
  DONE(MPI_File_write_at(file, 10, values + 10, 10, MPI_INT, MPI_STATUS_IGNORE));
  for (int i = 20; i < 30; ++i) {
    DONE(MPI_File_seek_shared(file, i, MPI_SEEK_SET));
    DONE(MPI_File_write_shared(file, values + i, 1, MPI_INT, MPI_STATUS_IGNORE));
  }
  DONE(MPI_File_close(&file));
  read_step(2, MPI_COMM_SELF, rank);
  append_half(2);
  remove_link_at_close(2);
}

/* Whether it is protected when MPI_File_close has returned. */
static void write_and_look(const char* look) {
  char command[1024];
  write_step(1);
  snprintf(command, sizeof command, "%s %d > look.%d", look, rank, rank);
  CHECK(system(command) == 0);
}

int main(int count, char** words) {
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (count > 1 && !strcmp(words[1], "write")) write_all();
  else if (count > 2 && !strcmp(words[1], "close")) write_and_look(words[2]);
  else {
    read_step(2, MPI_COMM_SELF, rank);
    read_step(2, MPI_COMM_WORLD, 0);
    CHECK(access(name(1, rank), F_OK) != 0);
  }
  int all = wrong;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return all;
}
