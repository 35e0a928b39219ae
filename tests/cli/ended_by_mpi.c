/* Both replicas have written, and in team 0 a thread that MPI's library has started ends the process, as Open MPI's does whose launcher has gone. Its twin
 * then goes on: ended_by_mpi FILE. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "of_team.h"

int starts_for_mpi(pthread_t *thread, void *(*run)(void *), void *given);

static void *end(void *given) {
  _exit(3);
  return given;
}

int main(int count, char **words) {
  if (count != 2) return 77;
  const int fd = open(words[1], O_WRONLY | O_CREAT, 0644);
  if (fd < 0 || write(fd, "both\n", 5) != 5) return 1;
  if (is_of_team('0')) {
    pthread_t thread;
    if (starts_for_mpi(&thread, end, NULL) == 0) pthread_join(thread, NULL);
    return 2;
  }
  if (write(fd, "one\n", 4) != 4) return 1;
  return close(fd);
}
