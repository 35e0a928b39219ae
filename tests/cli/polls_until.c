/* A thread asks the time until it is told to end, as a watchdog does: polls_until FILE STEPS. In team 0 it asks a third as often. The first thread works in
 * steps meanwhile, and writes what the same clock says at each. So does a thread of its own at the end. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "of_team.h"

static atomic_int stop;

static long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void *watch(void *given) {
  const int pause_us = is_of_team('0') ? 3000 : 1000;
  long before = now_ns();
  while (!stop) {
    const long now = now_ns();
    if (now < before) abort();
    before = now;
    usleep((unsigned)pause_us);
  }
  return given;
}

static void *write_time(void *file) {
  fprintf(file, "the end %ld\n", now_ns());
  return NULL;
}

int main(int count, char **words) {
  pthread_t thread;
  if (count != 3 || pthread_create(&thread, NULL, watch, NULL) != 0) return 2;
  FILE *file = fopen(words[1], "w");
  if (!file) return 3;
  for (int step = 0; step < atoi(words[2]); ++step) {
    usleep(20000);
    fprintf(file, "step %d %ld\n", step, now_ns());
    fflush(file);
  }
  stop = 1;
  if (pthread_join(thread, NULL) != 0 || pthread_create(&thread, NULL, write_time, file) != 0 || pthread_join(thread, NULL) != 0) return 4;
  return fclose(file) != 0;
}
