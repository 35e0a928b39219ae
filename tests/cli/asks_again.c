/* A thread asks the time, once in team 0 and once more in the others, as one may that asks until it is ended: asks_again FILE. The first thread waits for it
 * and then opens the file. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "of_team.h"

static void *ask(void *given) {
  struct timespec now;
  for (int left = is_of_team('0') ? 1 : 2; left > 0; --left) clock_gettime(CLOCK_MONOTONIC, &now);
  return given;
}

int main(int count, char **words) {
  struct timespec now;
  pthread_t thread;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (count != 2 || pthread_create(&thread, NULL, ask, NULL) != 0) return 2;
  pthread_join(thread, NULL);
  FILE *file = fopen(words[1], "w");
  return file == NULL || fclose(file) != 0;
}
