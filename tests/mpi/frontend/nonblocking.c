// Nonblocking access mixed with messages, in every way to wait; split collectives.
#include "check.h"

enum { PARTS = 12, BYTES = 30000 };
static char data[PARTS][BYTES], back[PARTS][BYTES], letter[64], mail[64];

static void check_back(void) {
  for (int i = 0; i < PARTS; ++i) CHECK(memcmp(data[i], back[i], BYTES) == 0);
}

// File operations and messages to the neighbour in one array, finished by each of MPI's ways.
static void mixed(MPI_File fh, int way) {
  MPI_Request requests[PARTS + 2];
  MPI_Status statuses[PARTS + 2];
  const int n = PARTS + 2, next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  const MPI_Offset mine = (MPI_Offset)rank * PARTS * BYTES;
  for (int i = 0; i < PARTS; ++i) fill(data[i], BYTES, 100u * way + 10u * rank + i);
  memset(back, 0, sizeof back), memset(mail, 0, sizeof mail);
  snprintf(letter, sizeof letter, "way %d from %d", way, rank);
  for (int reading = 0; reading < 2; ++reading) {
    MPI_Irecv(mail, 64, MPI_CHAR, before, way, MPI_COMM_WORLD, &requests[0]);
    for (int i = 0; i < PARTS; ++i) {
      const MPI_Offset at = mine + (MPI_Offset)i * BYTES;
      OK(reading ? MPI_File_iread_at(fh, at, back[i], BYTES, MPI_CHAR, &requests[i + 1])
                 : MPI_File_iwrite_at(fh, at, data[i], BYTES, MPI_CHAR, &requests[i + 1]));
    }
    MPI_Isend(letter, 64, MPI_CHAR, next, way, MPI_COMM_WORLD, &requests[n - 1]);
    int left = n, flag = 0, index, indices[PARTS + 2], some;
    switch (way) {
      case 0: OK(MPI_Waitall(n, requests, statuses)); break;
      case 1:
        for (int i = n - 1; i >= 0; --i) OK(MPI_Wait(&requests[i], &statuses[i]));
        break;
      case 2:
        while (left-- > 0) {
          MPI_Status status;
          OK(MPI_Waitany(n, requests, &index, &status));
          CHECK(index >= 0 && index < n);
          CHECK(requests[index] == MPI_REQUEST_NULL);
          statuses[index] = status;
        }
        OK(MPI_Waitany(n, requests, &index, MPI_STATUS_IGNORE));
        SAME(index, MPI_UNDEFINED);
        break;
      case 3:
        while (left > 0) {
          MPI_Status these[PARTS + 2];
          OK(MPI_Waitsome(n, requests, &some, indices, these));
          for (int i = 0; i < some; ++i) statuses[indices[i]] = these[i];
          left -= some;
        }
        break;
      case 4:
        while (!flag) OK(MPI_Testall(n, requests, &flag, statuses));
        break;
      case 5:
        for (int i = 0; i < n; ++i) {
          for (flag = 0; !flag;) OK(MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE));
          for (flag = 0; !flag;) OK(MPI_Test(&requests[i], &flag, &statuses[i]));
        }
        break;
      case 6:
        while (left > 0) {
          MPI_Status status;
          OK(MPI_Testany(n, requests, &index, &flag, &status));
          if (flag) statuses[index] = status, --left;
        }
        break;
      case 7:
        while (left > 0) {
          MPI_Status these[PARTS + 2];
          OK(MPI_Testsome(n, requests, &some, indices, these));
          for (int i = 0; i < some; ++i) statuses[indices[i]] = these[i];
          left -= some;
        }
        break;
    }
    for (int i = 0; i < n; ++i) CHECK(requests[i] == MPI_REQUEST_NULL);
    for (int i = 0; i < PARTS; ++i) {
      int cancelled = 1;
      SAME(count_of(&statuses[i + 1], MPI_CHAR), BYTES);
      MPI_Test_cancelled(&statuses[i + 1], &cancelled);
      SAME(cancelled, 0);
    }
    CHECK(strncmp(mail, "way", 3) == 0);
  }
  check_back();
  MPI_Barrier(MPI_COMM_WORLD);
}

