/* What a program does that its replicas must do as one: replicas WHAT [FILE]. Without MPI; see test_replicas.py. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void say(const char *what, int answer) { printf("%s %s\n", what, answer >= 0 ? "ok" : strerror(errno)); }

/* All that differs from process to process, where nobody sees to it. */
static int clocks(const char *path) {
  FILE *file = fopen(path, "w");
  for (int i = 0; i < 200; ++i) {
    struct timespec now;
    struct timeval day;
    struct tms used;
    struct rusage usage;
    unsigned char random[16], entropy[8];
    clock_gettime(CLOCK_MONOTONIC, &now);
    gettimeofday(&day, NULL);
    clock_t since = times(&used);
    getrusage(RUSAGE_SELF, &usage);
    if (getrandom(random, sizeof random, 0) != sizeof random || getentropy(entropy, sizeof entropy) != 0) return 1;
    fprintf(file, "%ld.%09ld %ld.%06ld %ld %ld %ld %ld %ld %d %d\n", (long)now.tv_sec, now.tv_nsec, (long)day.tv_sec, (long)day.tv_usec,
            (long)time(NULL), (long)clock(), (long)since, (long)usage.ru_utime.tv_usec, usage.ru_maxrss, random[0], entropy[0]);
  }
  return fclose(file);
}

static int echo(void) {
  char line[256];
  for (int i = 1; fgets(line, sizeof line, stdin); ++i) printf("%d: %s", i, line);
  return 0;
}

static int names(void) {
  say("mkdir", mkdir("made", 0777));
  say("mkdir again", mkdir("made", 0777));
  int fd = open("made/one", O_CREAT | O_EXCL | O_WRONLY, 0644);
  say("create", fd);
  say("create again", open("made/one", O_CREAT | O_EXCL | O_WRONLY, 0644));
  say("write", (int)write(fd, "content", 7));
  say("close", close(fd));
  say("rename", rename("made/one", "made/two"));
  say("unlink", unlink("made/one"));
  say("truncate", truncate("made/two", 4));
  say("rmdir", rmdir("made"));
  return 0;
}

/* A file that nobody may write, but for whoever has made it. */
static int readonly(const char *path) {
  struct stat state;
  umask(022);
  int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0444);
  if (fd < 0) return perror(path), 1;
  say("write", (int)write(fd, "content\n", 8));
  say("stat", fstat(fd, &state));
  printf("mode %o\n", (unsigned)state.st_mode & 07777);
  say("close", close(fd));
  say("open again", open(path, O_WRONLY));
  return 0;
}

/* Two ways to append, and reads of what was written. */
static int append(const char *path) {
  for (int i = 0; i < 5; ++i) {
    FILE *file = fopen(path, "a");
    fprintf(file, "stream %d\n", i);
    fclose(file);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0644);
    if (write(fd, "plain\n", 6) != 6 || close(fd) != 0) return 1;
  }
  char text[256] = "";
  int fd = open(path, O_RDWR);
  ssize_t got = pread(fd, text, sizeof text - 1, 0);
  printf("%zd bytes, the end at %ld, then %zd\n", got, (long)lseek(fd, 0, SEEK_END), read(fd, text, 10));
  return close(fd);
}

static void show(const char *what, int fd) {
  char text[32] = "";
  ssize_t got = pread(fd, text, sizeof text - 1, 0);
  printf("%s: %zd bytes, %s\n", what, got, text);
}

/* What loses or changes its name is the same file for those who have it open. */
static int renames(void) {
  say("mkdir", mkdir("made", 0777));
  int old = open("made/old", O_CREAT | O_RDWR, 0644), other = open("made/other", O_CREAT | O_RDWR, 0644);
  say("write", (int)write(old, "one", 3));
  say("write", (int)write(other, "another", 7));
  say("rename", rename("made/old", "made/new"));
  say("write", (int)write(old, "two", 3));
  show("renamed", old);
  say("unlink", unlink("made/other"));
  say("write", (int)write(other, "!", 1));
  show("unlinked", other);
  say("create again", close(open("made/old", O_CREAT | O_EXCL | O_WRONLY, 0644)));
  say("rename over it", rename("made/new", "made/old"));
  show("renamed again", old);
  FILE *plain = fopen("plain", "w");
  fputs("written elsewhere", plain);
  fclose(plain);
  say("rename into it", rename("plain", "made/new"));
  int moved = open("made/new", O_RDONLY);
  show("moved", moved);
  say("close", close(old) + close(other) + close(moved));
  return 0;
}

/* Names that the C library draws, and links. */
static int temporary(void) {
  char name[] = "made.XXXXXX", other[] = "made.XXXXXX.txt", wrong[] = "made.XXX";
  int fd = mkstemp(name), second = mkstemps(other, 4);
  say("write", (int)write(fd, name, strlen(name)));
  say("write", (int)write(second, other, strlen(other)));
  say("close", close(fd) + close(second));
  say("wrong", mkstemp(wrong));
  say("rename", rename(name, "first"));
  say("rename", rename(other, "second"));
  say("link", link("first", "third"));
  say("link again", link("second", "third"));
  say("symlink", symlink("first", "fourth"));
  say("symlink again", symlink("second", "fourth"));
  printf("%s %s\n", name, other);
  return 0;
}

