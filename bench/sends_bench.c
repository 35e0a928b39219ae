/* Messages: a token that goes round a ring, and a heat equation with halos. Measured are jobs that are there several times.

     sends_bench --mode ring --rounds N            N times 2000 messages of 8 bytes a rank: each waits for the one before it
     sends_bench --mode heat --path FILE --cells N --steps N --every N
                                                   N x N cells a rank, periodic; every N steps the field is written by all ranks

   `seconds` of the ring is what a million messages one after another would take, each as in the quickest round. Nothing is sent that differs between two runs. */
#include <getopt.h>

#include "program.h"

enum { round_messages = 2000 };

static int rank, ranks;

static double ring(int rounds) {
  uint64_t token = 1;
  double least = 1e9;
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  for (int round = 0; round < rounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now_seconds();
    for (int i = 0; i < round_messages; ++i) {
      if (ranks == 1) {
        MPI_Request request;
        MPI_Irecv(&token, 1, MPI_UINT64_T, left, 0, MPI_COMM_WORLD, &request);
        uint64_t mine = token;
        MPI_Send(&mine, 1, MPI_UINT64_T, right, 0, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        ++token;
        continue;
      }
      if (rank > 0) MPI_Recv(&token, 1, MPI_UINT64_T, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      ++token;
      MPI_Send(&token, 1, MPI_UINT64_T, right, 0, MPI_COMM_WORLD);
      if (rank == 0) MPI_Recv(&token, 1, MPI_UINT64_T, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    const double took = now_seconds() - start;
    if (round && took < least) least = took;
  }
  return least / round_messages / ranks * 1e6;
}

static void halo(double *now, int cells, MPI_Datatype column) {
  const int width = cells + 2, right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  /* Rows go round the ranks, columns stay in theirs, as messages all the same. */
  MPI_Sendrecv(now + width + 1, cells, MPI_DOUBLE, left, 0, now + (cells + 1) * width + 1, cells, MPI_DOUBLE, right, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(now + cells * width + 1, cells, MPI_DOUBLE, right, 1, now + 1, cells, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(now + width + 1, 1, column, rank, 2, now + width + cells + 1, 1, column, rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(now + width + cells, 1, column, rank, 3, now + width, 1, column, rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void heat(const char *path, int cells, int steps, int every) {
  const int width = cells + 2;
  double *now = calloc((size_t)width * (size_t)width, sizeof *now), *next = calloc((size_t)width * (size_t)width, sizeof *now);
  MPI_Datatype column;
  MPI_File file;
  if (!now || !next) fail("memory");
  for (int r = 1; r <= cells; ++r)
    for (int c = 1; c <= cells; ++c) now[r * width + c] = (r * 7 + c * 3 + rank) % 11;
  MPI_Type_vector(cells, 1, width, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  must(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file), "MPI_File_open");
  for (int step = 1; step <= steps; ++step) {
    halo(now, cells, column);
    for (int r = 1; r <= cells; ++r)
      for (int c = 1; c <= cells; ++c) {
        const double *t = now + r * width + c;
        next[r * width + c] = *t + 0.2 * (t[-1] + t[1] + t[-width] + t[width] - 4 * *t);
      }
    double *swap = now;
    now = next, next = swap;
    if (step % every) continue;
    MPI_Status status;
    must(MPI_File_write_at_all(file, (MPI_Offset)rank * width * width * (MPI_Offset)sizeof *now, now, width * width, MPI_DOUBLE, &status), "write");
    must_have_moved(&status, MPI_DOUBLE, width * width, "MPI_File_write_at_all");
  }
  must(MPI_File_close(&file), "MPI_File_close");
  MPI_Type_free(&column);
  free(now), free(next);
}

int main(int argc, char **argv) {
  static const struct option known[] = {{"mode", 1, 0, 'm'},  {"path", 1, 0, 'p'},  {"rounds", 1, 0, 'n'}, {"cells", 1, 0, 'c'},
                                        {"steps", 1, 0, 's'}, {"every", 1, 0, 'e'}, {0, 0, 0, 0}};
  const char *mode = "", *path = "";
  int rounds = 0, cells = 0, steps = 0, every = 1, option;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  while ((option = getopt_long(argc, argv, "", known, 0)) != -1) {
    if (option == 'm') mode = optarg;
    else if (option == 'p') path = optarg;
    else if (option == 'n') rounds = atoi(optarg);
    else if (option == 'c') cells = atoi(optarg);
    else if (option == 's') steps = atoi(optarg);
    else if (option == 'e') every = atoi(optarg);
    else fail("options");
  }
  const double cpu = cpu_seconds(), start = now_seconds();
  double seconds = 0;
  if (!strcmp(mode, "ring")) seconds = ring(rounds);
  else heat(path, cells, steps, every);
  const double used = cpu_seconds() - cpu, took = now_seconds() - start;
  if (seconds == 0) seconds = took;
  /* Memory is another in each replica: it is not sent. */
  if (rank == 0)
    printf(
        "{\"program\": \"sends_bench\", \"mode\": \"%s\", \"ranks\": %d, \"bytes\": 0, \"open_seconds\": 0, \"seconds\": %.6f, \"close_seconds\": 0, "
        "\"cpu_seconds\": %.6f, \"verified\": true, \"peak_rss_bytes\": %llu}\n",
        mode, ranks, seconds, used, (unsigned long long)peak_resident_bytes());
  MPI_Finalize();
  return 0;
}
