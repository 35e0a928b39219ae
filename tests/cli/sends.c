/* All that a rank sends and contributes to collective calls: sends FILE [CALL]. Between what is sent lies what is another in each process (its
 * number), in holes of datatypes and in buffers that are not looked at. The calls are made three times over; with CALL, the name of a case below,
 * the second time its own bytes are this process's too. Rank 0 writes a line at the end. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { most = 4096, round_of_difference = 1 };
static int rank, ranks, round_number;
static const char *differs;
static long in[most], out[most];
static MPI_Comm cart, other;
static MPI_Datatype holes; /* every other long, four of them */
static int counts[64], places[64], in_bytes[64];
static MPI_Datatype types[64];

/* What is sent in the case `name`: the first `used` of `out`, every `step`-th; all else is this process's number. */
static void fill(const char *name, int used, int step) {
  for (int i = 0; i < most; ++i) out[i] = getpid(), in[i] = getpid() + 1;
  for (int i = 0; i < used; ++i) out[i * step] = 1000L * rank + i + 7 * round_number;
  if (differs && round_number == round_of_difference && strcmp(differs, name) == 0) out[(used - 1) * step] = getpid();
}

static int right(void) { return (rank + 1) % ranks; }
static int left(void) { return (rank + ranks - 1) % ranks; }

