/* Two threads of rank 0 wait at the same time for messages of rank 1, and it writes who got which: racing_threads HOW FILE. Which thread is first is
 * another one in team 1, but for `tags`: there each thread waits for messages of its own. `posted`: one of them posts its receive while the other waits.
 *
 * `sends`, `sendtags`, `empty`, `sendcomms`: both send to rank 1, which takes what comes in its order and writes it. `sendrecv`, `sendrecvtags`: by
 * MPI_Sendrecv. `sendstart`: the later one by a request that it starts. `sendanswer`: one sends when it has heard that the other's message was taken, whose
 * MPI_Sendrecv still waits for an answer. `all`, `allcomms`: both are in a barrier; `allstart`: the later one starts its own, `allpersist`: by a
 * persistent request, where MPI has such (else it ends with 77), `allpersistcomms`: on a communicator of its own. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "of_team.h"

enum { TAG = 7 };
static const char *how;
static int got[2];
static MPI_Comm comms[2];

static int is(const char *one) { return !strcmp(how, one); }

static void wait_ms(long ms) { syscall(SYS_nanosleep, &(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

/* Each thread that is about to call. Who is late waits for the other one, however busy the machine is, and for a time in which that is in its call. */
static atomic_int begun;
static void begin(int is_late) {
  while (is_late && !atomic_load(&begun)) wait_ms(10);
  if (is_late) wait_ms(300);
  atomic_fetch_add(&begun, 1);
}

static void *take_one(void *which) {
  const int thread = (int)(size_t)which, is_late = thread == is_of_team('0');
  begin(!is("tags") && is_late);
  if (is("requests")) {
    MPI_Request requests[2];
    int index;
    for (int i = 0; i < 2; ++i) MPI_Irecv(&got[thread], 1, MPI_INT, 1, 10 * thread + i, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    MPI_Cancel(&requests[!index]);
    MPI_Wait(&requests[!index], MPI_STATUS_IGNORE);
  } else if (is("posted") && is_late) {
    MPI_Request request;
    MPI_Irecv(&got[thread], 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(&got[thread], 1, MPI_INT, is("anybody") ? MPI_ANY_SOURCE : 1, is("tags") ? TAG + thread : TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return NULL;
}

/* Long ones, which wait until they are taken: both are under way then. */
enum { LONG = 1 << 20, ANSWER = 20, TAKEN = 30 };
static void exchange(const int *message, int tag, int thread) {
  int answer;
  MPI_Sendrecv(message, LONG, MPI_INT, 1, tag, &answer, 1, MPI_INT, 1, ANSWER + thread, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void start_and_wait(const int *message) {
  MPI_Request request;
  MPI_Send_init(message, LONG, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
}

static void *send_one(void *which) {
  static int message[2][LONG];
  const int thread = (int)(size_t)which, tag = is("sendtags") || is("sendrecvtags") ? TAG + thread : TAG, is_late = thread == is_of_team('0');
  if (!is("sendanswer")) begin(is_late);
  message[thread][0] = 100 + thread;
  if (is("empty")) MPI_Ssend(NULL, 0, MPI_INT, 1, tag, MPI_COMM_WORLD);
  else if (is("sendrecv") || is("sendrecvtags") || (is("sendanswer") && thread == 0)) exchange(message[thread], tag, thread);
  else if (is("sendstart") && is_late) start_and_wait(message[thread]);
  else {
    if (is("sendanswer")) MPI_Recv(NULL, 0, MPI_INT, 1, TAKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(message[thread], LONG, MPI_INT, 1, tag, is("sendcomms") ? comms[thread] : MPI_COMM_WORLD);
  }
  return NULL;
}

static void start_to_meet(void) {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static int persists(void) { return !strncmp(how, "allpersist", 10); }
static MPI_Request prepared = MPI_REQUEST_NULL;
static void prepare_to_meet(void) {
#if MPI_VERSION >= 4
  MPI_Barrier_init(is("allpersistcomms") ? comms[1] : MPI_COMM_WORLD, MPI_INFO_NULL, &prepared);
#endif
}
static void start_what_is_prepared(void) {
  MPI_Start(&prepared);
  MPI_Wait(&prepared, MPI_STATUS_IGNORE);
}

static void *meet_all(void *which) {
  if (is("allstart") || persists()) {
    const int is_late = (size_t)which == 1;
    begin(is_late);
    if (is_late) return is("allstart") ? start_to_meet() : start_what_is_prepared(), NULL;
  }
  MPI_Barrier(is("allcomms") ? comms[(size_t)which] : MPI_COMM_WORLD);
  return NULL;
}

static void take_two(void) {
  static int message[LONG];
  wait_ms(2000);
  for (int i = 0; i < 2; ++i) {
    const MPI_Comm on = is("sendcomms") ? comms[i] : MPI_COMM_WORLD;
    if (is("empty")) MPI_Recv(NULL, 0, MPI_INT, 0, TAG, on, MPI_STATUS_IGNORE);
    else MPI_Recv(message, LONG, MPI_INT, 0, is("sendtags") || is("sendrecvtags") ? TAG + i : TAG, on, MPI_STATUS_IGNORE);
    got[i] = message[0];
    if (is("sendanswer") && i == 0) MPI_Send(NULL, 0, MPI_INT, 0, TAKEN, MPI_COMM_WORLD);
  }
  for (int i = 0; i < (is("sendanswer") ? 1 : is("sendrecv") || is("sendrecvtags") ? 2 : 0); ++i)
    MPI_Send(&i, 1, MPI_INT, 0, ANSWER + i, MPI_COMM_WORLD);
}

static void in_two_threads(void *(*run)(void *)) {
  pthread_t threads[2];
  for (size_t i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, run, (void *)i);
  for (size_t i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
}

static void write_what_came(const char *path) {
  FILE *file = fopen(path, "w");
  fprintf(file, "%d %d\n", got[0], got[1]);
  fclose(file);
}

static void send_two(void) {
  wait_ms(2000);
  for (int i = 0; i < 2; ++i) {
    const int message = 100 + i;
    const int tag = is("tags") ? TAG + i : is("requests") ? 10 * i + 1 : TAG;
    MPI_Send(&message, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
  }
}

int main(int count, char **words) {
  int provided, rank;
  MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (count != 3 || provided != MPI_THREAD_MULTIPLE) return MPI_Finalize(), 77;
  how = words[1];
  for (int i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  if (!strncmp(how, "all", 3)) {
    if (persists()) prepare_to_meet();
    if (persists() && prepared == MPI_REQUEST_NULL) return MPI_Finalize(), 77;
    if (rank == 0) in_two_threads(meet_all);
    else wait_ms(2000), meet_all((void *)0), meet_all((void *)1);
    if (persists()) MPI_Request_free(&prepared);
    if (rank == 0) write_what_came(words[2]);
  } else if (!strncmp(how, "send", 4) || is("empty")) {
    if (rank == 0) in_two_threads(send_one);
    else take_two(), write_what_came(words[2]);
  } else if (rank == 0) {
    in_two_threads(take_one);
    write_what_came(words[2]);
  } else {
    send_two();
  }
  return MPI_Finalize();
}