static void by_pointers(const char *path) {
  MPI_Request requests[PARTS];
  MPI_Status statuses[PARTS], status;
  MPI_Offset at = -1;
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  OK(MPI_File_set_view(fh, (MPI_Offset)rank * PARTS * BYTES, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL));
  for (int i = 0; i < PARTS; ++i) {
    fill(data[i], BYTES, 7000u + 10u * rank + i);
    OK(MPI_File_iwrite(fh, data[i], BYTES, MPI_CHAR, &requests[i]));
  }
  OK(MPI_File_get_position(fh, &at));
  SAME(at, PARTS * BYTES);
  // A blocking call after them sees them.
  OK(MPI_File_read_at(fh, (PARTS - 1) * BYTES, back[0], BYTES, MPI_CHAR, &status));
  CHECK(memcmp(back[0], data[PARTS - 1], BYTES) == 0);
  OK(MPI_Waitall(PARTS, requests, statuses));
  OK(MPI_File_seek(fh, 0, MPI_SEEK_SET));
  for (int i = 0; i < PARTS; ++i) OK(MPI_File_iread(fh, back[i], BYTES, MPI_CHAR, &requests[i]));
  OK(MPI_Waitall(PARTS, requests, MPI_STATUSES_IGNORE));
  check_back();

  // A derived type in memory, a request that nobody waits for, one that is cancelled in vain.
  MPI_Datatype every_second;
  MPI_Type_vector(BYTES / 2, 1, 2, MPI_CHAR, &every_second);
  MPI_Type_commit(&every_second);
  OK(MPI_File_iwrite_at(fh, 0, data[0], 1, every_second, &requests[0]));
  MPI_Type_free(&every_second);
  OK(MPI_Cancel(&requests[0]));
  OK(MPI_Wait(&requests[0], &status));
  SAME(count_of(&status, MPI_CHAR), BYTES / 2);
  OK(MPI_File_iwrite_at(fh, BYTES / 2, "freed", 5, MPI_CHAR, &requests[0]));
  OK(MPI_Request_free(&requests[0]));
  CHECK(requests[0] == MPI_REQUEST_NULL);
  OK(MPI_File_read_at(fh, 0, back[0], BYTES / 2 + 5, MPI_CHAR, &status));
  for (int i = 0; i < BYTES / 2; ++i)
    if (back[0][i] != data[0][2 * i]) {
      CHECK(!"every second byte");
      break;
    }
  CHECK(memcmp(back[0] + BYTES / 2, "freed", 5) == 0);
  OK(MPI_File_close(&fh));
}

