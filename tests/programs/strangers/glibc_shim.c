/* In place of what the C library makes by itself, by a system call that nobody stands before: the same by calls of a program. Most of
   glibc's tests make their files so, and none of them would be served otherwise. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int make_named(char *template, int suffix, int flags) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  static unsigned turn;
  size_t length = strlen(template);
  if (length < 6 + (size_t)suffix) {
    errno = EINVAL;
    return -1;
  }
  char *letter = template + length - 6 - suffix;
  for (int attempt = 0; attempt < 10000; ++attempt) {
    unsigned value = (unsigned)getpid() * 2654435761u + ++turn * 40503u;
    for (int i = 0; i < 6; ++i, value = value / 36 + (value % 36) * 119304647u) letter[i] = letters[value % 36];
    int fd = open(template, flags | O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

int mkstemp(char *template) { return make_named(template, 0, 0); }
int mkstemp64(char *template) { return make_named(template, 0, 0); }
int mkostemp(char *template, int flags) { return make_named(template, 0, flags); }
int mkstemps(char *template, int suffix) { return make_named(template, suffix, 0); }

FILE *tmpfile(void) {
  const char *place = getenv("TMPDIR");
  char path[4096];
  snprintf(path, sizeof path, "%s/tmpfXXXXXX", place ? place : ".");
  int fd = make_named(path, 0, 0);
  if (fd < 0) return NULL;
  FILE *file = fdopen(fd, "w+");
  if (file == NULL || unlink(path) != 0) {
    close(fd);
    return NULL;
  }
  return file;
}
FILE *tmpfile64(void) { return tmpfile(); }

/* The support library asks by a call that goes around the C library's. */
_Bool support_path_support_time64_value(const char *path, long long access, long long modified) {
  (void)path, (void)access, (void)modified;
  return 1;
}

/* There is no build of glibc beside these programs. */
const char support_srcdir_root[] = ".";
const char support_objdir_root[] = ".";
