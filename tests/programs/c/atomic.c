/* Atomic mode: overlapping writes do not mix, and are seen at once. */
#include "check.h"

enum { N = 100000, ROUNDS = 5 };
static unsigned char data[N];

static void atomicity_is_asked_and_told(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "atomic", MPI_MODE_CREATE | MPI_MODE_RDWR);
  int flag = 7;
  OK(MPI_File_get_atomicity(file, &flag));
  CHECK(flag == 0, "atomicity is %d at open", flag);
  OK(MPI_File_set_atomicity(file, 1));
  OK(MPI_File_get_atomicity(file, &flag));
  CHECK(flag == 1, "atomicity is %d", flag);
  OK(MPI_File_set_atomicity(file, 0));
  OK(MPI_File_close(&file));
}

static void overlapping_writes_do_not_mix(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "overlap", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
  OK(MPI_File_set_atomicity(file, 1));
  for (int round = 0; round < ROUNDS; ++round) {
    memset(data, 1 + rank + 10 * round, N);
    OK(MPI_File_write_at(file, 12345, data, N, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_read_at(file, 12345, data, N, MPI_BYTE, MPI_STATUS_IGNORE));
    int mixed = 0;
    for (int i = 1; i < N; ++i) mixed |= data[i] != data[0];
    CHECK(!mixed, "round %d: the bytes of several ranks are mixed", round);
    CHECK(data[0] >= 1 + 10 * round && data[0] <= ranks + 10 * round, "round %d: byte %d was written by nobody", round, data[0]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (round == 1) MIDDLE();
  }
  OK(MPI_File_close(&file));
}

static void strided_overlapping_writes_do_not_mix(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "strided", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
  MPI_Datatype strided;
  OK(MPI_Type_vector(100, 500, 1000, MPI_BYTE, &strided));
  OK(MPI_Type_commit(&strided));
  OK(MPI_File_set_view(file, 0, MPI_BYTE, strided, "native", MPI_INFO_NULL));
  OK(MPI_File_set_atomicity(file, 1));
  for (int round = 0; round < ROUNDS; ++round) {
    memset(data, 1 + rank + 10 * round, 50000);
    OK(MPI_File_write_at(file, 0, data, 50000, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_read_at(file, 0, data, 50000, MPI_BYTE, MPI_STATUS_IGNORE));
    int mixed = 0;
    for (int i = 1; i < 50000; ++i) mixed |= data[i] != data[0];
    CHECK(!mixed, "round %d: the bytes of several ranks are mixed", round);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  OK(MPI_File_close(&file));
  MPI_Type_free(&strided);
}

/* A token goes round; whoever has it sees what the one before has written, with no sync. */
static void a_write_is_seen_by_the_next_reader(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "seen", MPI_MODE_CREATE | MPI_MODE_RDWR);
  OK(MPI_File_set_atomicity(file, 1));
  for (int turn = 0; turn < 4 * ranks; ++turn) {
    if (turn % ranks == rank) {
      int token = -1;
      if (turn > 0) {
        OK(MPI_File_read_at(file, (MPI_Offset)(turn - 1) * 4, &token, 1, MPI_INT, MPI_STATUS_IGNORE));
        CHECK(token == turn - 1, "turn %d read %d", turn, token);
      }
      OK(MPI_File_write_at(file, (MPI_Offset)turn * 4, &turn, 1, MPI_INT, MPI_STATUS_IGNORE));
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  OK(MPI_File_close(&file));
}

int main(int argc, char **argv) {
  static const Entry entries[] = {{"atomicity_is_asked_and_told", atomicity_is_asked_and_told},
                                  {"overlapping_writes_do_not_mix", overlapping_writes_do_not_mix},
                                  {"strided_overlapping_writes_do_not_mix", strided_overlapping_writes_do_not_mix},
                                  {"a_write_is_seen_by_the_next_reader", a_write_is_seen_by_the_next_reader},
                                  {NULL, NULL}};
  return run_sections(argc, argv, entries);
}
