/* Where memory lies, which a program may sort by: it depends on all that was allocated before, and so on what was asked between two allocations. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "replicas.h"

static void ask(int what) {
  struct timespec now;
  struct stat state;
  char bytes[16];
  int fd;
  switch (what) {
    case 0: clock_gettime(CLOCK_REALTIME, &now); break;
    case 1: (void)!getrandom(bytes, sizeof bytes, 0); break;
    case 2: stat("/etc/passwd", &state); break;
    case 3: stat("nowhere", &state); break;
    case 4:
      fd = open("/etc/passwd", O_RDONLY);
      (void)!read(fd, bytes, sizeof bytes);
      close(fd);
      break;
    case 5:
      fd = open("written", O_CREAT | O_WRONLY | O_APPEND, 0644);
      (void)!write(fd, "a line\n", 7);
      close(fd);
      break;
    case 6: unlink("written"); break;
    case 7: rename("nowhere", "elsewhere"); break;
  }
}

static void *where_a_stack_is(void *into) {
  *(uintptr_t *)into = (uintptr_t)&into;
  return NULL;
}

/* From small blocks to those that are mappings of their own; every third one is given back. */
static int memory(const char *path) {
  uint64_t places = 0;
  void *last = NULL;
  for (int round = 0; round < 200; ++round) {
    ask(round % 8);
    for (int k = 0; k < 14; ++k) {
      void *block = malloc((size_t)30 << k);
      places = places * 1000003 + (uintptr_t)block;
      free(last);
      last = k % 3 ? NULL : block;
    }
    uintptr_t stack = 0;
    pthread_t thread;
    if (round % 50 == 0 && pthread_create(&thread, NULL, where_a_stack_is, &stack) == 0) pthread_join(thread, NULL);
    places = places * 1000003 + stack;
  }
  FILE *out = fopen(path, "w");
  fprintf(out, "%llx\n", (unsigned long long)places);
  return fclose(out);
}

int run_memory(const char *what, const char *path) { return strcmp(what, "memory") ? is_another : memory(path); }
