// Error classes, error handlers of a file and of MPI_FILE_NULL, access modes, files that several opens share.
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

static int called, last_class;
static MPI_File last_file;
static void handler(MPI_File *fh, int *code, ...) {
  int flag = 0;
  MPI_Group group;
  ++called, last_class = error_class(*code), last_file = *fh;
  MPI_Initialized(&flag);  // a handler may call MPI
  if (*fh != MPI_FILE_NULL && MPI_File_get_group(*fh, &group) == MPI_SUCCESS) MPI_Group_free(&group);
}

static int open_class(const char *path, int amode) {
  MPI_File fh = MPI_FILE_NULL;
  const int class = error_class(MPI_File_open(MPI_COMM_WORLD, (char *)path, amode, MPI_INFO_NULL, &fh));
  if (class == MPI_SUCCESS) OK(MPI_File_close(&fh));
#ifdef MPI_ABI_VERSION  // MPICH 5.0 leaves its own null handle, not the standard ABI's, after some of its errors
  else CHECK(fh == MPI_FILE_NULL || !fh);
#else
  else CHECK(fh == MPI_FILE_NULL);
#endif
  return class;
}

static void modes(const char *directory) {
  char *path = in(directory, "modes");
  SAME(open_class(path, MPI_MODE_RDONLY), MPI_ERR_NO_SUCH_FILE);
  SAME(open_class(path, MPI_MODE_RDWR), MPI_ERR_NO_SUCH_FILE);
  SAME(open_class(in(directory, "no/such/directory"), MPI_MODE_CREATE | MPI_MODE_RDWR), MPI_ERR_NO_SUCH_FILE);
  SAME(open_class(path, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY), MPI_SUCCESS);
  SAME(open_class(path, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR), MPI_ERR_FILE_EXISTS);
  SAME(open_class(path, MPI_MODE_RDWR | MPI_MODE_WRONLY), MPI_ERR_AMODE);
  SAME(open_class(path, MPI_MODE_RDONLY | MPI_MODE_CREATE), MPI_ERR_AMODE);
  SAME(open_class(path, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL), MPI_ERR_AMODE);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void wrong_calls(const char *path) {
  MPI_Status status;
  MPI_Offset size;
  char text[8] = "";
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  SAME(error_class(MPI_File_read_at(fh, 0, text, 1, MPI_CHAR, &status)), MPI_ERR_ACCESS);
  SAME(error_class(MPI_File_read_at_all(fh, 0, text, 1, MPI_CHAR, &status)), MPI_ERR_ACCESS);
  OK(MPI_File_write_at_all(fh, 4 * rank, "abcd", 4, MPI_CHAR, &status));
  SAME(error_class(MPI_File_write_at(fh, -1, text, 1, MPI_CHAR, &status)), MPI_ERR_ARG);
  SAME(error_class(MPI_File_write_at(fh, 0, text, -1, MPI_CHAR, &status)), MPI_ERR_COUNT);
  SAME(error_class(MPI_File_write_at(fh, 0, text, 1, MPI_DATATYPE_NULL, &status)), MPI_ERR_TYPE);
  SAME(error_class(MPI_File_set_size(fh, -5)), MPI_ERR_ARG);
  SAME(error_class(MPI_File_set_view(fh, -5, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL)), MPI_ERR_ARG);
  SAME(error_class(MPI_File_set_view(fh, 0, MPI_CHAR, MPI_CHAR, "internet", MPI_INFO_NULL)), MPI_ERR_UNSUPPORTED_DATAREP);
  SAME(error_class(MPI_File_set_view(fh, 0, MPI_INT, MPI_CHAR, "native", MPI_INFO_NULL)), MPI_ERR_ARG);
  int displacements[] = {3, 0}, lengths[] = {1, 1};
  MPI_Datatype backwards;
  MPI_Type_indexed(2, lengths, displacements, MPI_INT, &backwards);
  MPI_Type_commit(&backwards);
  CHECK(MPI_File_set_view(fh, 0, MPI_INT, backwards, "native", MPI_INFO_NULL) != MPI_SUCCESS);
  MPI_Type_free(&backwards);
  if (ranks > 1) SAME(error_class(MPI_File_set_size(fh, 100 + rank)), MPI_ERR_NOT_SAME);
  OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  SAME(error_class(MPI_File_write_at(fh, 0, text, 3, MPI_CHAR, &status)), MPI_ERR_IO);  // not whole etypes
  // One rank alone is wrong: the others do not hang.
  const int class = error_class(MPI_File_write_at_all(fh, rank, text, rank == 0 ? -1 : 1, MPI_INT, &status));
  SAME(class, rank == 0 ? MPI_ERR_COUNT : MPI_SUCCESS);
  OK(MPI_File_close(&fh));

  fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_RDONLY);
  SAME(error_class(MPI_File_write_at(fh, 0, text, 1, MPI_CHAR, &status)), MPI_ERR_READ_ONLY);
  SAME(error_class(MPI_File_set_size(fh, 0)), MPI_ERR_READ_ONLY);
  OK(MPI_File_sync(fh));
  OK(MPI_File_get_size(fh, &size));
  CHECK(size >= 4 * ranks);
  OK(MPI_File_close(&fh));
}

