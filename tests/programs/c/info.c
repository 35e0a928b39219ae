/* Hints go in and come out; the group, the amode and the info of a handle. */
#include "check.h"

static void unknown_hints_are_harmless(void) {
  MPI_Info info, used = MPI_INFO_NULL;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "nobody_knows_this", "42"));
  OK(MPI_Info_set(info, "access_style", "write_once,sequential"));
  OK(MPI_Info_set(info, "cb_buffer_size", "1048576"));
  MPI_File file = MPI_FILE_NULL;
  OK(MPI_File_open(MPI_COMM_WORLD, path("hints"), MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
  OK(MPI_File_get_info(file, &used));
  CHECK(used != MPI_INFO_NULL, "get_info gave no info");
  if (used != MPI_INFO_NULL) MPI_Info_free(&used);
  char data[5000];
  memset(data, 'h', sizeof data);
  OK(MPI_File_write_at_all(file, rank * 5000, data, 5000, MPI_BYTE, MPI_STATUS_IGNORE));
  MIDDLE();
  OK(MPI_Info_set(info, "access_style", "read_mostly"));
  OK(MPI_File_set_info(file, info));
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", info));
  OK(MPI_File_close(&file));
  OK(MPI_File_open(MPI_COMM_WORLD, path("hints"), MPI_MODE_RDONLY, info, &file));
  OK(MPI_File_close(&file));
  MPI_Info_free(&info);
}

static void striping_unit_is_accepted(void) {
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "striping_unit", "131072"));
  MPI_File file = MPI_FILE_NULL;
  OK(MPI_File_open(MPI_COMM_WORLD, path("striped"), MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
  MPI_Info_free(&info);
  unsigned char data[50000];
  fill(data, sizeof data, (int64_t)rank * 50000, 1);
  OK(MPI_File_write_at_all(file, (MPI_Offset)rank * 50000, data, 50000, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
}

static void the_group_is_the_openers(void) {
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_File file = MPI_FILE_NULL;
  OK(MPI_File_open(half, path(rank % 2 ? "odd" : "even"), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  MPI_Group group, own;
  OK(MPI_File_get_group(file, &group));
  MPI_Comm_group(half, &own);
  int same = MPI_UNEQUAL;
  MPI_Group_compare(group, own, &same);
  CHECK(same == MPI_IDENT, "the file's group is another one");
  MPI_Group_free(&group);
  MPI_Group_free(&own);
  OK(MPI_File_close(&file));
  MPI_Comm_free(&half);
}

int main(int argc, char **argv) {
  static const Entry entries[] = {{"unknown_hints_are_harmless", unknown_hints_are_harmless},
                                  {"striping_unit_is_accepted", striping_unit_is_accepted},
                                  {"the_group_is_the_openers", the_group_is_the_openers},
                                  {NULL, NULL}};
  return run_sections(argc, argv, entries);
}
