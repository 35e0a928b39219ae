/* Writes each of its checkpoints in two halves, with a pause in between, so that a rank can be killed while it writes: by stdio, by MPI-IO, or under another
   name first. Reads back what it has written under its name, and removes the last but one; rank 0 writes one more for all. It goes on from the newest that all ranks have, and prints at
   the end what it has come to.

     slow_checkpoint [STEPS [MICROSECONDS]]

   HOLDFAST_TEST_DIFFERS=TEAM:STEP makes that team's rank 1 write another value at that step, as a flipped bit would. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { half = 5000 };
static long begun = 0; /* with what was there */

static long load(long step, int rank) {
  char name[64];
  long values[2 * half], sum = 0;
  snprintf(name, sizeof name, "ck/ck.%ld.%d", step, rank);
  FILE* file = fopen(name, "rb");
  if (!file) return -1;
  const size_t got = fread(values, sizeof *values, 2 * half, file);
  fclose(file);
  for (size_t i = 0; i < got; ++i) sum += values[i] % 1000;
  return got == 2 * half ? values[2 * half - 1] : -1;
}

static void fail(const char* what) {
  perror(what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void fill(long* values, long value) {
  for (int i = 0; i < half; ++i) values[i] = value;
}

static void save_by_stdio(const char* name, const long* values, useconds_t pause) {
  FILE* file = fopen(name, "wb");
  if (!file) fail(name);
  for (int part = 0; part < 2; ++part) {
    if (fwrite(values, sizeof *values, half, file) != half || fflush(file) != 0) fail(name);
    usleep(pause);
  }
  if (fclose(file) != 0) fail(name);
}

static void save_by_mpi(const char* name, const long* values, useconds_t pause) {
  MPI_File file;
  if (MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS) fail(name);
  for (int part = 0; part < 2; ++part) {
    if (MPI_File_write_at(file, part * half * (MPI_Offset)sizeof *values, values, half, MPI_LONG, MPI_STATUS_IGNORE) != MPI_SUCCESS) fail(name);
    usleep(pause);
  }
  if (MPI_File_close(&file) != MPI_SUCCESS) fail(name);
}

static void save_by_rename(const char* name, int rank, const long* values, useconds_t pause) {
  char other[64];
  snprintf(other, sizeof other, "ck/tmp.%d", rank);
  save_by_stdio(other, values, pause);
  if (rename(other, name) != 0) fail(name);
}

static void save(long step, int rank, long value, useconds_t pause) {
  static long values[half];
  char name[64];
  snprintf(name, sizeof name, "ck/ck.%ld.%d", step, rank);
  fill(values, value);
  if (step % 4 == 2) save_by_mpi(name, values, pause);
  else if (step % 4 == 0) save_by_rename(name, rank, values, pause);
  else save_by_stdio(name, values, pause);
  if (step % 4 != 0 && load(step, rank) != value) fail("it is not read back");
  snprintf(name, sizeof name, "ck/ck.%ld.%d", step - 2, rank);
  if (step > 2 && unlink(name) != 0 && step - 2 > begun) fail(name);
  if (rank > 0) return;
  snprintf(name, sizeof name, "ck/head.%ld", step);
  save_by_stdio(name, values, 0);
}

int main(int count, char** arguments) {
  int rank, mine, all;
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const long steps = count > 1 ? atol(arguments[1]) : 6;
  const useconds_t pause = (useconds_t)(count > 2 ? atol(arguments[2]) : 100000);
  const char *differs = getenv("HOLDFAST_TEST_DIFFERS"), *team = getenv("HOLDFAST_CHECKPOINT_TEAM");
  long step = steps, value = 0;
  for (all = 0; step > 0; step -= !all) {
    value = load(step, rank);
    mine = value >= 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (all) break;
  }
  if (step == 0) value = rank + 1;
  begun = step;
  if (rank == 0) printf("begins after step %ld\n", step), fflush(stdout);
  while (step < steps) {
    long sum = 0;
    MPI_Allreduce(&value, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    value = (value * 31 + sum + ++step) % 1000003;
    int other_team;
    long other_step;
    if (rank == 1 && differs && team && sscanf(differs, "%d:%ld", &other_team, &other_step) == 2 && other_team == atoi(team) && other_step == step)
      save(step, rank, value + 1, pause);
    else save(step, rank, value, pause);
  }
  printf("rank %d has %ld\n", rank, value);
  MPI_Finalize();
  return 0;
}
