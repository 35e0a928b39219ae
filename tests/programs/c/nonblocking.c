/* Nonblocking I/O, with requests of messages and of files mixed in one array. */
#include "check.h"

enum { N = 60000, BLOCKS = 8 };
static unsigned char out[BLOCKS][N], in[BLOCKS][N];

static MPI_Offset at(int block) { return ((MPI_Offset)block * ranks + rank) * N; }

static void explicit_waitall(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "explicit", MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Request requests[BLOCKS];
  MPI_Status statuses[BLOCKS];
  for (int b = 0; b < BLOCKS; ++b) {
    fill(out[b], N, at(b), 1);
    OK(MPI_File_iwrite_at(file, at(b), out[b], N, MPI_BYTE, &requests[b]));
  }
  OK(MPI_Waitall(BLOCKS, requests, statuses));
  for (int b = 0; b < BLOCKS; ++b) {
    MOVED(&statuses[b], MPI_BYTE, N);
    CHECK(requests[b] == MPI_REQUEST_NULL, "request %d is still there", b);
  }
  MIDDLE();
  for (int b = 0; b < BLOCKS; ++b) OK(MPI_File_iread_at(file, at(b), in[b], N, MPI_BYTE, &requests[b]));
  OK(MPI_Waitall(BLOCKS, requests, MPI_STATUSES_IGNORE));
  for (int b = 0; b < BLOCKS; ++b) SAME(in[b], N, at(b), 1);
  OK(MPI_File_close(&file));
}

static void individual_pointer_moves_at_once(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "individual", MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Request requests[BLOCKS];
  MPI_Offset start = (MPI_Offset)rank * BLOCKS * N, position = -1;
  OK(MPI_File_seek(file, start, MPI_SEEK_SET));
  for (int b = 0; b < BLOCKS; ++b) {
    fill(out[b], N, start + (MPI_Offset)b * N, 2);
    OK(MPI_File_iwrite(file, out[b], N, MPI_BYTE, &requests[b]));
  }
  OK(MPI_File_get_position(file, &position));
  CHECK(position == start + (MPI_Offset)BLOCKS * N, "position is %lld", (long long)position);
  int done = 0;
  while (done < BLOCKS) {
    int index;
    MPI_Status status;
    OK(MPI_Waitany(BLOCKS, requests, &index, &status));
    if (index == MPI_UNDEFINED) break;
    MOVED(&status, MPI_BYTE, N);
    ++done;
  }
  CHECK(done == BLOCKS, "%d of %d requests ended", done, BLOCKS);
  OK(MPI_File_seek(file, start, MPI_SEEK_SET));
  for (int b = 0; b < BLOCKS; ++b) OK(MPI_File_iread(file, in[b], N, MPI_BYTE, &requests[b]));
  OK(MPI_Waitall(BLOCKS, requests, MPI_STATUSES_IGNORE));
  for (int b = 0; b < BLOCKS; ++b) SAME(in[b], N, start + (MPI_Offset)b * N, 2);
  OK(MPI_File_close(&file));
}

static void testall_until_done(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "testall", MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Request requests[BLOCKS];
  int flag = 0;
  for (int b = 0; b < BLOCKS; ++b) {
    fill(out[b], N, at(b), 7);
    OK(MPI_File_iwrite_at(file, at(b), out[b], N, MPI_BYTE, &requests[b]));
  }
  while (!flag) OK(MPI_Testall(BLOCKS, requests, &flag, MPI_STATUSES_IGNORE));
  for (int b = 0; b < BLOCKS; ++b) OK(MPI_File_iread_at(file, at(b), in[b], N, MPI_BYTE, &requests[b]));
  flag = 0;
  while (!flag) OK(MPI_Testall(BLOCKS, requests, &flag, MPI_STATUSES_IGNORE));
  for (int b = 0; b < BLOCKS; ++b) SAME(in[b], N, at(b), 7);
  OK(MPI_File_close(&file));
}

static void mixed_with_messages(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "mixed", MPI_MODE_CREATE | MPI_MODE_RDWR);
  int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks, token = rank, got = -1;
  MPI_Request requests[5];
  fill(out[0], N, at(0), 3);
  fill(out[1], N, at(1), 3);
  OK(MPI_Irecv(&got, 1, MPI_INT, left, 5, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_File_iwrite_at(file, at(0), out[0], N, MPI_BYTE, &requests[1]));
  OK(MPI_Isend(&token, 1, MPI_INT, right, 5, MPI_COMM_WORLD, &requests[2]));
  requests[3] = MPI_REQUEST_NULL;
  OK(MPI_File_iwrite_at(file, at(1), out[1], N, MPI_BYTE, &requests[4]));
  int left_over = 4;
  while (left_over > 0) {
    int count = 0, indices[5];
    MPI_Status statuses[5];
    OK(MPI_Testsome(5, requests, &count, indices, statuses));
    if (count == MPI_UNDEFINED) break;
    for (int i = 0; i < count; ++i) {
      if (indices[i] == 1 || indices[i] == 4) MOVED(&statuses[i], MPI_BYTE, N);
      if (indices[i] == 0) CHECK(statuses[i].MPI_SOURCE == left && statuses[i].MPI_TAG == 5, "the message's status is wrong");
    }
    left_over -= count;
  }
  CHECK(left_over == 0, "%d requests never ended", left_over);
  CHECK(got == left, "the message said %d", got);
  MPI_Request read;
  MPI_Status status;
  int flag = 0;
  OK(MPI_File_iread_at(file, at(1), in[1], N, MPI_BYTE, &read));
  while (!flag) OK(MPI_Test(&read, &flag, &status));
  MOVED(&status, MPI_BYTE, N);
  SAME(in[1], N, at(1), 3);
  OK(MPI_File_close(&file));
}

