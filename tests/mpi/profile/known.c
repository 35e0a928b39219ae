/* A known number of calls of each kind, for the report to count: known FILE [wait]
 * Each rank writes its own 64 KiB block in pieces of 4 KiB, then all together, through the shared pointer, with a strided view, and
 * nonblocking; reads some of it back. With `wait` it stays in the middle until it is killed. With `plain` each rank writes a file of its
 * own by plain calls, FILE.RANK, and nothing else. With `pointers` the file is opened three times: its shared pointer is served by
 * `window`, by `individual`, and not used. With `talk` there is no file: the ranks send, meet, and wait for the last one. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 4096, PIECES = 16, BLOCK = PIECE * PIECES };

static void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  fprintf(stderr, "%s failed\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* 100 * (rank + 1) writes of 512 bytes, and one read. */
static void plain(const char* path, int rank) {
  char name[4096], data[512] = {0};
  snprintf(name, sizeof name, "%s.%d", path, rank);
  const int fd = open(name, O_CREAT | O_RDWR | O_TRUNC, 0644);
  for (int i = 0; i < 100 * (rank + 1); ++i)
    if (write(fd, data, sizeof data) != sizeof data) MPI_Abort(MPI_COMM_WORLD, 1);
  if (pread(fd, data, 100, 50) != 100 || fsync(fd) != 0 || close(fd) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
}

static void pointers(const char* path) {
  static const char* const algorithms[] = {"window", "individual", "single"};
  for (int i = 0; i < 3; ++i) {
    MPI_Info info;
    MPI_File file;
    char line[16] = "fifteen bytes.\n";
    MPI_Info_create(&info);
    MPI_Info_set(info, "holdfast_shared_pointer", algorithms[i]);
    check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file), "open");
    if (i < 2) check(MPI_File_write_shared(file, line, 15, MPI_BYTE, MPI_STATUS_IGNORE), "write_shared");
    check(MPI_File_close(&file), "close");
    MPI_Info_free(&info);
  }
}

/* 5 messages, 2 collective calls of which the first waits for rank 1, 1 wait, 2 calls about communicators, 4 about a window. */
static void talk(int rank, int ranks) {
  int one = 1, in;
  MPI_Comm twin;
  MPI_Win window;
  MPI_Request request;
  for (int i = 0; i < 5; ++i)
    MPI_Sendrecv(&one, 1, MPI_INT, (rank + 1) % ranks, i, &in, 1, MPI_INT, (rank + ranks - 1) % ranks, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) usleep(300000);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_dup(MPI_COMM_WORLD, &twin);
  MPI_Win_create(&in, sizeof in, sizeof in, MPI_INFO_NULL, twin, &window);
  MPI_Win_fence(0, window);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
  MPI_Comm_free(&twin);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc > 2 && !strcmp(argv[2], "plain")) {
    plain(argv[1], rank);
    MPI_Finalize();
    return 0;
  }
  if (argc > 2 && !strcmp(argv[2], "pointers")) {
    pointers(argv[1]);
    MPI_Finalize();
    return 0;
  }
  if (argc > 2 && !strcmp(argv[2], "talk")) {
    talk(rank, ranks);
    MPI_Finalize();
    return 0;
  }
  char* data = malloc(BLOCK);
  memset(data, 'a' + rank, BLOCK);
  MPI_File file;
  MPI_Status status;
  check(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), "open");

  /* 16 independent writes at offsets, consecutive */
  for (int i = 0; i < PIECES; ++i) check(MPI_File_write_at(file, (MPI_Offset)rank * BLOCK + i * PIECE, data, PIECE, MPI_BYTE, &status), "write_at");
  check(MPI_File_sync(file), "sync");
  if (argc > 2) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) puts("here"), fflush(stdout);
    for (;;) sleep(1);
  }
  /* one collective write of everything, behind the blocks */
  check(MPI_File_write_at_all(file, (MPI_Offset)(ranks + rank) * BLOCK, data, BLOCK, MPI_BYTE, &status), "write_at_all");
  /* two through the shared pointer, which begins behind all that */
  MPI_Barrier(MPI_COMM_WORLD);
  check(MPI_File_seek_shared(file, (MPI_Offset)2 * ranks * BLOCK, MPI_SEEK_SET), "seek_shared");
  for (int i = 0; i < 2; ++i) check(MPI_File_write_shared(file, data, 100, MPI_BYTE, &status), "write_shared");
  MPI_Barrier(MPI_COMM_WORLD);
  /* three at the individual pointer under a strided view: 1 KiB of every (ranks) KiB */
  MPI_Datatype stripe, tile;
  MPI_Type_contiguous(1024, MPI_BYTE, &stripe);
  MPI_Type_create_resized(stripe, 0, (MPI_Aint)ranks * 1024, &tile);
  MPI_Type_commit(&tile);
  check(MPI_File_set_view(file, (MPI_Offset)4 * ranks * BLOCK + rank * 1024, MPI_BYTE, tile, "native", MPI_INFO_NULL), "set_view");
  for (int i = 0; i < 3; ++i) check(MPI_File_write(file, data, 1024, MPI_BYTE, MPI_STATUS_IGNORE), "write");
  check(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), "set_view");
  /* one nonblocking */
  MPI_Request request;
  check(MPI_File_iwrite_at(file, (MPI_Offset)rank * BLOCK, data, PIECE, MPI_BYTE, &request), "iwrite_at");
  MPI_Wait(&request, &status);
  check(MPI_File_sync(file), "sync");
  MPI_Barrier(MPI_COMM_WORLD);
  /* four reads of 8 KiB, ignoring the status, and one that begins 10 bytes before the end */
  for (int i = 0; i < 4; ++i)
    check(MPI_File_read_at(file, (MPI_Offset)rank * BLOCK + 2 * i * PIECE, data, 2 * PIECE, MPI_BYTE, MPI_STATUS_IGNORE), "read_at");
  MPI_Offset size;
  check(MPI_File_get_size(file, &size), "get_size");
  check(MPI_File_read_at(file, size - 10, data, 1000, MPI_BYTE, &status), "read_at");
  check(MPI_File_close(&file), "close");
  MPI_Type_free(&tile);
  MPI_Type_free(&stripe);
  free(data);
  MPI_Finalize();
  return 0;
}
