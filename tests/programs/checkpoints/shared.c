/* One checkpoint file of all ranks, by MPI-IO.
     shared run STEPS MS    from the newest there is: a file for each step, with a pause after it
     shared torn STEP       writes it, dies while it writes it anew, and finds it when it is started again
     shared mixed           steps that count down, the last one by one rank alone
     shared joined STEP [WAITS]  writes it by opens of its own beside the one of all, as PnetCDF does in its independent mode; the next step in a wrong order
     shared opens STEP      one file by opens of one rank, of some and of all, by MPI and by others; the next step as well
     shared slots COUNT HOW two slots in turn, each truncated by a rank when all have it open: by ftruncate, or by MPI; or MPI writes it anew
     shared STEP            what an MPI job of this many ranks may do with such files, in that step and the next ones */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { rows = 300, numbers = 100 }; /* of each rank; rows of all ranks in turn */

static const char* name(int step) {
  static char text[64];
  snprintf(text, sizeof text, "ck/ck.%d", step);
  return text;
}

static int value(int step, int of_rank, int i) { return step * 1000000 + of_rank * 100000 + i; }

static int class_of(int code) {
  int class = MPI_SUCCESS;
  MPI_Error_class(code, &class);
  return class;
}

static void set_own_view(MPI_File file) {
  MPI_Datatype row;
  MPI_Type_vector(rows, numbers, ranks * numbers, MPI_INT, &row);
  MPI_Type_commit(&row);
  DONE(MPI_File_set_view(file, (MPI_Offset)rank * numbers * (MPI_Offset)sizeof(int), MPI_INT, row, "native", MPI_INFO_NULL));
  MPI_Type_free(&row);
}

static void write_step(int step, int amode) {
  static int own[rows * numbers];
  MPI_File file;
  for (int i = 0; i < rows * numbers; ++i) own[i] = value(step, rank, i);
  DONE(MPI_File_open(MPI_COMM_WORLD, name(step), amode, MPI_INFO_NULL, &file));
  set_own_view(file);
  DONE(MPI_File_write_all(file, own, rows * numbers / 2, MPI_INT, MPI_STATUS_IGNORE));
  DONE(MPI_File_write_at(file, rows * numbers / 2, own + rows * numbers / 2, rows * numbers / 2, MPI_INT, MPI_STATUS_IGNORE));
  DONE(MPI_File_close(&file));
}

