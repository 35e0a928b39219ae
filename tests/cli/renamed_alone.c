/* Renames to names of all that one team makes alone: in MPI's own code, and of a file that is named after its process. All write a file behind that.

     renamed_alone */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "of_team.h"

static void fail(const char* what) {
  perror(what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void save(const char* name) {
  FILE* file = fopen(name, "w");
  if (!file || fprintf(file, "written\n") != 8 || fclose(file) != 0) fail(name);
}

static int at_its_end(MPI_Comm comm, int key, void* value, void* more) {
  (void)comm, (void)key, (void)value, (void)more;
  if (is_of_team('1') && rename("ck/plain", "ck/by_mpi") != 0) fail("ck/by_mpi");
  return MPI_SUCCESS;
}

int main(int count, char** words) {
  MPI_Init(&count, &words);
  int key;
  MPI_Comm own;
  save("ck/plain");
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_its_end, &key, NULL);
  MPI_Comm_dup(MPI_COMM_SELF, &own);
  MPI_Comm_set_attr(own, key, NULL);
  MPI_Comm_free(&own);
  save("ck/between");

  char name[64];
  snprintf(name, sizeof name, "ck/own.%d", (int)getpid());
  save(name);
  if (is_of_team('1') && rename(name, "ck/named") != 0) fail(name);
  save("ck/end");
  printf("went on\n");
  return MPI_Finalize();
}