#if MPI_VERSION > 3 || (MPI_VERSION == 3 && MPI_SUBVERSION >= 1)
// Ranks come at different times and talk in between.
static void collective(const char *path) {
  MPI_Request request[2];
  MPI_Status status[2];
  int token = 0;
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  fill(data[0], BYTES, 31u + rank), fill(data[1], BYTES, 51u + rank);
  if (rank > 0) MPI_Recv(&token, 1, MPI_INT, rank - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  OK(MPI_File_iwrite_at_all(fh, (MPI_Offset)rank * BYTES, data[0], BYTES, MPI_CHAR, &request[0]));
  OK(MPI_File_seek(fh, (MPI_Offset)(ranks + rank) * BYTES, MPI_SEEK_SET));
  OK(MPI_File_iwrite_all(fh, data[1], BYTES, MPI_CHAR, &request[1]));
  OK(MPI_Waitall(2, request, status));
  if (rank + 1 < ranks) MPI_Send(&token, 1, MPI_INT, rank + 1, 5, MPI_COMM_WORLD);
  OK(MPI_File_sync(fh));
  const int other = (rank + 1) % ranks;
  OK(MPI_File_iread_at_all(fh, (MPI_Offset)other * BYTES, back[0], BYTES, MPI_CHAR, &request[0]));
  OK(MPI_File_seek(fh, (MPI_Offset)(ranks + other) * BYTES, MPI_SEEK_SET));
  OK(MPI_File_iread_all(fh, back[1], BYTES, MPI_CHAR, &request[1]));
  OK(MPI_Waitall(2, request, status));
  SAME(count_of(&status[1], MPI_CHAR), BYTES);
  CHECK(holds(back[0], BYTES, 31u + other));
  CHECK(holds(back[1], BYTES, 51u + other));
  OK(MPI_File_close(&fh));
}
#endif

static void shared(const char *path) {
  MPI_Request requests[PARTS];
  MPI_Offset at = 0;
  int seen[64] = {0};
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  for (int i = 0; i < PARTS; ++i) {
    data[i][0] = (char)rank;
    OK(MPI_File_iwrite_shared(fh, data[i], 1, MPI_CHAR, &requests[i]));
  }
  OK(MPI_Waitall(PARTS, requests, MPI_STATUSES_IGNORE));
  OK(MPI_File_sync(fh));
  OK(MPI_File_get_position_shared(fh, &at));
  SAME(at, PARTS * ranks);
  OK(MPI_File_read_at_all(fh, 0, back[0], PARTS * ranks, MPI_CHAR, MPI_STATUS_IGNORE));
  for (int i = 0; i < PARTS * ranks; ++i) ++seen[(int)back[0][i]];
  for (int i = 0; i < ranks; ++i) SAME(seen[i], PARTS);
  OK(MPI_File_close(&fh));
}

static void split(const char *path) {
  MPI_Status status;
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  fill(data[0], BYTES, 3u + rank);
  OK(MPI_File_write_at_all_begin(fh, (MPI_Offset)rank * BYTES, data[0], BYTES, MPI_CHAR));
  CHECK(MPI_File_write_all_begin(fh, data[0], BYTES, MPI_CHAR) != MPI_SUCCESS);  // one at a time
  CHECK(MPI_File_read_all_end(fh, data[0], &status) != MPI_SUCCESS);             // of another kind
  OK(MPI_File_write_at_all_end(fh, data[0], &status));
  SAME(count_of(&status, MPI_CHAR), BYTES);
  CHECK(MPI_File_write_at_all_end(fh, data[0], &status) != MPI_SUCCESS);
  OK(MPI_File_seek(fh, (MPI_Offset)rank * BYTES, MPI_SEEK_SET));
  OK(MPI_File_read_all_begin(fh, back[0], BYTES, MPI_CHAR));
  OK(MPI_File_read_all_end(fh, back[0], &status));
  CHECK(holds(back[0], BYTES, 3u + rank));
  OK(MPI_File_read_at_all_begin(fh, (MPI_Offset)ranks * BYTES - 10, back[0], BYTES, MPI_CHAR));
  OK(MPI_File_read_at_all_end(fh, back[0], &status));
  SAME(count_of(&status, MPI_CHAR), 10);
  OK(MPI_File_close(&fh));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  where = "protected";
  MPI_File fh = open_file(MPI_COMM_WORLD, in(argv[2], "mixed"), MPI_MODE_CREATE | MPI_MODE_RDWR);
  for (int way = 0; way < 8; ++way) mixed(fh, way);
  OK(MPI_File_close(&fh));
  by_pointers(in(argv[2], "by_pointers"));
#if MPI_VERSION > 3 || (MPI_VERSION == 3 && MPI_SUBVERSION >= 1)
  collective(in(argv[2], "collective"));
#endif
  shared(in(argv[2], "shared"));
  split(in(argv[2], "split"));
  return finish();
}
