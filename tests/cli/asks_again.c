/* A thread asks the time, or for random numbers, once in team 0 and once more in the others: asks_again FILE time|random. The first thread waits for it and
 * then opens the file. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "of_team.h"

static int asks_time;

static void *ask(void *given) {
  struct timespec now;
  char random[8];
  for (int left = is_of_team('0') ? 1 : 2; left > 0; --left)
    if (asks_time ? clock_gettime(CLOCK_MONOTONIC, &now) != 0 : getrandom(random, sizeof random, 0) < 0) return given;
  return given;
}

int main(int count, char **words) {
  struct timespec now;
  pthread_t thread;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (count != 3) return 2;
  asks_time = strcmp(words[2], "time") == 0;
  if (pthread_create(&thread, NULL, ask, NULL) != 0) return 2;
  pthread_join(thread, NULL);
  FILE *file = fopen(words[1], "w");
  return file == NULL || fclose(file) != 0;
}