static void handlers(const char *directory) {
  MPI_Errhandler ours, found;
  MPI_Status status;
  char text[8];
  MPI_File_create_errhandler(handler, &ours);
  MPI_File fh = open_file(MPI_COMM_WORLD, in(directory, "handlers"), MPI_MODE_CREATE | MPI_MODE_WRONLY);
  OK(MPI_File_get_errhandler(fh, &found));
  CHECK(found == MPI_ERRORS_RETURN);
  MPI_Errhandler_free(&found);
  OK(MPI_File_set_errhandler(fh, ours));
  called = 0;
  SAME(error_class(MPI_File_read_at(fh, 0, text, 1, MPI_CHAR, &status)), MPI_ERR_ACCESS);
  SAME(called, 1);
  SAME(last_class, MPI_ERR_ACCESS);
  CHECK(last_file == fh);
  // What goes wrong in a request is reported when it is waited for.
  MPI_File_call_errhandler(fh, MPI_ERR_IO);
  SAME(called, 2);
#ifdef MPI_ABI_VERSION  // the standard ABI's mpi.h has nothing of Fortran
  CHECK(MPI_File_fromint(MPI_File_toint(fh)) == fh);
#else
  const MPI_Fint fortran = MPI_File_c2f(fh);
  CHECK(MPI_File_f2c(fortran) == fh);
#endif
  OK(MPI_File_close(&fh));

  // New files inherit MPI_FILE_NULL's handler, and failed opens call it.
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, ours));
  called = 0;
  SAME(open_class(in(directory, "handlers"), MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR), MPI_ERR_FILE_EXISTS);
  SAME(called, 1);
  SAME(last_class, MPI_ERR_FILE_EXISTS);
  fh = open_file(MPI_COMM_WORLD, in(directory, "handlers"), MPI_MODE_WRONLY);
  SAME(error_class(MPI_File_read_at(fh, 0, text, 1, MPI_CHAR, &status)), MPI_ERR_ACCESS);
  SAME(called, 2);
  OK(MPI_File_close(&fh));
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
  MPI_Errhandler_free(&ours);
}

// The same file opened twice at once; a communicator of some ranks.
static void twice(const char *path) {
  MPI_Status status;
  char text[8] = "";
  MPI_File one = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_File two = open_file(MPI_COMM_WORLD, path, MPI_MODE_RDWR);
  if (rank == 0) OK(MPI_File_write_at(one, 0, "one", 3, MPI_CHAR, &status));
  OK(MPI_File_sync(one));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_sync(two));
  OK(MPI_File_read_at(two, 0, text, 8, MPI_CHAR, &status));
  SAME(count_of(&status, MPI_CHAR), 3);
  CHECK(strncmp(text, "one", 3) == 0);
  if (rank == 0) OK(MPI_File_write_at(two, 3, "two", 3, MPI_CHAR, &status));
  OK(MPI_File_close(&two));
  OK(MPI_File_sync(one));
  OK(MPI_File_read_at(one, 0, text, 8, MPI_CHAR, &status));
  SAME(count_of(&status, MPI_CHAR), 6);
  CHECK(strncmp(text, "onetwo", 6) == 0);
  OK(MPI_File_close(&one));

  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  char name[4096];
  snprintf(name, sizeof name, "%s.%d", path, rank % 2);
  int me;
  MPI_Comm_rank(half, &me);
  MPI_File fh = open_file(half, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
  OK(MPI_File_write_ordered(fh, &me, 1, MPI_INT, &status));
  int first = -1;
  OK(MPI_File_read_at_all(fh, 0, &first, 4, MPI_BYTE, &status));
  SAME(first, 0);
  MPI_Comm_free(&half);  // the file has its own
  OK(MPI_File_close(&fh));
  SAME(error_class(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &fh)), MPI_ERR_NO_SUCH_FILE);
}

