/* Writes self-describing records through the shared file pointer: `writer FILE RECORDS LARGEST SEED MODE`. Records are 64-bit words: a
 * magic number, rank, number, words, whether ordered; the rest follows from these. MODE: independent, mixed (ordered, nonblocking, strided buffers, reads in
 * between), ordered, two (each record to FILE.second as well), or kill: after half of the records rank 0 kills all with SIGKILL; what each rank was told is written lies in
 * FILE.acknowledged.RANK then. */
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks;
static MPI_File file;
static uint64_t state;

static uint64_t next_random(void) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return state >> 33;
}

static void check(int code, const char *what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "rank %d: %s: %s\n", rank, what, text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int fill(int64_t *words, int64_t number, int count, int ordered) {
  words[0] = 0x5ca1ab1e0ddba11;
  words[1] = rank;
  words[2] = number;
  words[3] = count;
  words[4] = ordered;
  for (int i = 5; i < count; ++i) words[i] = (rank * 1000003 + number) * 31 + i;
  return count;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (argc != 6) return 2;
  const char *path = argv[1], *mode = argv[5];
  const long records = atol(argv[2]);
  const int largest = atoi(argv[3]);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  state = 77 + (uint64_t)rank * 131 + strtoull(argv[4], 0, 10);
  const int mixed = strcmp(mode, "mixed") == 0, killed = strcmp(mode, "kill") == 0, all_ordered = strcmp(mode, "ordered") == 0;
  int64_t *words = malloc((size_t)(largest + 8) * 16), *other = malloc((size_t)(largest + 8) * 16);
  check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | (mixed ? MPI_MODE_RDWR : MPI_MODE_WRONLY), MPI_INFO_NULL, &file), "open");
  check(MPI_File_set_view(file, 64, MPI_INT64_T, MPI_INT64_T, "native", MPI_INFO_NULL), "set_view");
  MPI_File second = MPI_FILE_NULL;
  if (strcmp(mode, "two") == 0) {
    char name[4096];
    snprintf(name, sizeof name, "%s.second", path);
    check(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &second), "open");
    check(MPI_File_set_view(second, 64, MPI_INT64_T, MPI_INT64_T, "native", MPI_INFO_NULL), "set_view");
  }
  FILE *told = NULL;
  if (killed) {
    char name[4096];
    snprintf(name, sizeof name, "%s.acknowledged.%d", path, rank);
    told = fopen(name, "w");
    MPI_Barrier(MPI_COMM_WORLD); /* nobody is killed before everybody can say what it was told */
  }
  MPI_Request pending = MPI_REQUEST_NULL;
  for (long i = 0; i < records; ++i) {
    const int count = 5 + (int)(next_random() % (uint64_t)largest);
    const int what = mixed ? (int)(next_random() % 20) : 0;
    const int together = all_ordered || ((mixed || killed) && i % 100 == 99);
    fill(words, i, count, together);
    if (together) {
      check(MPI_File_write_ordered(file, words, count, MPI_INT64_T, MPI_STATUS_IGNORE), "write_ordered");
    } else if (what == 1) {
      check(MPI_Wait(&pending, MPI_STATUS_IGNORE), "wait");
      memcpy(other, words, (size_t)count * 8);
      check(MPI_File_iwrite_shared(file, other, count, MPI_INT64_T, &pending), "iwrite_shared");
    } else if (what == 2) { /* every second word of the buffer */
      MPI_Datatype strided;
      for (int k = count; k-- > 0;) words[2 * k] = words[k];
      MPI_Type_vector(count, 1, 2, MPI_INT64_T, &strided);
      MPI_Type_commit(&strided);
      check(MPI_File_write_shared(file, words, 1, strided, MPI_STATUS_IGNORE), "write_shared, strided");
      MPI_Type_free(&strided);
    } else {
      check(MPI_File_write_shared(file, words, count, MPI_INT64_T, MPI_STATUS_IGNORE), "write_shared");
    }
    if (second != MPI_FILE_NULL) check(MPI_File_write_shared(second, words, count, MPI_INT64_T, MPI_STATUS_IGNORE), "write_shared, second");
    if (what == 3) { /* an access that is not the shared pointer's */
      MPI_Offset size;
      check(MPI_File_get_size(file, &size), "get_size");
    }
    if (mixed && i % 250 == 120) check(MPI_File_sync(file), "sync");
    if (killed) {
      fprintf(told, "%ld\n", i);
      fflush(told);
      if (rank == 0 && i == records / 2) kill(0, SIGKILL);
    }
  }
  check(MPI_Wait(&pending, MPI_STATUS_IGNORE), "wait");
  if (second != MPI_FILE_NULL) check(MPI_File_close(&second), "close");
  check(MPI_File_close(&file), "close");
  MPI_Finalize();
  return 0;
}
