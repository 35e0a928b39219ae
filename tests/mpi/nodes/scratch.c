/* A file on a disk of the node's own, which is renamed and read again, and what was read in a file that all nodes see: scratch DIRECTORY FILE */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  char one[4096], two[4096], text[100] = "";
  snprintf(one, sizeof one, "%s/one", argv[1]);
  snprintf(two, sizeof two, "%s/two", argv[1]);
  if (mkdir(argv[1], 0777) != 0) return 1;
  FILE *file = fopen(one, "w");
  if (!file || fputs("written on the node\n", file) < 0 || fclose(file) != 0) return 1;
  if (rename(one, two) != 0 || !(file = fopen(two, "r+")) || !fgets(text, sizeof text, file) || fclose(file) != 0) return 1;
  file = fopen(argv[2], "w");
  if (!file || fputs(text, file) < 0 || fclose(file) != 0) return 1;
  MPI_Finalize();
  return 0;
}