/* All of it, by each rank: whoever wrote it with so many ranks. -1: there is none. */
static int read_step(int step, int as_step) {
  MPI_File file;
  if (MPI_File_open(MPI_COMM_WORLD, name(step), MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS) return -1;
  MPI_Offset size = 0;
  DONE(MPI_File_get_size(file, &size));
  CHECK(size == (MPI_Offset)ranks * rows * numbers * (MPI_Offset)sizeof(int));
  int* all = malloc((size_t)size);
  MPI_Status status;
  int count = 0, bad = 0;
  DONE(MPI_File_read_all(file, all, (int)(size / (MPI_Offset)sizeof(int)), MPI_INT, &status));
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(count == ranks * rows * numbers);
  for (int i = 0; i < count; ++i) {
    const int row = i / numbers, of_rank = row % ranks;
    bad += all[i] != value(as_step, of_rank, row / ranks * numbers + i % numbers);
  }
  CHECK(bad == 0);
  free(all);
  DONE(MPI_File_close(&file));
  return 0;
}

static void run(int steps, int ms) {
  int begun = steps;
  while (begun > 0 && read_step(begun, begun) < 0) --begun;
  int failed = wrong;
  MPI_Allreduce(&wrong, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (failed) return;
  if (rank == 0) printf("begins after step %d\n", begun), fflush(stdout);
  for (int step = begun + 1; step <= steps; ++step) {
    write_step(step, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    MPI_Barrier(MPI_COMM_WORLD);
    usleep((useconds_t)ms * 1000);
  }
  if (rank == 0) printf("ends after step %d\n", steps), fflush(stdout);
}

static void torn(int step) {
  MPI_File file;
  if (read_step(step, step) == 0) {
    if (rank == 0) printf("found\n");
    return;
  }
  write_step(step, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  MPI_Barrier(MPI_COMM_WORLD);
  DONE(MPI_File_open(MPI_COMM_WORLD, name(step), MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
  set_own_view(file);
  int nothing[numbers] = {0};
  DONE(MPI_File_write_all(file, nothing, numbers, MPI_INT, MPI_STATUS_IGNORE));
  DONE(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == ranks - 1) kill(getpid(), SIGKILL);
  sleep(30);
  DONE(MPI_File_close(&file));
}

static int listed(int step) {
  DIR* directory = opendir("ck");
  int found = 0;
  for (struct dirent* entry; directory && (entry = readdir(directory));) found |= !strcmp(entry->d_name, name(step) + strlen("ck/"));
  if (directory) closedir(directory);
  return found;
}

/* Steps that count down, the last one by a rank alone. */
static void mixed(void) {
  MPI_File file;
  write_step(30, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  write_step(20, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  if (rank == 0) {
    DONE(MPI_File_open(MPI_COMM_SELF, name(10), MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    DONE(MPI_File_write(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    DONE(MPI_File_close(&file));
  }
}

/* A part by all, and one by an open of each rank's own, or of two ranks'. `create`: as the first one. */
static void write_joined(int step, int amode, int create) {
  static int own[rows * numbers];
  const MPI_Offset mine = (MPI_Offset)(rank + 1) * (MPI_Offset)sizeof own;
  MPI_File all, alone;
  MPI_Comm some = MPI_COMM_SELF;
  for (int i = 0; i < rows * numbers; ++i) own[i] = value(step, rank, i);
  DONE(MPI_File_open(MPI_COMM_WORLD, name(step), amode, MPI_INFO_NULL, &all));
  if (rank == 0) DONE(MPI_File_write_at(all, 0, own, rows * numbers, MPI_INT, MPI_STATUS_IGNORE));
  if (step % 2) MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &some);
  CHECK(class_of(MPI_File_open(some, name(step), MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY, MPI_INFO_NULL, &alone)) == MPI_ERR_FILE_EXISTS);
  DONE(MPI_File_open(some, name(step), create ? amode : MPI_MODE_RDWR, MPI_INFO_NULL, &alone));
  DONE(MPI_File_write_at(alone, mine, own, rows * numbers, MPI_INT, MPI_STATUS_IGNORE));
  DONE(MPI_File_close(&alone));
  DONE(MPI_File_close(&all));
  if (step % 2) MPI_Comm_free(&some);
}

static int read_joined(int step) {
  static int got[rows * numbers];
  MPI_File file;
  int bad = 0;
  DONE(MPI_File_open(MPI_COMM_WORLD, name(step), MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  for (int part = 0; part <= ranks; ++part) {
    memset(got, 0, sizeof got);
    DONE(MPI_File_read_at_all(file, (MPI_Offset)part * (MPI_Offset)sizeof got, got, rows * numbers, MPI_INT, MPI_STATUS_IGNORE));
    for (int i = 0; i < rows * numbers; ++i) bad += got[i] != value(step, part ? part - 1 : 0, i);
  }
  DONE(MPI_File_close(&file));
  return bad;
}

/* `waits`: a version waits for all opens. */
static void joined(int step, int waits) {
  MPI_File all, alone;
  for (int i = 0; i < 4; ++i) {
    write_joined(step + i, MPI_MODE_CREATE | MPI_MODE_RDWR, i < 2);
    CHECK(read_joined(step + i) == 0);
  }
  write_joined(step, MPI_MODE_RDWR, 0); /* an update, by the open that has joined as well */
  CHECK(read_joined(step) == 0);
  if (waits) return;
  /* Closed too late: it is not protected, and the first close says so. */
  DONE(MPI_File_open(MPI_COMM_WORLD, name(step + 4), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &all));
  DONE(MPI_File_open(MPI_COMM_SELF, name(step + 4), MPI_MODE_RDWR, MPI_INFO_NULL, &alone));
  DONE(MPI_File_write_at(alone, rank, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(MPI_File_close(&all) != MPI_SUCCESS);
  (void)MPI_File_close(&alone);
}

/* Opened to read and write by all, and only read: it is no newer for that. */
static void only_looked_at(int step) {
  static const int amodes[] = {MPI_MODE_RDWR, MPI_MODE_CREATE | MPI_MODE_RDWR};
  for (int i = 0; i < 2; ++i) {
    MPI_File file;
    int got = 0;
    DONE(MPI_File_open(MPI_COMM_WORLD, name(step), amodes[i], MPI_INFO_NULL, &file));
    set_own_view(file);
    DONE(MPI_File_read_at_all(file, 7, &got, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(got == value(step, rank, 7));
    DONE(MPI_File_write_all(file, &got, 0, MPI_INT, MPI_STATUS_IGNORE)); /* nothing */
    DONE(MPI_File_close(&file));
  }
  CHECK(read_step(step, step) == 0);
}

enum { header = 100, piece = 1000 };

static char letter(int step, int kind, int of_rank) { return (char)('a' + (step + 5 * kind + of_rank) % 26); }

static void write_piece(MPI_Comm ranks_of_it, int step, int amode, int kind) {
  char own[piece];
  MPI_File file;
  memset(own, letter(step, kind, rank), sizeof own);
  DONE(MPI_File_open(ranks_of_it, name(step), amode, MPI_INFO_NULL, &file));
  DONE(MPI_File_write_at_all(file, header + ((MPI_Offset)kind * ranks + rank) * piece, own, piece, MPI_BYTE, MPI_STATUS_IGNORE));
  DONE(MPI_File_close(&file));
}

static int bad_pieces(const char* got, int step) {
  int bad = 0;
  for (int i = 0; i < header; ++i) bad += got[i] != 'H';
  for (int i = 0; i < 4 * ranks * piece; ++i) bad += got[header + i] != letter(step, i / piece / ranks, i / piece % ranks);
  return bad;
}

/* A header by stdio; parts by all, by each rank alone, by two halves, and by each rank's own descriptor. Nobody waits for a checkpoint to be one. */
static void opens(int step) {
  const size_t bytes = header + 4 * (size_t)ranks * piece;
  char* got = calloc(1, bytes);
  char own[piece];
  MPI_Comm half;
  MPI_File file;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  if (rank == 0) {
    FILE* out = fopen(name(step), "w");
    CHECK(out && fprintf(out, "%s", "HHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHH") == header / 2);
    CHECK(out && fprintf(out, "%s", "HHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHH") == header / 2 && fclose(out) == 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  write_piece(MPI_COMM_WORLD, step, step % 2 ? MPI_MODE_RDWR : MPI_MODE_CREATE | MPI_MODE_WRONLY, 0);
  write_piece(MPI_COMM_SELF, step, MPI_MODE_CREATE | MPI_MODE_WRONLY, 1);
  write_piece(half, step, step % 2 ? MPI_MODE_CREATE | MPI_MODE_RDWR : MPI_MODE_WRONLY, 2);
  const int fd = open(name(step), O_WRONLY);
  memset(own, letter(step, 3, rank), sizeof own);
  CHECK(pwrite(fd, own, piece, header + (3 * ranks + rank) * piece) == piece && close(fd) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  FILE* in = fopen(name(step), "r");
  CHECK(in && fread(got, 1, bytes, in) == bytes && fclose(in) == 0);
  CHECK(bad_pieces(got, step) == 0);
  memset(got, 0, bytes);
  DONE(MPI_File_open(MPI_COMM_WORLD, name(step), MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  DONE(MPI_File_read_at_all(file, 0, got, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(bad_pieces(got, step) == 0);
  DONE(MPI_File_close(&file));
  MPI_Barrier(MPI_COMM_WORLD);
  free(got);
  MPI_Comm_free(&half);
}

static void write_slot(int step, const char* how, int number) {
  char own[piece];
  MPI_File file;
  memset(own, letter(number, 0, 0), sizeof own);
  if (!strcmp(how, "ftruncate")) {
    const int fd = open(name(step), O_RDWR | O_CREAT, 0644);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(rank != 0 || ftruncate(fd, 0) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(pwrite(fd, own, piece, rank * piece) == piece && close(fd) == 0);
    return;
  }
  DONE(MPI_File_open(MPI_COMM_WORLD, name(step), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  if (!strcmp(how, "size")) DONE(MPI_File_set_size(file, 0));
  DONE(MPI_File_write_at_all(file, rank * piece, own, piece, MPI_BYTE, MPI_STATUS_IGNORE));
  DONE(MPI_File_close(&file));
}

static void slots(int count, const char* how) {
  for (int i = 1; i <= count; ++i) {
    write_slot(1 + i % 2, how, i);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  /* What is only looked at is no newer for that. */
  MPI_File file;
  char got = 0;
  DONE(MPI_File_open(MPI_COMM_WORLD, name(1 + (count - 1) % 2), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  DONE(MPI_File_read_at(file, rank * piece, &got, 1, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(got == letter(count - 1, 0, 0));
  DONE(MPI_File_close(&file));
}

static void rules(int step) {
  MPI_File file;
  CHECK(class_of(MPI_File_open(MPI_COMM_WORLD, name(step), MPI_MODE_WRONLY, MPI_INFO_NULL, &file)) == MPI_ERR_NO_SUCH_FILE);
  CHECK(class_of(MPI_File_open(MPI_COMM_WORLD, name(step), MPI_MODE_RDONLY, MPI_INFO_NULL, &file)) == MPI_ERR_NO_SUCH_FILE);
  write_step(step, MPI_MODE_CREATE | MPI_MODE_RDWR);
  CHECK(read_step(step, step) == 0);
  CHECK(access(name(step), R_OK) == 0);
  CHECK(class_of(MPI_File_open(MPI_COMM_WORLD, name(step), MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY, MPI_INFO_NULL, &file)) ==
        MPI_ERR_FILE_EXISTS);
  /* An update begins with what there was. */
  write_step(step + 1, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  DONE(MPI_File_open(MPI_COMM_WORLD, name(step + 1), MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  set_own_view(file);
  const int changed = value(step + 1, rank, 7);
  int got = 0;
  DONE(MPI_File_read_at(file, 7, &got, 1, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(got == changed);
  DONE(MPI_File_write_at_all(file, 7, &changed, 1, MPI_INT, MPI_STATUS_IGNORE));
  DONE(MPI_File_sync(file));
  DONE(MPI_File_close(&file));
  CHECK(read_step(step + 1, step + 1) == 0);
  /* Written anew, shorter first: each open sees the last version. */
  DONE(MPI_File_open(MPI_COMM_WORLD, name(step + 1), MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  DONE(MPI_File_set_size(file, 8));
  DONE(MPI_File_close(&file));
  DONE(MPI_File_open(MPI_COMM_WORLD, name(step + 1), MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  MPI_Offset size = 0;
  DONE(MPI_File_get_size(file, &size));
  CHECK(size == 8);
  DONE(MPI_File_close(&file));
  write_step(step + 1, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  CHECK(read_step(step + 1, step + 1) == 0);
  /* The shared pointer, and what is removed at its close. */
  DONE(MPI_File_open(MPI_COMM_WORLD, name(step + 2), MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
  DONE(MPI_File_write_ordered(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
  DONE(MPI_File_write_shared(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
  DONE(MPI_File_close(&file));
  CHECK(access(name(step + 2), F_OK) != 0);
  /* What one rank removes is gone for all; written anew it is there again. */
  write_step(step + 4, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  if (rank == 1) DONE(MPI_File_delete(name(step + 4), MPI_INFO_NULL));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(access(name(step + 4), F_OK) != 0);
  CHECK(read_step(step + 4, step + 4) < 0);
  CHECK(!listed(step + 4));
  MPI_Barrier(MPI_COMM_WORLD);
  write_step(step + 4, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  CHECK(read_step(step + 4, step + 4) == 0);
  CHECK(listed(step + 4) && access(name(step + 4), F_OK) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) DONE(MPI_File_delete(name(step + 4), MPI_INFO_NULL));
  /* One rank alone: as any file. */
  if (rank == 0) {
    DONE(MPI_File_open(MPI_COMM_SELF, name(step + 3), MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    DONE(MPI_File_write(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    DONE(MPI_File_close(&file));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  only_looked_at(step);
}

int main(int count, char** words) {
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (count > 3 && !strcmp(words[1], "run")) run(atoi(words[2]), atoi(words[3]));
  else if (count > 2 && !strcmp(words[1], "torn")) torn(atoi(words[2]));
  else if (count > 1 && !strcmp(words[1], "mixed")) mixed();
  else if (count > 2 && !strcmp(words[1], "opens")) opens(atoi(words[2])), opens(atoi(words[2]) + 1);
  else if (count > 3 && !strcmp(words[1], "slots")) slots(atoi(words[2]), words[3]);
  else if (count > 2 && !strcmp(words[1], "joined")) joined(atoi(words[2]), count > 3);
  else if (count > 1) rules(atoi(words[1]));
  int all = wrong;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return all;
}
