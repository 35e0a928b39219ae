/* Asks clocks in a thread that MPI's library has started, and in one which that one starts: once in team 0, three times in the others, as threads do that
 * MPI wakes. A thread of the program's own asks as well, and writes what it is told: threads_of_mpi FILE. STARTS_OWN: by which function that one starts. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "of_team.h"

int starts_for_mpi(pthread_t *thread, void *(*run)(void *), void *given);
#ifdef STARTS_OWN
int STARTS_OWN(pthread_t *thread, void *(*run)(void *), void *given);
#else
#define STARTS_OWN(thread, run, given) pthread_create(thread, NULL, run, given)
#endif

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int asks;
static void *ask(void *given) {
  for (int i = 0; i < asks; ++i) (void)now();
  return given;
}
static void *ask_in_another(void *given) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, ask, given) == 0) pthread_join(thread, NULL);
  return ask(given);
}
static void *write_it(void *file) {
  fprintf(file, "%lld\n", now());
  return NULL;
}

int main(int count, char **words) {
  if (count != 2) return 77;
  FILE *file = fopen(words[1], "w");
  pthread_t thread;
  asks = is_of_team('0') ? 1 : 3;
  for (int i = 0; i < 3; ++i) {
    if (starts_for_mpi(&thread, ask_in_another, NULL) != 0) return 1;
    pthread_join(thread, NULL);
    if (STARTS_OWN(&thread, write_it, file) != 0) return 1;
    pthread_join(thread, NULL);
    fflush(file);
  }
  return fclose(file);
}
