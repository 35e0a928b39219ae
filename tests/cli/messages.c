/* A master and its workers: which message comes first changes what is written. messages HOW FILE [ROUNDS [MS]], see test_replicas_ranks.py. Each line
 * has what the lines before it led to: one message that is taken otherwise changes all that follow. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { request = 1, answer = 2, stop = 3, big = 4 };
static int rank, ranks, rounds = 200, pause_ms;
static FILE *file;
static unsigned digest = 1;

static void rest(int ms) {
  struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
  nanosleep(&t, NULL);
}

static void note(const char *how, long what, long more) {
  digest = digest * 31 + (unsigned)what * 7 + (unsigned)more;
  fprintf(file, "%s %ld %ld %u\n", how, what, more, digest);
  if (pause_ms) fflush(file), rest(pause_ms);
}

/* Tell the worker what everything has led to by now: it computes longer or shorter. */
static void reply(int to, int tag) { MPI_Send(&digest, 1, MPI_UNSIGNED, to, tag, MPI_COMM_WORLD); }

static unsigned taken[3];

static void receive(const char *how, int source, int tag) {
  MPI_Status status;
  MPI_Recv(taken, 3, MPI_UNSIGNED, source, tag, MPI_COMM_WORLD, &status);
  note(how, status.MPI_SOURCE, taken[1]);
  reply(status.MPI_SOURCE, answer);
}

static void by_receive(int total) {
  for (int i = 0; i < total; ++i) receive("receive", MPI_ANY_SOURCE, i % 2 ? request : MPI_ANY_TAG);
}

static void by_probe(int total) {
  MPI_Status status;
  MPI_Message message;
  int flag;
  for (int i = 0; i < total; ++i) {
    long noes = 0;
    if (i % 4 == 0) {
      MPI_Probe(MPI_ANY_SOURCE, request, MPI_COMM_WORLD, &status);
      receive("probe", status.MPI_SOURCE, status.MPI_TAG);
    } else if (i % 4 == 1) {
      for (flag = 0; !flag; ++noes) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
      note("noes", noes, 0);
      receive("iprobe", status.MPI_SOURCE, status.MPI_TAG);
    } else {
      if (i % 4 == 2) MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
      else
        for (flag = 0; !flag; ++noes) MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status);
      MPI_Mrecv(taken, 3, MPI_UNSIGNED, &message, &status);
      note("matched", status.MPI_SOURCE, (long)taken[1] + noes);
      reply(status.MPI_SOURCE, answer);
    }
  }
}

/* As many receives from anybody at once as there are workers, completed in every way. */
static void by_request(int total) {
  int workers = ranks - 1, left = total, indices[16], some, flag;
  unsigned bufs[16][3];
  MPI_Request requests[16];
  MPI_Status statuses[16];
  for (int i = 0; i < workers; ++i) MPI_Irecv(bufs[i], 3, MPI_UNSIGNED, MPI_ANY_SOURCE, request, MPI_COMM_WORLD, &requests[i]);
  for (int turn = 0; left > 0; ++turn) {
    long noes = 0;
    some = 1;
    switch (turn % 6) {
      case 0: MPI_Waitany(workers, requests, &indices[0], &statuses[0]); break;
      case 1: MPI_Waitsome(workers, requests, &some, indices, statuses); break;
      case 2:
        for (flag = 0; !flag; ++noes) MPI_Testany(workers, requests, &indices[0], &flag, &statuses[0]);
        break;
      case 3:
        for (some = 0; some == 0; ++noes) MPI_Testsome(workers, requests, &some, indices, statuses);
        break;
      case 4:
        indices[0] = turn / 6 % workers;
        flag = 0;
        for (; requests[indices[0]] != MPI_REQUEST_NULL && !flag && noes < 100; ++noes) MPI_Test(&requests[indices[0]], &flag, &statuses[0]);
        some = flag;
        break;
      default: MPI_Waitany(workers, requests, &indices[0], MPI_STATUS_IGNORE); statuses[0].MPI_SOURCE = (int)bufs[indices[0]][2];
    }
    note("turn", turn % 6, noes);
    for (int k = 0; k < some; ++k) {
      int i = indices[k];
      note("request", statuses[k].MPI_SOURCE * 100 + i, bufs[i][1]);
      reply(statuses[k].MPI_SOURCE, answer);
      if (--left >= workers) MPI_Irecv(bufs[i], 3, MPI_UNSIGNED, MPI_ANY_SOURCE, request, MPI_COMM_WORLD, &requests[i]);
    }
  }
}

