/* Two ranks write; one after the other finds targets slow, other ones each. Then they sync. late_targets.py makes the targets slow.
 *
 *   PATH MEETING   rank N says MEETING.openN, writes when MEETING.goN is there, and says MEETING.wroteN; with MEETING.go2 both
 *                  sync, and say how it ended */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pattern.h"

enum { bytes_of_rank = 2 << 20 };

static const char *meeting;

static void say(const char *what, int rank) {
  char path[4096];
  snprintf(path, sizeof path, "%s.%s%d", meeting, what, rank);
  FILE *file = fopen(path, "w");
  if (!file || fclose(file)) MPI_Abort(MPI_COMM_WORLD, 4);
}

static void wait_for(const char *what, int rank) {
  char path[4096];
  struct stat there;
  snprintf(path, sizeof path, "%s.%s%d", meeting, what, rank);
  while (stat(path, &there)) usleep(10000);
}

static void write_ours(MPI_File file, int rank, int version) {
  unsigned char *bytes = must_have(bytes_of_rank);
  const long offset = (long)rank * bytes_of_rank;
  pattern_fill(bytes, version, offset, bytes_of_rank);
  MUST(MPI_File_write_at(file, offset, bytes, bytes_of_rank, MPI_BYTE, MPI_STATUS_IGNORE));
  free(bytes);
}

int main(int count, char **arguments) {
  MPI_Init(&count, &arguments);
  int rank, ranks;
  MPI_File file;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  meeting = arguments[2];
  MUST(MPI_File_open(MPI_COMM_WORLD, arguments[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  write_ours(file, rank, 1);
  for (int turn = 0; turn < ranks; turn++) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (turn != rank) continue;
    say("open", rank);
    wait_for("go", rank);
    write_ours(file, rank, 2); /* the same bytes again: what a target has of the first time is old */
    say("wrote", rank);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  wait_for("go", ranks);
  if (rank == 0) say("syncs", 0);
  const int synced = MPI_File_sync(file) == MPI_SUCCESS;
  say(synced ? "synced" : "failed", rank);
  MPI_File_close(&file);
  MPI_Finalize();
  return synced ? 0 : 1;
}
