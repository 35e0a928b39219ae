/* Several files at once, one file opened twice, communicators that are subsets. */
#include "check.h"

enum { N = 120000, FILES = 6 };
static unsigned char data[N];

static void several_files_at_once(void) {
  MPI_File files[FILES];
  char name[16];
  for (int f = 0; f < FILES; ++f) {
    snprintf(name, sizeof name, "many%d", f);
    files[f] = open_file(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR);
  }
  for (int f = 0; f < FILES; ++f) {
    fill(data, N, (int64_t)rank * N, f);
    OK(MPI_File_write_at_all(files[f], (MPI_Offset)rank * N, data, N, MPI_BYTE, MPI_STATUS_IGNORE));
    if (f == 3) MIDDLE();
  }
  for (int f = FILES - 1; f >= 0; --f) {
    int other = (rank + f) % ranks;
    OK(MPI_File_sync(files[f]));
    OK(MPI_File_read_at_all(files[f], (MPI_Offset)other * N, data, N, MPI_BYTE, MPI_STATUS_IGNORE));
    SAME(data, N, (int64_t)other * N, f);
    OK(MPI_File_close(&files[f]));
  }
}

static void one_file_opened_twice(void) {
  MPI_File writer = open_file(MPI_COMM_WORLD, "twice", MPI_MODE_CREATE | MPI_MODE_WRONLY);
  MPI_File reader = open_file(MPI_COMM_WORLD, "twice", MPI_MODE_RDWR); /* MPI refuses sync on a read-only one */
  for (int round = 0; round < 3; ++round) {
    MPI_Offset at = ((MPI_Offset)round * ranks + rank) * N;
    fill(data, N, at, 20);
    OK(MPI_File_write_at(writer, at, data, N, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(writer));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_sync(reader));
    MPI_Offset from = ((MPI_Offset)round * ranks + (rank + 1) % ranks) * N;
    MPI_Status status;
    OK(MPI_File_read_at(reader, from, data, N, MPI_BYTE, &status));
    MOVED(&status, MPI_BYTE, N);
    SAME(data, N, from, 20);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  OK(MPI_File_close(&reader));
  OK(MPI_File_close(&writer));
}

static void each_rank_its_own_file(void) {
  char name[16];
  snprintf(name, sizeof name, "own%d", rank);
  MPI_File file = open_file(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR);
  for (int i = 0; i < 5; ++i) {
    fill(data, N, (int64_t)i * N, 30 + rank);
    OK(MPI_File_write(file, data, N, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  OK(MPI_File_read_at(file, 12345, data, N, MPI_BYTE, MPI_STATUS_IGNORE));
  SAME(data, N, 12345, 30 + rank);
  OK(MPI_File_close(&file));
}

static void every_rank_alone_in_one_file(void) {
  if (rank == 0) {
    MPI_File made = open_file(MPI_COMM_SELF, "alone", MPI_MODE_CREATE | MPI_MODE_WRONLY);
    OK(MPI_File_close(&made));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File file = open_file(MPI_COMM_SELF, "alone", MPI_MODE_RDWR);
  fill(data, N, (int64_t)rank * N, 40);
  OK(MPI_File_write_at(file, (MPI_Offset)rank * N, data, N, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  MPI_Barrier(MPI_COMM_WORLD);
  file = open_file(MPI_COMM_WORLD, "alone", MPI_MODE_RDONLY);
  for (int r = 0; r < ranks; ++r) {
    MPI_Status status;
    OK(MPI_File_read_at(file, (MPI_Offset)r * N, data, N, MPI_BYTE, &status));
    MOVED(&status, MPI_BYTE, N);
    SAME(data, N, (int64_t)r * N, 40);
  }
  OK(MPI_File_close(&file));
}

static void halves_of_the_ranks(void) {
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  int place, size;
  MPI_Comm_rank(half, &place);
  MPI_Comm_size(half, &size);
  MPI_File file = open_file(half, rank % 2 ? "odd" : "even", MPI_MODE_CREATE | MPI_MODE_RDWR);
  fill(data, N, (int64_t)place * N, 50 + rank % 2);
  OK(MPI_File_write_at_all(file, (MPI_Offset)place * N, data, N, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_sync(file));
  int other = (place + 1) % size;
  OK(MPI_File_read_at_all(file, (MPI_Offset)other * N, data, N, MPI_BYTE, MPI_STATUS_IGNORE));
  SAME(data, N, (int64_t)other * N, 50 + rank % 2);
  OK(MPI_File_close(&file));
  MPI_Comm_free(&half);
}

int main(int argc, char **argv) {
  static const Entry entries[] = {{"several_files_at_once", several_files_at_once},   {"one_file_opened_twice", one_file_opened_twice},
                                  {"each_rank_its_own_file", each_rank_its_own_file}, {"every_rank_alone_in_one_file", every_rank_alone_in_one_file},
                                  {"halves_of_the_ranks", halves_of_the_ranks},       {NULL, NULL}};
  return run_sections(argc, argv, entries);
}
