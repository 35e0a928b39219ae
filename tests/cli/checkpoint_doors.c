// Writes a text by one of the doors by which programs open files, reads it back by another, and fails where it is not the same:
//   checkpoint_doors DOOR PATH TEXT
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void give_up(const char* what) {
  perror(what);
  exit(1);
}

static void put(int fd, const char* text) {
  if (fd < 0) give_up("open");
  const size_t half = strlen(text) / 2;
  if (write(fd, text, half) != (ssize_t)half) give_up("write");
  if (pwrite(fd, text + half, strlen(text) - half, (off_t)half) < 0) give_up("pwrite");
  if (close(fd) != 0) give_up("close");
}

static void put_through(FILE* stream, const char* text) {
  if (!stream) give_up("stream");
  if (fputs(text, stream) < 0 || fclose(stream) != 0) give_up("fputs");
}

static int by_directory(const char* path) {
  char directory[4096];
  snprintf(directory, sizeof directory, "%s", path);
  char* const slash = strrchr(directory, '/');
  *slash = '\0';
  const int at = open(directory, O_RDONLY | O_DIRECTORY);
  const int fd = openat(at, slash + 1, O_RDWR | O_CREAT | O_TRUNC, 0644);
  close(at);
  return fd;
}

static FILE* reopened(const char* first, const char* path, const char* mode) {
  FILE* const stream = fopen(first, "w");
  if (!stream || fputs("elsewhere", stream) < 0) give_up(first);
  return freopen(path, mode, stream);
}

static void write_by(const char* door, const char* path, const char* text) {
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  if (!strcmp(door, "open")) put(open(path, flags, 0644), text);
  else if (!strcmp(door, "open64")) put(open64(path, flags, 0644), text);
  else if (!strcmp(door, "creat")) put(creat(path, 0644), text);
  else if (!strcmp(door, "creat64")) put(creat64(path, 0644), text);
  else if (!strcmp(door, "openat")) put(by_directory(path), text);
  else if (!strcmp(door, "fopen")) put_through(fopen(path, "w"), text);
  else if (!strcmp(door, "fopen64")) put_through(fopen64(path, "w+"), text);
  else if (!strcmp(door, "exclusive")) put_through(fopen(path, "wx"), text);
  else if (!strcmp(door, "freopen")) put_through(reopened("elsewhere", path, "w"), text);
  else if (!strcmp(door, "freopen64")) put_through(freopen64(path, "w+", fopen("/dev/null", "r")), text);
  else if (!strcmp(door, "freopen-exclusive")) put_through(reopened("elsewhere", path, "wx"), text);
  else if (!strcmp(door, "standard-output")) put_through(freopen(path, "w", stdout), text);
  else if (!strcmp(door, "away")) {  // from the checkpoint to another file
    FILE* const stream = fopen(path, "w");
    if (!stream || fputs(text, stream) < 0) give_up("fputs");
    put_through(freopen("elsewhere", "w", stream), "elsewhere");
  } else exit(2);
}

int main(int count, char** words) {
  if (count != 4) return 2;
  write_by(words[1], words[2], words[3]);
  char got[4096] = "";
  FILE* stream = freopen(words[2], "r", stdin);
  if (!stream || !fgets(got, sizeof got, stream)) give_up("read");
  if (strcmp(got, words[3]) != 0) return fprintf(stderr, "'%s' is there\n", got), 1;
  return 0;
}
