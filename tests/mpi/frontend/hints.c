// Hints in and out; hints that differ between ranks or make no sense.
#include "check.h"

static const char *hint(MPI_File fh, const char *key) {
  static char value[MPI_MAX_INFO_VAL + 1];
  MPI_Info info;
  int found = 0;
  OK(MPI_File_get_info(fh, &info));
  MPI_Info_get(info, (char *)key, MPI_MAX_INFO_VAL, value, &found);
  MPI_Info_free(&info);
  return found ? value : "";
}

static int open_with(const char *path, const char *key, const char *value, MPI_File *fh) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, (char *)key, (char *)value);
  const int class = error_class(MPI_File_open(MPI_COMM_WORLD, (char *)path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, fh));
  MPI_Info_free(&info);
  return class;
}

/* What the MPI says of a file that it opens itself. */
static const char *native_hint(const char *directory, const char *given, const char *value, const char *key) {
  MPI_Info info;
  MPI_File fh;
  MPI_Info_create(&info);
  MPI_Info_set(info, "holdfast_protect", "none");
  if (*given) MPI_Info_set(info, (char *)given, (char *)value);
  OK(MPI_File_open(MPI_COMM_WORLD, (char *)in(directory, "unprotected2"), MPI_MODE_CREATE | MPI_MODE_RDWR, info, &fh));
  const char *told = hint(fh, key);
  OK(MPI_File_close(&fh));
  MPI_Info_free(&info);
  return told;
}

// How many aggregators a collective call has: what the user asked for outside the program where the program does not say.
static void aggregators(const char *protected) {
  const char *asked = getenv("HOLDFAST_CB_NODES"), *stripe = getenv("HOLDFAST_STRIPING_UNIT");
  char most[16];
  snprintf(most, sizeof most, "%d", ranks);
  MPI_File fh;
  OK(MPI_File_open(MPI_COMM_WORLD, (char *)in(protected, "aggregated"), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh));
  CHECK(strcmp(hint(fh, "cb_nodes"), asked ? asked : most) == 0);
  OK(MPI_File_close(&fh));
  SAME(open_with(in(protected, "aggregated"), "cb_nodes", "1000", &fh), MPI_SUCCESS);
  CHECK(strcmp(hint(fh, "cb_nodes"), most) == 0);
  OK(MPI_File_close(&fh));
  if (!asked) return;
  CHECK(strcmp(native_hint(protected, "", "", "cb_nodes"), asked) == 0);
  CHECK(strcmp(native_hint(protected, "cb_nodes", "1", "cb_nodes"), "1") == 0);
  // Open MPI 5 tells of no stripes where the file system has none, not even of the program's own.
  if (!*native_hint(protected, "striping_unit", "262144", "striping_unit")) return;
  CHECK(strcmp(native_hint(protected, "striping_unit", "262144", "striping_unit"), "262144") == 0);
  CHECK(strcmp(native_hint(protected, "", "", "striping_unit"), stripe) == 0);
}

// Hints about the layout that programs set for the machine they were written on: followed as far as they can be, and never an error.
static void for_another_machine(const char *directory) {
  static const char *const hints[][2] = {{"striping_unit", "1000"}, {"striping_unit", "65535"}, {"striping_unit", "a lot"},
                                         {"striping_unit", "-1"},   {"striping_factor", "abc"}, {"striping_factor", "1"},
                                         {"striping_factor", "50"}, {"striping_factor", "-5"},  {"start_iodevice", "-2"},
                                         {"start_iodevice", "10"},  {"start_iodevice", "x"},    {"cb_nodes", "many"}};
  for (size_t i = 0; i < sizeof hints / sizeof *hints; ++i) {
    const char *path = in(directory, "elsewhere");
    MPI_File fh;
    MPI_Info info;
    int data = 7, back = 0;
    where = hints[i][1];
    SAME(open_with(path, hints[i][0], hints[i][1], &fh), MPI_SUCCESS);
    MPI_Info_create(&info);
    MPI_Info_set(info, (char *)hints[i][0], (char *)hints[i][1]);
    OK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", info));
    OK(MPI_File_set_info(fh, info));
    OK(MPI_File_write_at(fh, rank * 4, &data, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&fh));
    OK(MPI_File_open(MPI_COMM_WORLD, (char *)path, MPI_MODE_RDONLY, info, &fh));
    OK(MPI_File_read_at(fh, rank * 4, &back, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(back == data);
    if (!strcmp(hints[i][1], "1000")) CHECK(strcmp(hint(fh, "striping_unit"), "4096") == 0);
    if (!strcmp(hints[i][1], "50")) CHECK(atoi(hint(fh, "striping_factor")) < 50);
    CHECK(strlen(hint(fh, "holdfast_protect")) > 0);
    OK(MPI_File_close(&fh));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) OK(MPI_File_delete((char *)path, info));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Info_free(&info);
  }
  where = "protected";
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  where = "protected";
  MPI_File fh;
  SAME(open_with(in(argv[2], "unit"), "striping_unit", "65536", &fh), MPI_SUCCESS);
  CHECK(strcmp(hint(fh, "striping_unit"), "65536") == 0);
  CHECK(atoi(hint(fh, "striping_factor")) > 0);
  CHECK(strlen(hint(fh, "holdfast_protect")) > 0);
  OK(MPI_File_close(&fh));
  // Fixed for the file's life.
  SAME(open_with(in(argv[2], "unit"), "striping_unit", "131072", &fh), MPI_SUCCESS);
  CHECK(strcmp(hint(fh, "striping_unit"), "65536") == 0);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "holdfast_deadline", "3");
  MPI_Info_set(info, "somebody_elses_hint", "7");
  OK(MPI_File_set_info(fh, info));
  MPI_Info_free(&info);
  OK(MPI_File_close(&fh));

  SAME(open_with(in(argv[2], "two"), "replication_factor", "2", &fh), MPI_SUCCESS);
  CHECK(strcmp(hint(fh, "replication_factor"), "2") == 0);
  CHECK(strcmp(hint(fh, "holdfast_protect"), "mirror:2") == 0);
  OK(MPI_File_close(&fh));
  SAME(open_with(in(argv[2], "unprotected"), "holdfast_protect", "none", &fh), MPI_SUCCESS);
  CHECK(strstr("none", hint(fh, "holdfast_protect")) != NULL);  // native: an echo, or nothing
  OK(MPI_File_close(&fh));

  CHECK(open_with(in(argv[2], "bad"), "holdfast_protect", "rs:4", &fh) != MPI_SUCCESS);
  for_another_machine(argv[2]);
  if (ranks > 1) SAME(open_with(in(argv[2], "bad"), "striping_unit", rank ? "65536" : "131072", &fh), MPI_ERR_NOT_SAME);
  SAME(error_class(MPI_File_open(MPI_COMM_WORLD, in(argv[2], "bad"), MPI_MODE_RDONLY, MPI_INFO_NULL, &fh)), MPI_ERR_NO_SUCH_FILE);
  aggregators(argv[2]);
  return finish();
}
