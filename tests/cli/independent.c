/* Each rank writes records of its own into one file, without a word to the others, reads them back, and adds to a log by appending streams.
 * independent FILE RECORDS PAUSE_MS ATOMIC. See test_replicas_ranks.py. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORD = 5000 };

int main(int count, char **words) {
  MPI_Init(&count, &words);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int records = atoi(words[2]), pause_ms = atoi(words[3]), atomic = atoi(words[4]);
  static char record[RECORD], back[RECORD];
  MPI_File file;
  MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
  MPI_File_open(MPI_COMM_WORLD, words[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_set_atomicity(file, atomic);
  for (int i = 0; i < records; ++i) {
    MPI_Offset at = ((MPI_Offset)i * ranks + rank) * RECORD;
    memset(record, 'a' + (i + rank) % 26, RECORD);
    snprintf(record, RECORD, "record %d of rank %d", i, rank);
    MPI_File_write_at(file, at, record, RECORD, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Status status;
    int got = 0;
    MPI_File_read_at(file, at, back, RECORD, MPI_BYTE, &status);
    MPI_Get_count(&status, MPI_BYTE, &got);
    if (got != RECORD || memcmp(record, back, RECORD) != 0) printf("rank %d: record %d comes back as %d other bytes\n", rank, i, got);
    if (atomic && i % 5 == 0) { /* what the neighbour has written is seen without a sync */
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_File_read_at(file, ((MPI_Offset)i * ranks + (rank + 1) % ranks) * RECORD, back, RECORD, MPI_BYTE, MPI_STATUS_IGNORE);
      snprintf(record, RECORD, "record %d of rank %d", i, (rank + 1) % ranks);
      if (strcmp(record, back) != 0) printf("rank %d: does not see record %d of its neighbour\n", rank, i);
    }
    if (i % 10 == 9) {
      MPI_Offset size = 0;
      MPI_File_sync(file);
      MPI_File_get_size(file, &size);
      if (size != (MPI_Offset)(i + 1) * ranks * RECORD) printf("rank %d: %lld bytes after %d records\n", rank, (long long)size, i + 1);
      MPI_Barrier(MPI_COMM_WORLD); /* before anybody adds to it */
    }
    usleep((useconds_t)pause_ms * 1000);
  }
  MPI_File_close(&file);
  printf("rank %d is done\n", rank);
  MPI_Finalize();
  return 0;
}
