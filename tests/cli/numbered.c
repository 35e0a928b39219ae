/* A program whose files have its process's number in their names: numbered LINES PAUSE_MS. With MPI (-DWITH_MPI) each rank does it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif

static int fails(const char *what) { return perror(what), 1; }

static int all(int rank, int lines, int pause_ms) {
  char directory[64], name[128], other[128], template[128];
  struct stat state;
  int entries = 0;
  snprintf(directory, sizeof directory, "run.%d", (int)getpid());
  snprintf(name, sizeof name, "%s/log", directory);
  snprintf(other, sizeof other, "%s/log.%d.done", directory, (int)getpid());
  snprintf(template, sizeof template, "scratch.%d.XXXXXX", (int)getpid());
  if (access(directory, F_OK) == 0 || mkdir(directory, 0755) != 0) return fails("mkdir");
  FILE *log = fopen(name, "w");
  if (!log) return fails("fopen");
  for (int i = 0; i < lines; ++i, usleep(pause_ms * 1000)) fprintf(log, "rank %d line %d\n", rank, i), fflush(log);
  if (fclose(log) != 0 || stat(name, &state) != 0 || rename(name, other) != 0) return fails("rename");
  if (chdir(directory) != 0 || !(log = fopen("beside", "w"))) return fails("chdir");
  fprintf(log, "%ld\n", (long)state.st_size);
  if (fclose(log) != 0 || chdir("..") != 0) return fails("fclose");
  int fd = mkstemp(template);
  if (fd < 0 || close(fd) != 0 || chmod(template, 0640) != 0 || unlink(template) != 0) return fails("mkstemp");
  DIR *listing = opendir(directory);
  while (listing && readdir(listing)) ++entries;
  if (!listing || closedir(listing) != 0) return fails("opendir");
  if (!(log = fopen(other, "a")) || fprintf(log, "%d entries\n", entries) < 0 || fclose(log) != 0) return fails("append");
#ifdef WITH_MPI
  MPI_File file;
  snprintf(name, sizeof name, "independent.%d", (int)getpid());
  if (MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS) return 1;
  MPI_File_write_at(file, 0, directory, 4, MPI_CHAR, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
#endif
  return 0;
}

int main(int argc, char **argv) {
  int rank = 0, lines = argc > 1 ? atoi(argv[1]) : 3, pause_ms = argc > 2 ? atoi(argv[2]) : 0;
#ifdef WITH_MPI
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (all(rank, lines, pause_ms) != 0) return MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Finalize();
  return 0;
#else
  return all(rank, lines, pause_ms);
#endif
}