/* Receives from anybody beside those that name their source, blocking sends that are too long to be buffered, and calls of all ranks while
 * some are open; persistent ones; one that is cancelled. */
static void mixed(void) {
  static char out[300000], in[300000];
  unsigned any[3], named[3], sum = 0, one = (unsigned)rank;
  int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
  MPI_Request requests[3], persistent, never;
  MPI_Status statuses[3];
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Recv_init(in, sizeof in, MPI_CHAR, MPI_ANY_SOURCE, big, comm, &persistent);
  for (int i = 0; i < rounds; ++i) {
    unsigned mine[3] = {(unsigned)i, digest, (unsigned)rank};
    MPI_Irecv(any, 3, MPI_UNSIGNED, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(named, 3, MPI_UNSIGNED, last, request, MPI_COMM_WORLD, &requests[1]);
    MPI_Start(&persistent);
    memset(out, rank + i, sizeof out);
    MPI_Send(out, sizeof out, MPI_CHAR, next, big, comm);
    MPI_Allreduce(&one, &sum, 1, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
    MPI_Send(mine, 3, MPI_UNSIGNED, next, request, MPI_COMM_WORLD);
    MPI_Barrier(comm);
    MPI_Send(mine, 3, MPI_UNSIGNED, next, request, MPI_COMM_WORLD);
    MPI_Waitall(2, requests, statuses);
    MPI_Wait(&persistent, &statuses[2]);
    note("mixed", statuses[0].MPI_SOURCE * 10 + statuses[1].MPI_SOURCE, (long)sum + in[77] + statuses[2].MPI_SOURCE);
    MPI_Sendrecv(mine, 3, MPI_UNSIGNED, i % 2 ? next : last, answer, any, 3, MPI_UNSIGNED, MPI_ANY_SOURCE, answer, comm, &statuses[0]);
    MPI_Sendrecv_replace(mine, 3, MPI_UNSIGNED, next, answer, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &statuses[1]);
    note("exchanged", statuses[0].MPI_SOURCE * 10 + statuses[1].MPI_SOURCE, any[2] * 10 + mine[2]);
    MPI_Barrier(comm);
  }
  MPI_Request_free(&persistent);
  MPI_Irecv(any, 3, MPI_UNSIGNED, MPI_ANY_SOURCE, stop, comm, &never);
  MPI_Cancel(&never);
  MPI_Wait(&never, &statuses[0]);
  int cancelled = 0;
  MPI_Test_cancelled(&statuses[0], &cancelled);
  note("cancelled", cancelled, 0);
  MPI_Comm_free(&comm);
}

#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
#define HAS_EXCHANGES 1
#endif
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
#define HAS_LOOKS_AT_MANY 1
#endif

/* Exchanges with anybody that are waited for later, each rank's messages to both of its neighbours under one tag. */
static void exchange(int i, MPI_Comm comm) {
#ifdef HAS_EXCHANGES
  int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks, flag = 0;
  unsigned mine[3] = {(unsigned)i, digest, (unsigned)rank}, got[3], both[3] = {(unsigned)i, digest * 3, (unsigned)rank};
  long noes = 0;
  MPI_Request requests[2];
  MPI_Status statuses[2];
  MPI_Isendrecv(mine, 3, MPI_UNSIGNED, next, answer, got, 3, MPI_UNSIGNED, MPI_ANY_SOURCE, answer, comm, &requests[0]);
  MPI_Isendrecv_replace(both, 3, MPI_UNSIGNED, last, answer, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &requests[1]);
  for (; !flag; ++noes) MPI_Request_get_status(requests[i % 2], &flag, &statuses[0]);
  note("looked", statuses[0].MPI_SOURCE, noes);
#ifdef HAS_LOOKS_AT_MANY
  int index, some = 0, indices[2];
  for (flag = 0, noes = 0; !flag; ++noes) MPI_Request_get_status_any(2, requests, &index, &flag, &statuses[0]);
  note("any", index * 10 + statuses[0].MPI_SOURCE, noes);
  for (noes = 0; some == 0; ++noes) MPI_Request_get_status_some(2, requests, &some, indices, statuses);
  note("some", some * 100 + indices[0] * 10 + statuses[some - 1].MPI_SOURCE, noes);
  for (flag = 0, noes = 0; !flag; ++noes) MPI_Request_get_status_all(2, requests, &flag, statuses);
  note("all", statuses[0].MPI_SOURCE * 10 + statuses[1].MPI_SOURCE, noes);
#endif
  MPI_Waitall(2, requests, statuses);
  note("exchanged", statuses[0].MPI_SOURCE * 10 + statuses[1].MPI_SOURCE, (long)got[2] * 10 + both[2] + (got[1] ^ both[1]) % 1000);
#else
  (void)i, (void)comm;
#endif
}

/* Epochs of a window and partitions of a message: how often they were not over yet. */
static void later(void) {
  int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks, flag = 0, slots[2] = {0, 0};
  MPI_Comm comm;
  MPI_Win win;
  MPI_Group all, others;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_group(comm, &all);
  MPI_Group_incl(all, 2, (int[]){next, last}, &others);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN); /* Open MPI 4 has no windows over TCP alone */
  const int has_window = MPI_Win_create(slots, sizeof slots, sizeof slots[0], MPI_INFO_NULL, comm, &win) == MPI_SUCCESS;
#ifdef HAS_EXCHANGES
  unsigned out[4] = {0, 0, 0, 0}, in[4];
  MPI_Request parts[2];
  MPI_Psend_init(out, 2, 2, MPI_UNSIGNED, next, big, comm, MPI_INFO_NULL, &parts[0]);
  MPI_Precv_init(in, 2, 2, MPI_UNSIGNED, last, big, comm, MPI_INFO_NULL, &parts[1]);
#endif
  for (int i = 0; i < rounds; ++i) {
    exchange(i, comm);
    long noes = 0;
    int one = i * 3 + rank;
    if (has_window) {
      MPI_Win_post(others, 0, win);
      MPI_Win_start(others, 0, win);
      MPI_Put(&one, 1, MPI_INT, next, 0, 1, MPI_INT, win);
      MPI_Put(&one, 1, MPI_INT, last, 1, 1, MPI_INT, win);
      MPI_Win_complete(win);
      for (flag = 0; !flag; ++noes) MPI_Win_test(win, &flag);
      note("window", slots[0] * 100 + slots[1], noes);
    }
#ifdef HAS_EXCHANGES
    noes = 0, out[2] = (unsigned)one;
    MPI_Startall(2, parts);
    MPI_Pready(0, parts[0]);
    MPI_Pready(1, parts[0]);
    for (flag = 0; !flag; ++noes) MPI_Parrived(parts[1], 1, &flag);
    MPI_Waitall(2, parts, (MPI_Status[2]){{0}});
    note("parts", in[2], noes);
#endif
    MPI_Barrier(comm);
  }
#ifdef HAS_EXCHANGES
  MPI_Request_free(&parts[0]);
  MPI_Request_free(&parts[1]);
#endif
  if (has_window) MPI_Win_free(&win);
  MPI_Group_free(&all);
  MPI_Group_free(&others);
  MPI_Comm_free(&comm);
}

static void work(void) {
  unsigned told = (unsigned)rank;
  for (int i = 0; i < rounds; ++i) {
    unsigned mine[3] = {(unsigned)i, told, (unsigned)rank};
    volatile double x = 1;
    for (unsigned n = told % 1000 * 50 + (unsigned)(clock() % 7) * 3000; n > 0; --n) x += x / n;
    MPI_Send(mine, 3, MPI_UNSIGNED, 0, request, MPI_COMM_WORLD);
    MPI_Recv(&told, 1, MPI_UNSIGNED, 0, answer, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    note("told", told, i);
  }
}

int main(int argc, char **argv) {
  char name[256];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 3) return MPI_Abort(MPI_COMM_WORLD, 2);
  if (argc > 3) rounds = atoi(argv[3]);
  if (argc > 4) pause_ms = rank == 0 ? atoi(argv[4]) : 0;
  snprintf(name, sizeof name, "%s.%d", argv[2], rank);
  if (!(file = fopen(name, "w"))) return MPI_Abort(MPI_COMM_WORLD, 1);
  int total = rounds * (ranks - 1);
  if (!strcmp(argv[1], "mixed")) mixed();
  else if (!strcmp(argv[1], "later")) later();
  else if (rank > 0) work();
  else if (!strcmp(argv[1], "receive")) by_receive(total);
  else if (!strcmp(argv[1], "probe")) by_probe(total);
  else by_request(total);
  fprintf(file, "end\n");
  if (fclose(file)) return 1;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("done %u\n", digest);
  MPI_Finalize();
  return 0;
}
