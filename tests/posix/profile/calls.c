/* A known number of plain file calls: calls MODE FILE [MORE]. profile_test.py has what each mode has to be counted as. */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char data[1 << 16];
static const char* path;

#define MUST(call)                          \
  do {                                      \
    if ((call) < 0) perror(#call), exit(3); \
  } while (0)
static void moved(ssize_t got, ssize_t wanted, const char* what) {
  if (got != wanted) fprintf(stderr, "%s: %zd, not %zd\n", what, got, wanted), exit(3);
}
static int make(int flags) {
  const int fd = open(path, O_CREAT | flags, 0644);
  if (fd < 0) perror(path), exit(3);
  return fd;
}

/* 10 writes of 512 bytes that follow each other, then one of each other kind; reads of them; everything else once. */
static void all(void) {
  int fd = make(O_RDWR | O_TRUNC);
  for (int i = 0; i < 10; ++i) moved(write(fd, data, 512), 512, "write");
  struct iovec two[2] = {{data, 100}, {data, 200}};
  moved(writev(fd, two, 2), 300, "writev");
  moved(pwrite(fd, data, 1000, 20000), 1000, "pwrite");
  moved(pwritev(fd, two, 2, 30000), 300, "pwritev");
  moved(pwritev2(fd, two, 2, -1, 0), 300, "pwritev2");
  MUST(lseek(fd, 0, SEEK_SET));
  for (int i = 0; i < 4; ++i) moved(read(fd, data, 256), 256, "read");
  moved(readv(fd, two, 2), 300, "readv");
  moved(pread(fd, data, 400, 20000), 400, "pread");
  moved(preadv(fd, two, 2, 0), 300, "preadv");
  MUST(lseek(fd, 0, SEEK_END));
  moved(read(fd, data, 100), 0, "read at the end");
  MUST(fsync(fd));
  MUST(fdatasync(fd));
  MUST(ftruncate(fd, 40000));
  struct stat state;
  MUST(fstat(fd, &state));
  MUST(stat(path, &state));
  MUST(access(path, R_OK));
  MUST(fchmod(fd, 0600));
  void* page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) exit(3);
  munmap(page, 4096);
  if (pread(fd, data, 1, -5) != -1) exit(3);
  MUST(close(fd));
  if (write(fd, data, 1) != -1) exit(3); /* no file's any more */
  char other[4096];
  snprintf(other, sizeof other, "%s.moved", path);
  MUST(rename(path, other));
  MUST(unlink(other));
}

/* Four numbers of one description: positions are shared; each close counts. */
static void duplicates(void) {
  int fd = make(O_WRONLY | O_TRUNC);
  int copy = dup(fd), high = fcntl(fd, F_DUPFD_CLOEXEC, 500);
  MUST(copy);
  MUST(high);
  MUST(dup2(fd, 900));
  moved(write(fd, data, 100), 100, "write");
  moved(write(copy, data, 100), 100, "write");
  MUST(close(fd));
  moved(write(high, data, 100), 100, "write");
  moved(write(900, data, 100), 100, "write");
  MUST(close(copy));
  MUST(close(high));
  MUST(close(900));
}

/* Five writes before the fork, five of the child at the shared position, five after it. */
static void forks(void) {
  int fd = make(O_WRONLY | O_TRUNC);
  for (int i = 0; i < 5; ++i) moved(write(fd, data, 1000), 1000, "write");
  const pid_t child = fork();
  MUST(child);
  if (child == 0) {
    for (int i = 0; i < 5; ++i) moved(write(fd, data, 1000), 1000, "child's write");
    _exit(0);
  }
  int status;
  MUST(waitpid(child, &status, 0));
  if (status != 0) exit(3);
  for (int i = 0; i < 5; ++i) moved(write(fd, data, 1000), 1000, "write");
  MUST(close(fd));
}