static int slow(const char *path) {
  FILE *file = fopen(path, "w");
  for (int i = 0; i < 60; ++i) {
    fprintf(file, "line %d\n", i);
    fflush(file);
    printf("printed %d\n", i);
    if (i % 7 == 0) fflush(stdout);
    usleep(50000);
  }
  return fclose(file);
}

/* The time and a random number, and both once more in the next line: a replica that is told others is found out. */
static int slowclocks(const char *path) {
  FILE *file = fopen(path, "w");
  unsigned random = 0, before = 0;
  for (int i = 0; i < 60; ++i) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    before = random;
    if (getrandom(&random, sizeof random, 0) != sizeof random) return 1;
    fprintf(file, "%d %ld %u %u\n", i, (long)now.tv_sec * 1000 + now.tv_nsec / 1000000, random, before);
    fflush(file);
    usleep(50000);
  }
  return fclose(file);
}

/* Each state under a name of its own first, as checkpoints are written, and the one before is read. */
static int slowrenames(const char *path) {
  char text[64] = "nothing";
  for (int i = 0; i < 60; ++i) {
    FILE *file = fopen("state.new", "w");
    fprintf(file, "state %d after %s", i, text[0] == 'n' ? text : "another");
    if (fclose(file) != 0 || rename("state.new", path) != 0) return 1;
    file = fopen(path, "r+");
    if (!file || !fgets(text, sizeof text, file) || fclose(file) != 0) return 1;
    printf("%s\n", text);
    usleep(50000);
  }
  return 0;
}

/* Much that is read, and written over. */
static int slowblocks(const char *path) {
  static char block[100000];
  int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0644);
  for (int i = 0; i < 60; ++i) {
    if (pread(fd, block, sizeof block, 0) < 0) return 1;
    memset(block, 'a' + i % 26, sizeof block);
    if (pwrite(fd, block, sizeof block, 0) != sizeof block) return 1;
    usleep(50000);
  }
  return close(fd);
}

/* Blocks that are worth being shared out, one over the other, and small pieces between them; so many of them, and a pause after each. Now and then it
   is one through a second descriptor, or what was written is read. */
static int bigblocks(const char *path, int count, int pause_ms) {
  static char block[400000];
  unsigned random = 1;
  int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0644);
  for (int i = 0; i < count; ++i) {
    random = random * 1103515245 + 12345;
    size_t bytes = i % 10 == 4 ? 700 : 100000 + random % 300000;
    off_t at = (off_t)(random / 7 % 900000);
    for (size_t j = 0; j < bytes; ++j) block[j] = (char)(i * 31 + (int)(j / 100));
    int other = i % 8 == 7 ? open(path, O_WRONLY) : fd;
    if (pwrite(other, block, bytes, at) != (ssize_t)bytes || (other != fd && close(other) != 0)) return 1;
    if (i % 16 == 15 && pread(fd, block, 1000, at) != 1000) return 1;
    usleep((useconds_t)pause_ms * 1000);
  }
  struct stat state;
  if (fstat(fd, &state) != 0) return 1;
  printf("%ld bytes\n", (long)state.st_size);
  return close(fd);
}

/* Asks for the time again and again, and then says that it has come this far. */
static int polls(const char *path) {
  const time_t begun = time(NULL);
  FILE *file = fopen(path, "w");
  fprintf(file, "begun\n");
  fflush(file);
  while (time(NULL) < begun + 8) continue;
  fprintf(file, "ended\n");
  return fclose(file);
}

/* What no call writes, once and then again and again. */
static int slowwrites(const char *how) {
  int fd = open("file", O_CREAT | O_RDWR, 0644), failed = 0;
  if (write(fd, "begun\n", 6) != 6) return 1;
  if (!strcmp(how, "map")) {
    char *page = mmap(NULL, 6, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    failed = page == MAP_FAILED || munmap(page, 6) != 0;
  } else if (!strcmp(how, "command")) {
    failed = system("exit 0") != 0;
  } else {
    pid_t child = fork();
    if (child == 0) _exit(0);
    failed = child < 0 || waitpid(child, &failed, 0) != child;
  }
  for (int i = 0; i < 40; ++i) {
    if (pwrite(fd, "again\n", 6, 0) != 6) return 1;
    usleep(50000);
  }
  return failed;
}

/* Many answers in a row, of which each counts. */
static int manyclocks(const char *path) {
  unsigned long sum = 0;
  FILE *file = fopen(path, "w");
  fprintf(file, "begun\n");
  fflush(file);
  for (int i = 0; i < 600000; ++i) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    sum = sum * 31 + (unsigned long)now.tv_nsec;
  }
  fprintf(file, "%lu\n", sum);
  return fclose(file);
}

