// A file by the kernel's names for its descriptor. Prints what each call was told. usage: PROGRAM FILE
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char name[100];

static const char* by(const char* form, int fd) {
  snprintf(name, sizeof name, form, fd);
  return name;
}

static void put(const char* what, int fd, const char* text) {
  const ssize_t done = fd < 0 ? -1 : write(fd, text, strlen(text));
  printf("%s: %s %zd\n", what, fd < 0 ? strerror(errno) : "open", done);
  if (fd >= 0) printf("closed %d\n", close(fd));
}

static void show(int fd) {
  char text[400];
  const ssize_t bytes = pread(fd, text, sizeof text - 1, 0);
  text[bytes < 0 ? 0 : bytes] = '\0';
  printf("[%s]\n", text);
}

int main(int count, char** arguments) {
  if (count < 2) return 2;
  char form[40], line[100], path[PATH_MAX];
  struct stat one, other;
  const int fd = open(arguments[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (write(fd, "first\n", 6) != 6) return 3;
  put("append", open(by("/proc/self/fd/%d", fd), O_WRONLY | O_APPEND), "second\n");
  show(fd);
  snprintf(form, sizeof form, "/proc/%d/fd/%%d", getpid());
  put("over the beginning", open(by(form, fd), O_WRONLY), "FIRST");
  show(fd);
  put("exclusive", open(by("/dev/fd/%d", fd), O_WRONLY | O_CREAT | O_EXCL, 0600), "never");
  printf("access %d\n", access(by("/dev/fd/%d", fd), R_OK | W_OK));
  printf("stat %d %d\n", stat(by("/dev/fd/%d", fd), &one), fstat(fd, &other));
  const int same = one.st_ino == other.st_ino && one.st_dev == other.st_dev;
  printf("%ld bytes, %s, mode %o\n", (long)one.st_size, same ? "the same" : "another", one.st_mode);
  const ssize_t length = readlink(by("/proc/self/fd/%d", fd), path, sizeof path);
  printf("readlink %.*s\n", (int)(length < 0 ? 0 : length), path);
  printf("realpath %s\n", realpath(by("/dev/fd/%d", fd), path) ? path : strerror(errno));
  FILE* stream = fopen(by("/dev/fd/%d", fd), "r");
  printf("fopen: %s", stream && fgets(line, sizeof line, stream) ? line : "nothing\n");
  if (stream) fclose(stream);
  stream = fopen(by("/dev/fd/%d", fd), "a");
  printf("fopen to append: %d\n", stream ? fprintf(stream, "third\n") : -1);
  if (stream) fclose(stream);
  show(fd);
  printf("chmod %d\n", chmod(by("/proc/self/fd/%d", fd), 0600));
  fstat(fd, &other);
  printf("mode %o\n", other.st_mode);
  printf("truncate %d\n", truncate(by("/proc/self/fd/%d", fd), 8));
  show(fd);
  put("cut", open(by("/proc/self/fd/%d", fd), O_WRONLY | O_TRUNC), "anew\n");
  printf("by the first: %zd\n", write(fd, "behind\n", 7));
  fstat(fd, &other);
  printf("%ld bytes\n", (long)other.st_size);
  if (dup2(fd, 0) != 0) return 4;
  put("standard input", open("/dev/stdin", O_RDWR), "by 0\n");
  show(fd);
  const int read_only = open(arguments[1], O_RDONLY);
  put("one that is only read", open(by("/proc/self/fd/%d", read_only), O_WRONLY | O_APPEND), "last\n");
  unlink(arguments[1]);
  put("without a name", open(by("/proc/self/fd/%d", fd), O_WRONLY | O_APPEND), "nameless\n");
  fstat(fd, &other);
  printf("%ld bytes\n", (long)other.st_size);
  return close(fd);
}
