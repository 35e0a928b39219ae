/* Two threads of rank 0 wait at the same time for messages of rank 1, and it writes who got which: racing_threads HOW FILE. Which thread is first is
 * another one in team 1, but for `tags`: there each thread waits for messages of its own. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "of_team.h"

enum { TAG = 7 };
static const char *how;
static int got[2];

static void wait_ms(long ms) { syscall(SYS_nanosleep, &(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

static void *take_one(void *which) {
  const int thread = (int)(size_t)which, is_late = thread == is_of_team('0');
  if (strcmp(how, "tags") && is_late) wait_ms(300);
  if (!strcmp(how, "requests")) {
    MPI_Request requests[2];
    int index;
    for (int i = 0; i < 2; ++i) MPI_Irecv(&got[thread], 1, MPI_INT, 1, 10 * thread + i, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    MPI_Cancel(&requests[!index]);
    MPI_Wait(&requests[!index], MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(&got[thread], 1, MPI_INT, !strcmp(how, "anybody") ? MPI_ANY_SOURCE : 1, !strcmp(how, "tags") ? TAG + thread : TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
  }
  return NULL;
}

static void send_two(void) {
  wait_ms(1000);
  for (int i = 0; i < 2; ++i) {
    const int message = 100 + i;
    const int tag = !strcmp(how, "tags") ? TAG + i : !strcmp(how, "requests") ? 10 * i + 1 : TAG;
    MPI_Send(&message, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
  }
}

int main(int count, char **words) {
  int provided, rank;
  MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (count != 3 || provided != MPI_THREAD_MULTIPLE) return MPI_Finalize(), 77;
  how = words[1];
  if (rank == 0) {
    pthread_t threads[2];
    for (size_t i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, take_one, (void *)i);
    for (size_t i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    FILE *file = fopen(words[2], "w");
    fprintf(file, "%d %d\n", got[0], got[1]);
    fclose(file);
  } else {
    send_two();
  }
  return MPI_Finalize();
}