/* As a daemon does: all numbers are closed, and given anew. */
static void closes_all(int by_range) {
  int first = make(O_WRONLY | O_TRUNC);
  moved(write(first, data, 10), 10, "write");
  if (by_range) MUST(close_range(3, ~0u, 0));
  else
    for (int fd = 3; fd < 1024; ++fd) close(fd);
  int pipes[2];
  MUST(pipe(pipes)); /* has the file's number now */
  moved(write(pipes[1], data, 77), 77, "write into a pipe");
  moved(read(pipes[0], data, 77), 77, "read from a pipe");
  int second = make(O_WRONLY | O_APPEND);
  moved(write(second, data, 20), 20, "write");
  MUST(close(second));
}

static void* writes_a_part(void* part) {
  const int fd = open(path, O_WRONLY);
  if (fd < 0) exit(3);
  for (int i = 0; i < 1000; ++i) moved(pwrite(fd, data, 64, ((long)part * 1000 + i) * 64), 64, "pwrite");
  close(fd);
  return NULL;
}
static void threads(void) {
  close(make(O_WRONLY | O_TRUNC));
  pthread_t running[4];
  for (long t = 0; t < 4; ++t) pthread_create(&running[t], NULL, writes_a_part, (void*)t);
  for (int t = 0; t < 4; ++t) pthread_join(running[t], NULL);
}

/* From kernel to kernel: 5000 bytes by sendfile, 3000 by copy_file_range, into FILE.copy. */
static void kernel(void) {
  int from = make(O_RDWR | O_TRUNC);
  moved(write(from, data, 10000), 10000, "write");
  MUST(lseek(from, 0, SEEK_SET));
  char name[4096];
  snprintf(name, sizeof name, "%s.copy", path);
  int to = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);
  MUST(to);
  moved(sendfile(to, from, NULL, 5000), 5000, "sendfile");
  loff_t begin = 100, end = 5000;
  moved(copy_file_range(from, &begin, to, &end, 3000, 0), 3000, "copy_file_range");
  MUST(close(from));
  MUST(close(to));
}

/* Three writes of 1000 bytes and a read that are done later. */
static void asynchronous(void) {
  int fd = make(O_RDWR | O_TRUNC);
  for (int i = 0; i < 4; ++i) {
    struct aiocb request = {.aio_fildes = fd, .aio_buf = data, .aio_nbytes = 1000, .aio_offset = i % 3 * 1000};
    const struct aiocb* list[1] = {&request};
    MUST(i < 3 ? aio_write(&request) : aio_read(&request));
    while (aio_error(&request) == EINPROGRESS) aio_suspend(list, 1, NULL);
    moved(aio_return(&request), 1000, "aio");
  }
  MUST(close(fd));
}

/* This image writes 3 times and the next one 2, on a number that crosses the exec. */
static void executes(char** words) {
  int fd = make(O_WRONLY | O_TRUNC);
  for (int i = 0; i < 3; ++i) moved(write(fd, data, 100), 100, "write");
  char number[16];
  snprintf(number, sizeof number, "%d", fd);
  execl(words[0], words[0], "executed", path, number, NULL);
  exit(3);
}
static void executed(int fd) {
  for (int i = 0; i < 2; ++i) moved(write(fd, data, 100), 100, "write");
  MUST(close(fd));
}

static void waits(void) {
  int fd = make(O_WRONLY | O_TRUNC);
  for (int i = 0; i < 6; ++i) moved(write(fd, data, 50), 50, "write");
  puts("here");
  fflush(stdout);
  for (;;) pause();
}

int main(int count, char** words) {
  if (count < 3) return 2;
  path = words[2];
  const char* mode = words[1];
  if (!strcmp(mode, "all")) all();
  else if (!strcmp(mode, "duplicates")) duplicates();
  else if (!strcmp(mode, "forks")) forks();
  else if (!strcmp(mode, "close-each")) closes_all(0);
  else if (!strcmp(mode, "close-range")) closes_all(1);
  else if (!strcmp(mode, "threads")) threads();
  else if (!strcmp(mode, "kernel")) kernel();
  else if (!strcmp(mode, "asynchronous")) asynchronous();
  else if (!strcmp(mode, "executes")) executes(words);
  else if (!strcmp(mode, "executed") && count > 3) executed(atoi(words[3]));
  else if (!strcmp(mode, "waits")) waits();
  else return 2;
  return 0;
}