static int differ(const char *path) {
  FILE *file = fopen(path, "w");
  fprintf(file, "the same in all\n");
  fflush(file);
  fprintf(file, "process %d\n", (int)getpid());
  return fclose(file);
}

/* By what no replica hears of: who is first to make a directory by the system's own call. */
static int differ_in_length(const char *path) {
  FILE *file = fopen(path, "w");
  fputs(syscall(SYS_mkdir, "token", 0777) == 0 ? "first\n" : "not first\n", file);
  fflush(file);
  fputs("end\n", file);
  return fclose(file);
}

/* Threads that read one input, each by opens of its own, at whatever moments. */
static const char *input;
static void *read_input(void *sum) {
  for (int i = 0; i < 50; ++i) {
    unsigned char block[64];
    const int fd = open(input, O_RDONLY);
    FILE *file = fopen(input, "r");
    if (fd < 0 || !file || pread(fd, block, sizeof block, i * 16) != sizeof block || fgetc(file) != 'a') return NULL;
    for (size_t j = 0; j < sizeof block; ++j) *(unsigned long *)sum += block[j] * (j + (size_t)i);
    if (close(fd) != 0 || fclose(file) != 0) return NULL;
  }
  return sum;
}
static int readers(const char *path) {
  pthread_t threads[4];
  unsigned long sums[4] = {0};
  input = path;
  FILE *file = fopen(path, "w");
  for (int i = 0; i < 2000; ++i) fputc('a' + i % 26, file);
  fclose(file);
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, read_input, &sums[i]);
  for (int i = 0; i < 4; ++i) {
    void *done = NULL;
    if (pthread_join(threads[i], &done) != 0 || !done) return 1;
  }
  printf("%lu %lu %lu %lu\n", sums[0], sums[1], sums[2], sums[3]);
  return 0;
}

/* Two threads that open and write one file that a third one has made, one after the other: by what no replica hears of, another one is first in each. */
static void *write_one(void *line) {
  const int fd = open(input, O_CREAT | O_WRONLY, 0644);
  if (pwrite(fd, line, 5, ((char *)line)[4] == '1' ? 0 : 5) != 5 || close(fd) != 0) return NULL;
  return line;
}
static int writers(const char *path) {
  char lines[2][6] = {"line1", "line2"};
  const int first = syscall(SYS_mkdir, "token", 0777) == 0;
  close(open(path, O_CREAT | O_WRONLY, 0644));
  input = path;
  for (int i = 0; i < 2; ++i) {
    pthread_t thread;
    void *done = NULL;
    if (pthread_create(&thread, NULL, write_one, lines[i ^ first]) != 0 || pthread_join(thread, &done) != 0 || !done) return 1;
  }
  return 0;
}

/* Of one length in all. */
static int differ_often(const char *path) {
  FILE *file = fopen(path, "w");
  for (int i = 0; i < 3; ++i) {
    fprintf(file, "process %09d\n", (int)getpid());
    fflush(file);
  }
  return fclose(file) == 0 ? 7 : 1;
}

/* The same, for some time. */
static int slowdiffer(const char *path) {
  FILE *file = fopen(path, "w");
  for (int i = 0; i < 60; ++i) {
    fprintf(file, "process %09d\n", (int)getpid());
    fflush(file);
    usleep(50000);
  }
  return fclose(file);
}

int main(int count, char **words) {
  const char *what = count > 1 ? words[1] : "", *path = count > 2 ? words[2] : "file";
  if (!strcmp(what, "clocks")) return clocks(path);
  if (!strcmp(what, "slowdiffer")) return slowdiffer(path);
  if (!strcmp(what, "echo")) return echo();
  if (!strcmp(what, "names")) return names();
  if (!strcmp(what, "renames")) return renames();
  if (!strcmp(what, "temporary")) return temporary();
  if (!strcmp(what, "readonly")) return readonly(path);
  if (!strcmp(what, "append")) return append(path);
  if (!strcmp(what, "slow")) return slow(path);
  if (!strcmp(what, "slowrenames")) return slowrenames(path);
  if (!strcmp(what, "slowblocks")) return slowblocks(path);
  if (!strcmp(what, "bigblocks") && count > 4) return bigblocks(path, atoi(words[3]), atoi(words[4]));
  if (!strcmp(what, "slowclocks")) return slowclocks(path);
  if (!strcmp(what, "polls")) return polls(path);
  if (!strcmp(what, "manyclocks")) return manyclocks(path);
  if (!strcmp(what, "slowwrites")) return slowwrites(path);
  if (!strcmp(what, "differ")) return differ(path);
  if (!strcmp(what, "differ_often")) return differ_often(path);
  if (!strcmp(what, "differ_in_length")) return differ_in_length(path);
  if (!strcmp(what, "readers")) return readers(path);
  if (!strcmp(what, "writers")) return writers(path);
  if (!strcmp(what, "crash")) return raise(SIGSEGV);
  if (!strcmp(what, "exit")) return atoi(path);
  return 2;
}
