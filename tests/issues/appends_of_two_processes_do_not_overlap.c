/* Processes that append records of one size to one file: each record has a place of its own, whole, and nothing is missing.
 *
 *   PATH write WHO COUNT MEETING   by write(2) on a descriptor with O_APPEND
 *   PATH synced WHO COUNT MEETING  the same, with an fsync(2) after every tenth
 *   PATH forked WHO COUNT MEETING  the same by two processes that share the descriptor; WHO 0 alone does that
 *   PATH stream WHO COUNT MEETING  by stdio, opened with "a", flushed after each record
 *   PATH check PROCESSES COUNT     every record of every process is there once, and nothing else; each one's own stand in its order
 *
 * Processes that have opened the file wait for one another by files named MEETING.WHO: WHO 0 and 1. */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pattern.h"

enum { record_bytes = 733, most_processes = 8 };

static void make_record(unsigned char *record, unsigned who, unsigned number) {
  memset(record, 0, record_bytes);
  pattern_fill(record, who * 100003u + number, 0, record_bytes);
  record[0] = (unsigned char)(who + 1);
  memcpy(record + 1, &number, sizeof number);
}

static void meet(const char *meeting, int who) {
  char name[4096];
  struct stat there;
  snprintf(name, sizeof name, "%s.%d", meeting, who);
  fclose(fopen(name, "w"));
  snprintf(name, sizeof name, "%s.%d", meeting, 1 - who);
  while (stat(name, &there) != 0) usleep(1000);
}

static int fail(const char *what) {
  perror(what);
  return 1;
}

static int append_all(int fd, int who, unsigned count, unsigned sync_every) {
  unsigned char record[record_bytes];
  for (unsigned i = 0; i < count; i++) {
    make_record(record, who, i);
    if (write(fd, record, sizeof record) != record_bytes) return fail("write");
    if (sync_every && i % sync_every == 0 && fsync(fd) != 0) return fail("fsync");
  }
  return close(fd) == 0 ? 0 : fail("close");
}

static int append_by_write(const char *path, int who, unsigned count, const char *meeting, unsigned sync_every) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (fd < 0) return fail(path);
  meet(meeting, who);
  return append_all(fd, who, count, sync_every);
}

static int append_by_children(const char *path, int who, unsigned count) {
  if (who != 0) return 0;
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (fd < 0) return fail(path);
  const pid_t child = fork();
  if (child == 0) _exit(append_all(fd, 1, count, 0));
  const int failed = append_all(fd, 0, count, 0);
  int status = 1;
  return waitpid(child, &status, 0) == child && status == 0 ? failed : fail("the child");
}

static int append_by_stream(const char *path, int who, unsigned count, const char *meeting) {
  unsigned char record[record_bytes];
  FILE *stream = fopen(path, "a");
  if (!stream) return fail(path);
  meet(meeting, who);
  for (unsigned i = 0; i < count; i++) {
    make_record(record, who, i);
    if (fwrite(record, sizeof record, 1, stream) != 1 || fflush(stream) != 0) return fail("fwrite");
  }
  return fclose(stream) == 0 ? 0 : fail("fclose");
}

static int check(const char *path, unsigned processes, unsigned count) {
  unsigned char got[record_bytes], expected[record_bytes];
  unsigned next[most_processes] = {0}, damaged = 0, missing = 0, records = 0;
  FILE *file = fopen(path, "r");
  if (!file) return fail(path);
  for (size_t bytes; (bytes = fread(got, 1, sizeof got, file)) > 0; records++) {
    const unsigned who = got[0] - 1u;
    if (bytes == sizeof got && who < processes) {
      make_record(expected, who, next[who]);
      if (memcmp(got, expected, sizeof got) == 0) {
        next[who]++;
        continue;
      }
    }
    damaged++;
  }
  fclose(file);
  for (unsigned who = 0; who < processes; who++) missing += count - next[who];
  if (damaged || missing)
    fprintf(stderr, "%s: %u records instead of %u, %u of them damaged or out of order, %u missing\n", path, records, processes * count, damaged,
            missing);
  return damaged || missing ? 1 : 0;
}

int main(int argc, char **argv) {
  if (argc < 5 || (argc < 6 && strcmp(argv[2], "check") != 0)) return 2;
  const int third = atoi(argv[3]), count = atoi(argv[4]);
  if (strcmp(argv[2], "write") == 0) return append_by_write(argv[1], third, count, argv[5], 0);
  if (strcmp(argv[2], "synced") == 0) return append_by_write(argv[1], third, count, argv[5], 10);
  if (strcmp(argv[2], "forked") == 0) return append_by_children(argv[1], third, count);
  if (strcmp(argv[2], "stream") == 0) return append_by_stream(argv[1], third, count, argv[5]);
  return check(argv[1], third, count);
}