static void one_by_one(void) {
  MPI_Request two[2];
  fill("Send", 3, 1);
  MPI_Irecv(in, 3, MPI_LONG, left(), 1, MPI_COMM_WORLD, &two[0]);
  MPI_Send(out, 3, MPI_LONG, right(), 1, MPI_COMM_WORLD);
  MPI_Wait(&two[0], MPI_STATUS_IGNORE);
  fill("Isend", 8, 2);
  MPI_Irecv(in, 8, MPI_LONG, left(), 2, other, &two[0]);
  MPI_Isend(out, 2, holes, right(), 2, other, &two[1]);
  MPI_Waitall(2, two, MPI_STATUSES_IGNORE);
  fill("Sendrecv", 4, 1);
  MPI_Sendrecv(out, 4, MPI_LONG, right(), 3, in, 4, MPI_LONG, left(), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  fill("Sendrecv_replace", 4, 2);
  MPI_Sendrecv_replace(out, 1, holes, right(), 4, left(), 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  fill("Ssend", 2, 1);
  MPI_Irecv(in, 2, MPI_LONG, left(), 5, MPI_COMM_WORLD, &two[0]);
  MPI_Ssend(out, 2, MPI_LONG, right(), 5, MPI_COMM_WORLD);
  MPI_Wait(&two[0], MPI_STATUS_IGNORE);
  MPI_Send(out + 4, 4, MPI_LONG, MPI_PROC_NULL, 0, MPI_COMM_WORLD); /* what lies there is not looked at */
  fill("large", 3000, 1);
  MPI_Sendrecv(out, 3000, MPI_LONG, right(), 6, in, 3000, MPI_LONG, left(), 6, cart, MPI_STATUS_IGNORE);
}

static void persistent(void) {
  static MPI_Request sends[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Request receives[2];
  MPI_Datatype passing;
  MPI_Type_dup(holes, &passing);
  if (sends[0] != MPI_REQUEST_NULL) MPI_Request_free(&sends[0]), MPI_Request_free(&sends[1]);
  MPI_Send_init(out, 1, passing, right(), 10, MPI_COMM_WORLD, &sends[0]);
  MPI_Send_init(out + 8, 2, MPI_LONG, right(), 11, MPI_COMM_WORLD, &sends[1]);
  MPI_Type_free(&passing);
  for (int i = 0; i < 3; ++i) {
    fill(i == 1 ? "Start" : "", 4, 2);
    out[8] = out[9] = i + round_number;
    MPI_Irecv(in, 4, MPI_LONG, left(), 10, MPI_COMM_WORLD, &receives[0]);
    MPI_Irecv(in + 8, 2, MPI_LONG, left(), 11, MPI_COMM_WORLD, &receives[1]);
    if (i == 2) MPI_Startall(2, sends);
    else MPI_Start(&sends[1]), MPI_Start(&sends[0]);
    MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
    MPI_Waitall(2, receives, MPI_STATUSES_IGNORE);
  }
}

static void collective(void) {
  MPI_Request request;
  fill("Bcast", rank == ranks - 1 ? 5 : 1, 1); /* others' bytes are none of theirs */
  if (rank != ranks - 1) out[0] = getpid();
  MPI_Bcast(out, 5, MPI_LONG, ranks - 1, MPI_COMM_WORLD);
  fill("Allreduce", 4, 1);
  MPI_Allreduce(out, in, 4, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  fill("in_place", 4, 1);
  MPI_Allreduce(MPI_IN_PLACE, out, 4, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  fill("Reduce", 2, 1);
  MPI_Reduce(out, in, 2, MPI_LONG, MPI_MAX, 0, other);
  fill("Scan", 2, 1);
  MPI_Scan(out, in, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  fill("Gather", 4, 2);
  MPI_Gather(out, 1, holes, in, 4, MPI_LONG, 0, MPI_COMM_WORLD);
  fill("Allgather", 2, 1);
  memcpy(in + 2 * rank, out, 2 * sizeof *in);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 2, MPI_LONG, MPI_COMM_WORLD);
  fill("Scatter", rank == 0 ? 3 * ranks : 1, 1);
  MPI_Scatter(out, 3, MPI_LONG, in, 3, MPI_LONG, 0, MPI_COMM_WORLD);
  fill("Alltoall", 2 * ranks, 1);
  MPI_Ialltoall(out, 2, MPI_LONG, in, 2, MPI_LONG, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void of_several_sizes(void) {
  for (int i = 0; i < ranks; ++i) counts[i] = 2, places[i] = 4 * i, in_bytes[i] = (int)(4 * i * sizeof(long)), types[i] = MPI_LONG;
  fill("Alltoallv", 2 * ranks, 1);
  for (int i = 2 * ranks - 1; i >= 0; --i) out[i / 2 * 4 + i % 2] = out[i], out[i / 2 * 4 + 2] = out[i / 2 * 4 + 3] = getpid();
  MPI_Alltoallv(out, counts, places, MPI_LONG, in, counts, places, MPI_LONG, MPI_COMM_WORLD);
  MPI_Alltoallw(out, counts, in_bytes, types, in, counts, in_bytes, types, MPI_COMM_WORLD);
  fill("Gatherv", 2, 1);
  MPI_Gatherv(out, 2, MPI_LONG, in, counts, places, MPI_LONG, 0, MPI_COMM_WORLD);
  fill("Reduce_scatter", 2 * ranks, 1);
  MPI_Reduce_scatter(out, in, counts, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  MPI_Reduce_scatter_block(out, in, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
}

/* Along a line without a way round: at its ends a block is for nobody. */
static void neighbours(void) {
  int before, behind;
  MPI_Cart_shift(cart, 0, 1, &before, &behind);
  fill("Neighbor_allgather", 2, 1);
  MPI_Neighbor_allgather(out, 2, MPI_LONG, in, 2, MPI_LONG, cart);
  fill("Neighbor_alltoall", 4, 1);
  if (before == MPI_PROC_NULL) out[0] = out[1] = getpid();
  if (behind == MPI_PROC_NULL) out[2] = out[3] = getpid();
  MPI_Neighbor_alltoall(out, 2, MPI_LONG, in, 2, MPI_LONG, cart);
}

/* Communicators and datatypes that come and go, where handles are used anew. */
static void passing(void) {
  for (int i = 0; i < 5; ++i) {
    MPI_Comm once;
    MPI_Datatype row;
    MPI_Comm_dup(MPI_COMM_WORLD, &once);
    MPI_Type_vector(2 + i, 1, 2, MPI_LONG, &row);
    MPI_Type_commit(&row);
    fill("passing", 2 + i, 2);
    MPI_Sendrecv(out, 1, row, right(), i, in, 2 + i, MPI_LONG, left(), i, once, MPI_STATUS_IGNORE);
    MPI_Type_free(&row);
    MPI_Comm_free(&once);
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (argc < 2) MPI_Abort(MPI_COMM_WORLD, 2);
  differs = argc > 2 ? argv[2] : NULL;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int periods = 0;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periods, 0, &cart);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Type_vector(4, 1, 2, MPI_LONG, &holes);
  MPI_Type_create_resized(holes, 0, 8 * sizeof(long), &holes);
  MPI_Type_commit(&holes);
  for (round_number = 0; round_number < 3; ++round_number) {
    one_by_one();
    persistent();
    collective();
    of_several_sizes();
    neighbours();
    passing();
    struct timespec rest = {0, 60 * 1000000L};
    nanosleep(&rest, NULL);
  }
  FILE *file = rank == 0 ? fopen(argv[1], "w") : NULL;
  if (file) fprintf(file, "all was sent\n"), fclose(file);
  MPI_Finalize();
  return 0;
}
