/* Two openers have one file open and write bytes of the same rows, but never the same bytes. All of them are in the file at the end.
 *
 *   PATH ranks MODE     two communicators of one job. MODE is in_turn or at_once, and blind or looked: each has read the file before.
 *   PATH create         makes the file for two jobs
 *   PATH job GROUP MEETING   one of two jobs; they wait for each other by files named MEETING.GROUP
 *   PATH check */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pattern.h"

/* Chunk c belongs to group c % 2, and in the group to rank (c / 2) % ranks. */
enum { chunk = 1000, chunks = 240, size = chunk * chunks, rounds = 6 };

static int in_group, group_ranks, group;
static MPI_File file;

/* Natively ROMIO would read the gaps between our chunks and write them again, the other opener's bytes as they were before. */
static MPI_Info no_gaps_rewritten(void) {
  MPI_Info hints;
  MUST(MPI_Info_create(&hints));
  MUST(MPI_Info_set(hints, "romio_cb_write", "disable"));
  MUST(MPI_Info_set(hints, "romio_ds_write", "disable"));
  return hints;
}

static void open_file(MPI_Comm ranks, const char *path) {
  MPI_Comm_rank(ranks, &in_group);
  MPI_Comm_size(ranks, &group_ranks);
  MPI_Info hints = no_gaps_rewritten();
  MUST(MPI_File_open(ranks, path, MPI_MODE_RDWR, hints, &file));
  MPI_Info_free(&hints);
}

static void create(const char *path) {
  MUST(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  MUST(MPI_File_set_size(file, size));
  MUST(MPI_File_close(&file));
}

static void look(void) {
  unsigned char few[16];
  MUST(MPI_File_read_at(file, 0, few, sizeof few, MPI_BYTE, MPI_STATUS_IGNORE));
}

/* All of this group's chunks by collective calls through a view, in `calls` calls with a sync after each. */
static void write_ours(int calls) {
  const long first = (group + 2l * in_group) * chunk, stride = 2l * group_ranks * chunk;
  const int mine = chunks / (2 * group_ranks), at_a_time = mine / calls;
  MPI_Datatype view;
  MUST(MPI_Type_vector(mine, chunk, (int)stride, MPI_BYTE, &view));
  MUST(MPI_Type_commit(&view));
  MUST(MPI_File_set_view(file, first, MPI_BYTE, view, "native", MPI_INFO_NULL));
  unsigned char *bytes = must_have((long)mine * chunk);
  for (int i = 0; i < mine; i++) pattern_fill(bytes + (long)i * chunk, 7, first + i * stride, chunk);
  for (int done = 0; done < mine; done += at_a_time) {
    MUST(MPI_File_write_at_all(file, (MPI_Offset)done * chunk, bytes + (long)done * chunk, at_a_time * chunk, MPI_BYTE, MPI_STATUS_IGNORE));
    MUST(MPI_File_sync(file));
  }
  MUST(MPI_Type_free(&view));
  free(bytes);
}

static void of_one_job(const char *path, const char *mode) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  group = rank % 2;
  if (rank == 0) create(path);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, group, rank, &half);
  open_file(half, path);
  if (strstr(mode, "looked")) look();
  MPI_Barrier(MPI_COMM_WORLD);
  for (int turn = 0; turn < 2; turn++) {
    if (strstr(mode, "at_once")) {
      if (turn == 0) write_ours(rounds);
    } else if (turn == group) {
      write_ours(1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MUST(MPI_File_close(&file));
  MPI_Barrier(MPI_COMM_WORLD);
}

static void meet(const char *meeting) {
  char name[4096];
  struct stat there;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    snprintf(name, sizeof name, "%s.%d", meeting, group);
    fclose(fopen(name, "w"));
    snprintf(name, sizeof name, "%s.%d", meeting, 1 - group);
    while (stat(name, &there) != 0) usleep(1000);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static int check(const char *path) {
  int rank, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  unsigned char *expected = must_have(size);
  pattern_fill(expected, 7, 0, size);
  if (rank == 0) wrong = pattern_file_differs(path, expected, size) != 0;
  MPI_Bcast(&wrong, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return wrong;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  const char *path = argv[1], *what = argv[2];
  int wrong = 0;
  if (strcmp(what, "create") == 0) {
    create(path);
  } else if (strcmp(what, "job") == 0) {
    group = atoi(argv[3]);
    open_file(MPI_COMM_WORLD, path);
    look();
    meet(argv[4]);
    write_ours(rounds);
    MUST(MPI_File_close(&file));
  } else {
    if (strcmp(what, "ranks") == 0) of_one_job(path, argv[3]);
    wrong = check(path);
  }
  MPI_Finalize();
  return wrong;
}
