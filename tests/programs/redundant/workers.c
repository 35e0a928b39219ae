/* A master and its workers: workers FILE [TASKS]. Who is given what, and whose result comes when, is the network's choice.
 *
 * The master asks who has something to say (MPI_Iprobe), takes results from anybody, and writes a line for each as it comes. Workers wait for whichever
 * of two receives is there first (MPI_Waitany). The last line has the number of polls that found nothing, so replicas must agree on those, too. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { task_tag = 1, urgent_tag = 2, result_tag = 3 };
static int tasks = 60;

static long worth(int task) {
  long value = task;
  for (int i = 0; i < 1000; ++i) value = (value * 6364136223846793005L + 1442695040888963407L) >> 1;
  return value;
}

static void work(int rank) {
  int task[2];
  MPI_Request requests[2];
  for (int i = 0; i < 2; ++i) MPI_Irecv(&task[i], 1, MPI_INT, 0, i == 0 ? task_tag : urgent_tag, MPI_COMM_WORLD, &requests[i]);
  for (;;) {
    int which;
    MPI_Waitany(2, requests, &which, MPI_STATUS_IGNORE);
    const int mine = task[which];
    if (mine < 0) break;
    usleep((unsigned)(20000 + mine * 7919 % 30000 * rank));
    long result[2] = {mine, worth(mine)};
    MPI_Send(result, 2, MPI_LONG, 0, result_tag, MPI_COMM_WORLD);
    MPI_Irecv(&task[which], 1, MPI_INT, 0, which == 0 ? task_tag : urgent_tag, MPI_COMM_WORLD, &requests[which]);
  }
  for (int i = 0; i < 2; ++i)
    if (requests[i] != MPI_REQUEST_NULL) MPI_Cancel(&requests[i]), MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
}

static void give(int *next, int to) {
  const int task = *next < tasks ? (*next)++ : -1;
  MPI_Send(&task, 1, MPI_INT, to, task % 5 == 0 ? urgent_tag : task_tag, MPI_COMM_WORLD);
}

static void lead(int ranks, const char *path) {
  FILE *file = fopen(path, "w");
  int next = 0, there = 0;
  long polls = 0;
  for (int to = 1; to < ranks; ++to) give(&next, to);
  for (int done = 0; done < tasks;) {
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, result_tag, MPI_COMM_WORLD, &there, &status);
    if (!there) {
      ++polls, usleep(5000);
      continue;
    }
    long result[2];
    MPI_Recv(result, 2, MPI_LONG, MPI_ANY_SOURCE, result_tag, MPI_COMM_WORLD, &status);
    fprintf(file, "task %ld of rank %d: %ld\n", result[0], status.MPI_SOURCE, result[1]);
    if (++done % 10 == 0) fflush(file);
    give(&next, status.MPI_SOURCE);
  }
  fprintf(file, "%d tasks, %ld polls found nothing\n", tasks, polls);
  fclose(file);
}

int main(int count, char **words) {
  int rank, ranks;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (count > 2) tasks = atoi(words[2]);
  if (rank == 0) lead(ranks, words[1]);
  else work(rank);
  return MPI_Finalize();
}
