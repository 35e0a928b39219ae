// Threads that are cancelled while they write.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int fd;
static void* writer(void* at) {
  char block[4096];
  memset(block, 'c', sizeof block);
  for (long i = 0;; ++i) pwrite(fd, block, sizeof block, (long)at * 1000000 + i % 50 * 4096);
}
int main(void) {
  fd = open("a.dat", O_RDWR | O_CREAT | O_TRUNC, 0644);
  for (int round = 0; round < 20; ++round) {
    pthread_t threads[3];
    for (long i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, writer, (void*)i);
    usleep(3000);
    for (int i = 0; i < 3; ++i) pthread_cancel(threads[i]);
    for (int i = 0; i < 3; ++i) {
      void* result;
      pthread_join(threads[i], &result);
      if (result != PTHREAD_CANCELED) puts("not cancelled");
    }
  }
  ftruncate(fd, 0);
  printf("%ld\n", (long)write(fd, "end", 3));
  return close(fd);
}