static void collective(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "collective", MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Request requests[2];
  MPI_Status status;
  for (int b = 0; b < 4; b += 2) {
    fill(out[b], N, at(b), 4);
    fill(out[b + 1], N, at(b + 1), 4);
    OK(MPI_File_iwrite_at_all(file, at(b), out[b], N, MPI_BYTE, &requests[0]));
    OK(MPI_File_iwrite_at_all(file, at(b + 1), out[b + 1], N, MPI_BYTE, &requests[1]));
    OK(MPI_Wait(&requests[0], &status));
    MOVED(&status, MPI_BYTE, N);
    OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
  }
  OK(MPI_File_iread_at_all(file, at(1), in[1], N, MPI_BYTE, &requests[0]));
  OK(MPI_File_iread_at_all(file, at(2), in[2], N, MPI_BYTE, &requests[1]));
  OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  SAME(in[1], N, at(1), 4);
  SAME(in[2], N, at(2), 4);
  OK(MPI_File_sync(file)); /* what follows overwrites parts that other ranks wrote */
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_sync(file));
  OK(MPI_File_set_view(file, (MPI_Offset)rank * 2 * N, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  fill(out[0], 2 * N, (int64_t)rank * 2 * N, 5);
  OK(MPI_File_iwrite_all(file, out[0], 2 * N, MPI_BYTE, &requests[0]));
  OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
  OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
  OK(MPI_File_iread_all(file, in[0], 2 * N, MPI_BYTE, &requests[0]));
  OK(MPI_Wait(&requests[0], &status));
  MOVED(&status, MPI_BYTE, 2 * N);
  SAME(in[0], 2 * N, (int64_t)rank * 2 * N, 5);
  OK(MPI_File_close(&file));
}

static void shared_pointer(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "shared", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
  MPI_Request request;
  MPI_Status status;
  int64_t record[500], sum = 0, all = 0;
  for (int i = 0; i < 500; ++i) record[i] = rank + 1;
  OK(MPI_File_iwrite_shared(file, record, 500, MPI_INT64_T, &request));
  OK(MPI_Wait(&request, &status));
  MOVED(&status, MPI_INT64_T, 500);
  OK(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_sync(file));
  OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  OK(MPI_File_iread_shared(file, record, 500, MPI_INT64_T, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (int i = 0; i < 500; ++i) sum += record[i];
  MPI_Allreduce(&sum, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  CHECK(all == 500 * ranks * (ranks + 1) / 2, "the records sum up to %lld", (long long)all);
  OK(MPI_File_close(&file));
}

static void strided_nonblocking_write_is_seen_after_wait(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "strided", MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Datatype strided;
  OK(MPI_Type_vector(100, 50, 50 * ranks, MPI_BYTE, &strided));
  OK(MPI_Type_commit(&strided));
  OK(MPI_File_set_view(file, (MPI_Offset)rank * 50, MPI_BYTE, strided, "native", MPI_INFO_NULL));
  fill(out[0], 5000, 0, 10 + rank);
  MPI_Request request;
  OK(MPI_File_iwrite_at(file, 0, out[0], 5000, MPI_BYTE, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_File_iread_at(file, 100, in[0], 4900, MPI_BYTE, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  SAME(in[0], 4900, 100, 10 + rank);
  OK(MPI_File_close(&file));
  MPI_Type_free(&strided);
}

int main(int argc, char **argv) {
  static const Entry entries[] = {{"explicit_waitall", explicit_waitall},
                                  {"individual_pointer_moves_at_once", individual_pointer_moves_at_once},
                                  {"testall_until_done", testall_until_done},
                                  {"mixed_with_messages", mixed_with_messages},
                                  {"collective", collective},
                                  {"shared_pointer", shared_pointer},
                                  {"strided_nonblocking_write_is_seen_after_wait", strided_nonblocking_write_is_seen_after_wait},
                                  {NULL, NULL}};
  return run_sections(argc, argv, entries);
}
