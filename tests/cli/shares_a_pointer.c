/* Ranks race on the pointer that they share: shares_a_pointer FILE RECORDS. Each writes records by MPI_File_write_shared, at times of its own; then all of
 * them write one in order, and read the whole file through the pointer. Who read how many is written behind it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 16 };

int main(int count, char **words) {
  MPI_Init(&count, &words);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int records = atoi(words[2]);
  MPI_File file;
  if (MPI_File_open(MPI_COMM_WORLD, words[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS) return 1;
  char record[BYTES + 1];
  unsigned wait = (unsigned)getpid();
  for (int i = 0; i < records; ++i) {
    wait = wait * 1103515245u + 12345u;
    usleep(wait / 65536 % 4000);
    snprintf(record, sizeof record, "w %04d %08d\n", rank, i);
    if (MPI_File_write_shared(file, record, BYTES, MPI_CHAR, MPI_STATUS_IGNORE) != MPI_SUCCESS) return 1;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  snprintf(record, sizeof record, "o %04d %08d\n", rank, records);
  if (MPI_File_write_ordered(file, record, BYTES, MPI_CHAR, MPI_STATUS_IGNORE) != MPI_SUCCESS) return 1;
  MPI_Offset end = 0;
  MPI_File_sync(file);
  MPI_File_get_position_shared(file, &end);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
  int mine = 0, got = BYTES, all = 0;
  for (; got == BYTES; mine += got == BYTES) {
    MPI_Status status;
    wait = wait * 1103515245u + 12345u;
    usleep(wait / 65536 % 1000);
    MPI_File_read_shared(file, record, BYTES, MPI_CHAR, &status);
    MPI_Get_count(&status, MPI_CHAR, &got);
  }
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  snprintf(record, sizeof record, "r %04d %08d\n", rank, all);
  MPI_File_write_at(file, end + (MPI_Offset)rank * BYTES, record, BYTES, MPI_CHAR, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  return MPI_Finalize();
}