// Every rank opens the file by itself, all at once: one makes it, all find it.
static void everybody_creates(const char *path) {
  enum { EACH = 50000 };
  MPI_Status status;
  char *mine = malloc(EACH), *all = malloc((size_t)EACH * ranks);
  fill(mine, EACH, 60u + rank);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File fh = open_file(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  OK(MPI_File_write_at(fh, (MPI_Offset)rank * EACH, mine, EACH, MPI_BYTE, &status));
  OK(MPI_File_close(&fh));
  MPI_Barrier(MPI_COMM_WORLD);
  fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_RDONLY);
  OK(MPI_File_read_at_all(fh, 0, all, EACH * ranks, MPI_BYTE, &status));
  SAME(count_of(&status, MPI_BYTE), EACH * ranks);
  for (int r = 0; r < ranks; ++r) CHECK(holds(all + (size_t)r * EACH, EACH, 60u + r));
  OK(MPI_File_close(&fh));
  free(mine), free(all);
}

static void atomic(const char *path) {
  int flag = -1;
  MPI_Status status;
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  OK(MPI_File_get_atomicity(fh, &flag));
  SAME(flag, 0);
  OK(MPI_File_set_atomicity(fh, 1));
  OK(MPI_File_get_atomicity(fh, &flag));
  SAME(flag != 0, 1);
  for (int round = 0; round < 3; ++round) {
    int value = 100 * round + 7, back = -1;
    if (rank == 0) OK(MPI_File_write_at(fh, 0, &value, 1, MPI_INT, &status));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_read_at(fh, 0, &back, 1, MPI_INT, &status));
    SAME(back, value);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  OK(MPI_File_set_atomicity(fh, 0));
  OK(MPI_File_close(&fh));
}

// No number is left for a file of the program's: that is its own affair. No target is lost by it, and what is open goes on.
static void without_descriptors(const char *directory) {
  enum { MORE = 128, EACH = 50000 };
  char name[32], *mine = malloc(EACH), *back = malloc(EACH);
  int taken[MORE], count = 0;
  struct rlimit before, few;
  MPI_Status status;
  MPI_File fh = MPI_FILE_NULL;
  snprintf(name, sizeof name, "kept%d", rank);
  MPI_File kept = open_file(MPI_COMM_SELF, in(directory, name), MPI_MODE_CREATE | MPI_MODE_RDWR);
  snprintf(name, sizeof name, "late%d", rank);
  char *late = in(directory, name);
  fill(mine, EACH, 90u + rank);
  getrlimit(RLIMIT_NOFILE, &before);
  few = before, few.rlim_cur = (rlim_t)dup(0) + MORE / 2;
  close((int)few.rlim_cur - MORE / 2);
  setrlimit(RLIMIT_NOFILE, &few);
  while (count < MORE && (taken[count] = dup(0)) >= 0) ++count;
  CHECK(count < MORE && errno == EMFILE);
  CHECK(MPI_File_open(MPI_COMM_SELF, late, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh) != MPI_SUCCESS);
  OK(MPI_File_write_at(kept, 0, mine, EACH, MPI_BYTE, &status));
  OK(MPI_File_sync(kept));
  while (count > 0) close(taken[--count]);
  setrlimit(RLIMIT_NOFILE, &before);
  OK(MPI_File_close(&kept));
  fh = open_file(MPI_COMM_SELF, late, MPI_MODE_CREATE | MPI_MODE_RDWR);
  OK(MPI_File_write_at(fh, 0, mine, EACH, MPI_BYTE, &status));
  OK(MPI_File_read_at(fh, 0, back, EACH, MPI_BYTE, &status));
  CHECK(holds(back, EACH, 90u + rank));
  OK(MPI_File_close(&fh));
  free(mine), free(back);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  where = "protected";
  modes(argv[2]);
  wrong_calls(in(argv[2], "wrong_calls"));
  handlers(argv[2]);
  twice(in(argv[2], "twice"));
  everybody_creates(in(argv[2], "everybody"));
  atomic(in(argv[2], "atomic"));
  without_descriptors(argv[2]);
  return finish();
}
