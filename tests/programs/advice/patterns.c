// What programs do to their files, one pattern after the other, by plain calls and by MPI-IO.
//   patterns PATTERN DIRECTORY
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks;
static char path[4096];

static const char* in(const char* directory, const char* form, int number) {
  char name[256];
  snprintf(name, sizeof name, form, number);
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return path;
}
static int open_or_die(const char* name, int flags) {
  const int fd = open(name, flags, 0666);
  if (fd < 0) perror(name), MPI_Abort(MPI_COMM_WORLD, 1);
  return fd;
}
static void write_or_die(int fd, const void* from, size_t bytes, off_t at) {
  if (pwrite(fd, from, bytes, at) != (ssize_t)bytes) perror("pwrite"), MPI_Abort(MPI_COMM_WORLD, 1);
}

// Each process a file of its own, in pieces of 512 bytes.
static void small_writes(const char* directory) {
  char piece[512];
  memset(piece, 'a' + rank, sizeof piece);
  const int fd = open_or_die(in(directory, "small.%04d", rank), O_CREAT | O_TRUNC | O_WRONLY);
  for (int i = 0; i < 500; ++i)
    if (write(fd, piece, sizeof piece) != sizeof piece) exit(1);
  close(fd);
}

static void small_reads(const char* directory) {
  char piece[512];
  const int fd = open_or_die(in(directory, "small.%04d", rank), O_RDONLY);
  while (read(fd, piece, sizeof piece) > 0) {
  }
  close(fd);
}

// The same through streams whose program has no buffer.
static void small_streams(const char* directory) {
  char piece[512];
  memset(piece, 'a' + rank, sizeof piece);
  FILE* file = fopen(in(directory, "stream.%04d", rank), "w");
  setvbuf(file, NULL, _IONBF, 0);
  for (int i = 0; i < 500; ++i) fwrite(piece, 1, sizeof piece, file);
  fclose(file);
}

enum { part = 8 << 20 };

// All parts go to one process, which writes them.
static void spokesperson(const char* directory) {
  char* mine = malloc(part);
  memset(mine, 'a' + rank, part);
  char* all = rank == 0 ? malloc((size_t)part * ranks) : NULL;
  MPI_Gather(mine, part, MPI_BYTE, all, part, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    const int fd = open_or_die(in(directory, "all.dat", 0), O_CREAT | O_TRUNC | O_WRONLY);
    for (size_t done = 0; done < (size_t)part * ranks; done += 1 << 20) write_or_die(fd, all + done, 1 << 20, (off_t)done);
    close(fd);
  }
  free(mine), free(all);
}

// One file of all processes: each writes its own part, or pieces that take turns. `off` bytes before everything.
static void shared_file(const char* directory, size_t piece, int count, int turns, off_t off) {
  char* data = malloc(piece);
  memset(data, 'a' + rank, piece);
  const int fd = open_or_die(in(directory, "shared.dat", 0), O_CREAT | O_WRONLY);
  for (int i = 0; i < count; ++i) write_or_die(fd, data, piece, off + (off_t)piece * (turns ? i * ranks + rank : rank * count + i));
  close(fd);
  free(data);
}

static void many_files(const char* directory) {
  for (int i = 0; i < 60; ++i) {
    FILE* file = fopen(in(directory, "many.%05d", rank * 60 + i), "w");
    fprintf(file, "result %d of %d\n", i, rank);
    fclose(file);
  }
}

static void reopened(const char* directory) {
  for (int i = 0; i < 100; ++i) {
    FILE* file = fopen(in(directory, "again.%d", rank), "a");
    fprintf(file, "step %d\n", i);
    fclose(file);
  }
}

static void messages(FILE* file) {
  for (int i = 0; i < 400; ++i) fprintf(file, "Task %d made it through loop %d\n", rank, i), fflush(file);
}
static void log_of_each(const char* directory) {
  FILE* file = fopen(in(directory, "task%03d.log", rank), "w");
  messages(file);
  fclose(file);
}

static void mpi_turns(const char* directory) {
  char piece[4096];
  memset(piece, 'a' + rank, sizeof piece);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, in(directory, "turns.dat", 0), MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  for (int i = 0; i < 100; ++i)
    MPI_File_write_at(file, (MPI_Offset)(i * ranks + rank) * sizeof piece, piece, sizeof piece, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
}

// Each process goes over its own part twice.
static void rewritten(const char* directory) {
  enum { piece = 512 << 10, pieces = 8 };
  char* data = malloc(piece);
  memset(data, 'a' + rank, piece);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, in(directory, "twice.dat", 0), MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  for (int i = 0; i < 2 * pieces; ++i)
    MPI_File_write_at(file, (MPI_Offset)(rank * pieces + i % pieces) * piece, data, piece, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  free(data);
}

// Nothing to say about.
static void good(const char* directory) {
  char* data = malloc(part);
  memset(data, 'a' + rank, part);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, in(directory, "good.dat", 0), MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  MPI_File_write_at_all(file, (MPI_Offset)rank * part, data, part, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  free(data);
}

int main(int count, char** words) {
  MPI_Init(&count, &words);
  if (count != 3) return 2;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char *pattern = words[1], *directory = words[2];
  if (!strcmp(pattern, "small-writes")) small_writes(directory);
  else if (!strcmp(pattern, "small-reads")) small_reads(directory);
  else if (!strcmp(pattern, "small-streams")) small_streams(directory);
  else if (!strcmp(pattern, "spokesperson")) spokesperson(directory);
  else if (!strcmp(pattern, "parts")) shared_file(directory, 1 << 20, 8, 0, 0);
  else if (!strcmp(pattern, "turns")) shared_file(directory, 1 << 20, 8, 1, 0);
  else if (!strcmp(pattern, "unaligned")) shared_file(directory, 4096, 200, 0, 100);
  else if (!strcmp(pattern, "many-files")) many_files(directory);
  else if (!strcmp(pattern, "reopened")) reopened(directory);
  else if (!strcmp(pattern, "messages")) messages(stdout);
  else if (!strcmp(pattern, "logs")) log_of_each(directory);
  else if (!strcmp(pattern, "mpi-turns")) mpi_turns(directory);
  else if (!strcmp(pattern, "plain-turns")) shared_file(directory, 240, 300, 1, 0);
  else if (!strcmp(pattern, "small-parts")) shared_file(directory, 65536, 100, 0, 0);
  else if (!strcmp(pattern, "rewritten")) rewritten(directory);
  else if (!strcmp(pattern, "good")) good(directory);
  else return 2;
  return MPI_Finalize();
}
