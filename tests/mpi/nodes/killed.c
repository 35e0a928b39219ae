// A process that dies while the shared pointer is in a process of its own: `killed server PLAIN PROTECTED` has rank 0 kill the server,
// `killed root FILE` has rank 0 kill itself. Runs in a process namespace of its own, where there is one server.
#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include "../frontend/check.h"

static pid_t server(void) {
  DIR *all = opendir("/proc");
  pid_t found = 0;
  for (struct dirent *entry; (entry = readdir(all)) != NULL;) {
    char path[300], program[4096];
    snprintf(path, sizeof path, "/proc/%s/exe", entry->d_name);
    const ssize_t bytes = readlink(path, program, sizeof program - 1);
    if (bytes <= 0) continue;
    program[bytes] = 0;
    if (strstr(program, "/pointer-server")) found = atoi(entry->d_name);
  }
  closedir(all);
  return found;
}

static void kill_server(void) {
  const pid_t id = server();
  CHECK(id > 1);
  if (id > 1) kill(id, SIGKILL);
  for (int i = 0; i < 1000 && server() == id; ++i) usleep(1000);
}

// Every call on the shared pointer says that it is gone; nothing else is disturbed.
static void without_a_server(MPI_File fh) {
  MPI_Status status;
  MPI_Request request;
  MPI_Offset at;
  int value = 1000 + rank;
  SAME(error_class(MPI_File_write_shared(fh, &value, 1, MPI_INT, &status)), MPI_ERR_IO);
  SAME(error_class(MPI_File_read_shared(fh, &value, 1, MPI_INT, &status)), MPI_ERR_IO);
  SAME(error_class(MPI_File_iwrite_shared(fh, &value, 1, MPI_INT, &request)), MPI_ERR_IO);
  CHECK(request == MPI_REQUEST_NULL);
  SAME(error_class(MPI_File_get_position_shared(fh, &at)), MPI_ERR_IO);
  SAME(error_class(MPI_File_write_ordered(fh, &value, 1, MPI_INT, &status)), MPI_ERR_IO);
  SAME(error_class(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET)), MPI_ERR_IO);
  SAME(error_class(MPI_File_seek_shared(fh, 1, MPI_SEEK_CUR)), MPI_ERR_IO);
  value = 1000 + rank;
  OK(MPI_File_write_at(fh, ranks + rank, &value, 1, MPI_INT, &status));
}

static void killed_server(const char *path) {
  MPI_Status status;
  int value = rank, back[2] = {-1, -1};
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_write_ordered(fh, &value, 1, MPI_INT, &status));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) kill_server();
  MPI_Barrier(MPI_COMM_WORLD);
  without_a_server(fh);
  OK(MPI_File_close(&fh));
  // Opened again, the file has a pointer again.
  fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_RDWR);
  OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_read_ordered(fh, back, 1, MPI_INT, &status));
  SAME(back[0], rank);
  OK(MPI_File_read_ordered(fh, back, 1, MPI_INT, &status));
  SAME(back[0], 1000 + rank);
  if (rank == 0) CHECK(server() > 1);
  OK(MPI_File_close(&fh));
}

// Rank 0, with the server on its node, dies in the middle. Whoever is left writes until it is told; says how many of its records
// were acknowledged, which error came and when.
static void killed_root(const char *path) {
  MPI_Status status;
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  int record[2] = {rank, 0}, code = MPI_SUCCESS;
  for (; record[1] < 50; ++record[1]) OK(MPI_File_write_shared(fh, record, 2, MPI_INT, &status));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    usleep(50000);  // the others are at it
    kill(getpid(), SIGKILL);
  }
  const double start = MPI_Wtime();
  double called = start;
  while (code == MPI_SUCCESS && MPI_Wtime() - start < 20) {
    called = MPI_Wtime();
    code = MPI_File_write_shared(fh, record, 2, MPI_INT, &status);
    if (code == MPI_SUCCESS) ++record[1];
    usleep(1000);
  }
  printf("rank %d: %d records, then %s after %.0f ms\n", rank, record[1], error_class(code) == MPI_ERR_IO ? "MPI_ERR_IO" : "something else",
         (MPI_Wtime() - called) * 1000);
  fflush(stdout);
  _exit(failures != 0 || error_class(code) != MPI_ERR_IO);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  if (argc > 2 && strcmp(argv[1], "root") == 0) killed_root(argv[2]);
  where = "native", killed_server(in(argv[2], "out"));
  where = "protected", killed_server(in(argv[3], "out"));
  return finish();
}
