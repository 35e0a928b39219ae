/* Access modes of MPI_File_open: what each allows, refuses and leaves behind. */
#include "check.h"

enum { N = 70000 };
static unsigned char out[N], in[N];

static void create_and_get_amode(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "rdwr", MPI_MODE_CREATE | MPI_MODE_RDWR);
  int mode = 0;
  OK(MPI_File_get_amode(file, &mode));
  CHECK(mode == (MPI_MODE_CREATE | MPI_MODE_RDWR), "amode is %d", mode);
  fill(out, N, (int64_t)rank * N, 1);
  OK(MPI_File_write_at(file, (MPI_Offset)rank * N, out, N, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  CHECK(file == MPI_FILE_NULL, "the handle is still there after close");
  MIDDLE();
}

static void create_excl_refuses_what_exists(void) {
  MPI_File file = MPI_FILE_NULL;
  FAILS(MPI_ERR_FILE_EXISTS, MPI_File_open(MPI_COMM_WORLD, path("rdwr"), MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  file = open_file(MPI_COMM_WORLD, "excl", MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY);
  OK(MPI_File_close(&file));
}

static void rdonly_reads_and_refuses_writes(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "rdwr", MPI_MODE_RDONLY);
  int other = (rank + 1) % ranks;
  MPI_Status status;
  OK(MPI_File_read_at(file, (MPI_Offset)other * N, in, N, MPI_BYTE, &status));
  MOVED(&status, MPI_BYTE, N);
  SAME(in, N, (int64_t)other * N, 1);
  FAILS(MPI_ERR_READ_ONLY, MPI_File_write_at(file, 0, out, 1, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
}

static void wronly_writes(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "wronly", MPI_MODE_CREATE | MPI_MODE_WRONLY);
  fill(out, N, (int64_t)rank * N, 2);
  OK(MPI_File_write_at_all(file, (MPI_Offset)rank * N, out, N, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  file = open_file(MPI_COMM_WORLD, "wronly", MPI_MODE_RDONLY);
  OK(MPI_File_read_at_all(file, (MPI_Offset)rank * N, in, N, MPI_BYTE, MPI_STATUS_IGNORE));
  SAME(in, N, (int64_t)rank * N, 2);
  OK(MPI_File_close(&file));
}

static void wronly_refuses_reads(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "wronly", MPI_MODE_WRONLY);
  int code = MPI_File_read_at(file, 0, in, 1, MPI_BYTE, MPI_STATUS_IGNORE);
  CHECK(code != MPI_SUCCESS, "a read of a write-only file succeeded");
  OK(MPI_File_close(&file));
}

static void append_begins_at_the_end(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "append", MPI_MODE_CREATE | MPI_MODE_WRONLY);
  fill(out, N, 0, 3);
  if (rank == 0) OK(MPI_File_write(file, out, N, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  file = open_file(MPI_COMM_WORLD, "append", MPI_MODE_WRONLY | MPI_MODE_APPEND);
  MPI_Offset position = -1;
  OK(MPI_File_get_position(file, &position));
  CHECK(position == N, "position is %lld", (long long)position);
  OK(MPI_File_get_position_shared(file, &position));
  CHECK(position == N, "shared position is %lld", (long long)position);
  fill(out, 1000, N, 3);
  if (rank == 0) OK(MPI_File_write(file, out, 1000, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  file = open_file(MPI_COMM_WORLD, "append", MPI_MODE_RDONLY);
  MPI_Offset size = 0;
  OK(MPI_File_get_size(file, &size));
  CHECK(size == N + 1000, "size is %lld", (long long)size);
  OK(MPI_File_read_at(file, 500, in, N, MPI_BYTE, MPI_STATUS_IGNORE));
  SAME(in, N, 500, 3);
  OK(MPI_File_close(&file));
}

static void delete_on_close_deletes(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "passing", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
  fill(out, N, 0, 4);
  if (rank == 0) OK(MPI_File_write_at(file, 0, out, N, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_WORLD, path("passing"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
}

static void sequential_uses_the_shared_pointer(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "sequential", MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
  fill(out, 5000, (int64_t)rank * 5000, 5);
  OK(MPI_File_write_ordered(file, out, 5000, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  file = open_file(MPI_COMM_WORLD, "sequential", MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL);
  OK(MPI_File_read_ordered(file, in, 5000, MPI_BYTE, MPI_STATUS_IGNORE));
  SAME(in, 5000, (int64_t)rank * 5000, 5);
  OK(MPI_File_close(&file));
}

static void sequential_refuses_other_pointers(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "sequential", MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL);
  FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_read_at(file, 0, in, 1, MPI_BYTE, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_seek(file, 0, MPI_SEEK_SET));
  OK(MPI_File_close(&file));
}

static void modes_that_contradict(void) {
  MPI_File file = MPI_FILE_NULL;
  FAILS(MPI_ERR_AMODE, MPI_File_open(MPI_COMM_WORLD, path("never"), MPI_MODE_CREATE | MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  FAILS(MPI_ERR_AMODE, MPI_File_open(MPI_COMM_WORLD, path("never"), MPI_MODE_CREATE, MPI_INFO_NULL, &file));
  FAILS(MPI_ERR_AMODE, MPI_File_open(MPI_COMM_WORLD, path("never"), MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
}

static void nothing_to_open(void) {
  MPI_File file = MPI_FILE_NULL;
  FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_WORLD, path("absent"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_WORLD, path("absent/below"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
}

int main(int argc, char **argv) {
  static const Entry entries[] = {{"create_and_get_amode", create_and_get_amode},
                                  {"create_excl_refuses_what_exists", create_excl_refuses_what_exists},
                                  {"rdonly_reads_and_refuses_writes", rdonly_reads_and_refuses_writes},
                                  {"wronly_writes", wronly_writes},
                                  {"wronly_refuses_reads", wronly_refuses_reads},
                                  {"append_begins_at_the_end", append_begins_at_the_end},
                                  {"delete_on_close_deletes", delete_on_close_deletes},
                                  {"sequential_uses_the_shared_pointer", sequential_uses_the_shared_pointer},
                                  {"sequential_refuses_other_pointers", sequential_refuses_other_pointers},
                                  {"modes_that_contradict", modes_that_contradict},
                                  {"nothing_to_open", nothing_to_open},
                                  {NULL, NULL}};
  return run_sections(argc, argv, entries);
}
