/* What a program does that its replicas must do as one: replicas WHAT [FILE]. Without MPI; see test_replicas.py. Here: with names and files. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "of_team.h"
#include "replicas.h"

static void say(const char *what, int answer) { printf("%s %s\n", what, answer >= 0 ? "ok" : strerror(errno)); }

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

/* Written by the C library itself, in pieces that it chooses. */
static int reopens(const char *path) {
  struct stat state;
  if (!freopen(path, "w", stdout)) return 1;
  for (int i = 0; i < 50000; ++i) {
    printf("line %d\n", i);
    if (i % 10000 != 0) continue;
    if (fflush(stdout) != 0 || stat(path, &state) != 0) return 1;
    printf("%ld bytes\n", (long)state.st_size);
  }
  return 0;
}

/* Natively the kernel has what was written. */
static int crash_in_file(const char *path) {
  int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
  return write(fd, "written\n", 8) == 8 ? raise(SIGSEGV) : 1;
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

/* Little that is read by asking for much, as Fortran's buffers do, and written over. */
static int slowgreedy(const char *path) {
  static char block[131072];
  enum { BYTES = 800 };
  int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0644);
  for (int i = 0; i < 60; ++i) {
    ssize_t got = pread(fd, block, sizeof block, 0);
    if (got != (i == 0 ? 0 : BYTES) || (i > 0 && block[0] != 'a' + (i - 1) % 26)) return 1;
    memset(block, 'a' + i % 26, BYTES);
    if (pwrite(fd, block, BYTES, 0) != BYTES) return 1;
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

/* One replica comes later than the other, by what no replica hears of. */
static int is_first(void) {
  static int round = 0;
  char token[32];
  const struct timespec a_while = {0, 200000000};
  snprintf(token, sizeof token, "token%d", ++round);
  if (syscall(SYS_mkdir, token, 0777) == 0) return 1;
  syscall(SYS_nanosleep, &a_while, NULL);
  return 0;
}

/* The one that was first changes the world behind the other's back. */
static void change(int first, const char *path) {
  if (!first) return;
  int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (syscall(SYS_write, fd, "more", 4L) == 4) syscall(SYS_close, fd);
}

static void say_state(FILE *out, const char *what, int answer, const struct stat *state) {
  fprintf(out, "%s %d: %ld bytes, %ld.%09ld\n", what, answer, (long)state->st_size, (long)state->st_mtim.tv_sec, state->st_mtim.tv_nsec);
}

static FILE *walked;
static int visit(const char *path, const struct stat *state, int kind, struct FTW *where) {
  fprintf(walked, "walk %s %d %d %ld\n", path + where->base, kind, where->level, kind == FTW_F ? (long)state->st_size : 0);
  return 0;
}
static int look(const char *path, const struct stat *state, int kind) {
  if (kind == FTW_F) fprintf(walked, "%s has %ld bytes\n", path, (long)state->st_size);
  return 0;
}

/* Questions whose answers change in between. */
static int asks(const char *path) {
  FILE *out = fopen(path, "w"), *file;
  struct stat state;
  struct dirent *entry, **entries;
  glob_t found;
  int seen = open("seen", O_RDONLY), first = is_first(), answer = stat("seen", &state);
  change(first, "seen");
  say_state(out, "stat", answer, &state);
  first = is_first(), answer = fstat(seen, &state);
  change(first, "seen");
  say_state(out, "fstat", answer, &state);
  first = is_first(), answer = access("appears1", R_OK);
  fprintf(out, "access %d %s\n", answer, answer ? strerror(errno) : "");
  change(first, "appears1");
  first = is_first(), answer = lstat("appears2", &state);
  fprintf(out, "lstat %d %s\n", answer, answer ? strerror(errno) : "");
  change(first, "appears2");
  first = is_first(), answer = open("appears3", O_RDONLY);
  fprintf(out, "open %d %s\n", answer < 0, answer < 0 ? strerror(errno) : "");
  change(first, "appears3");
  first = is_first(), file = fopen("appears4", "r");
  fprintf(out, "fopen %d %s\n", !file, !file ? strerror(errno) : "");
  change(first, "appears4");
  first = is_first();
  DIR *directory = opendir("many");
  long second = 0;
  for (int i = 0; (entry = readdir(directory)); ++i) {
    fprintf(out, "entry %s %d %lu\n", entry->d_name, entry->d_type, (unsigned long)entry->d_ino);
    if (i == 0) second = telldir(directory);
  }
  change(first, "many/more1");
  seekdir(directory, second);
  entry = readdir(directory);
  fprintf(out, "the second is %s\n", entry ? entry->d_name : "none");
  rewinddir(directory);
  for (answer = 0; readdir(directory);) ++answer;
  fprintf(out, "%d entries, %d\n", answer, closedir(directory));
  first = is_first(), answer = scandir("many", &entries, NULL, alphasort);
  change(first, "many/more2");
  for (int i = 0; i < answer; ++i) fprintf(out, "scan %s\n", entries[i]->d_name);
  first = is_first(), answer = glob("many/m*", 0, NULL, &found);
  change(first, "many/more3");
  for (size_t i = 0; answer == 0 && i < found.gl_pathc; ++i) fprintf(out, "glob %s\n", found.gl_pathv[i]);
  walked = out;
  first = is_first(), answer = nftw("many/", visit, 8, FTW_PHYS | FTW_DEPTH);
  change(first, "many/more4");
  first = is_first(), answer += ftw("many", look, 8);
  change(first, "many/more5");
  fprintf(out, "%d walks have failed\n", answer);
  first = is_first();
  fprintf(out, "opendir %s\n", opendir("appears5") ? "ok" : strerror(errno));
  if (first) syscall(SYS_mkdir, "appears5", 0777);
  return fclose(out);
}

/* How much room there is: it becomes less in between. */
static int space(const char *path) {
  FILE *out = fopen(path, "w");
  struct statvfs all;
  struct statfs kernel;
  const char *const names[] = {"statvfs", "fstatvfs", "statfs", "fstatfs"};
  const int directory = open(".", O_RDONLY | O_DIRECTORY);
  for (int i = 0; i < 4; ++i) {
    char file[32];
    const int first = is_first();
    const int answer = i == 0 ? statvfs(".", &all) : i == 1 ? fstatvfs(directory, &all) : i == 2 ? statfs(".", &kernel) : fstatfs(directory, &kernel);
    snprintf(file, sizeof file, "filler%d", i);
    const int fd = first ? (int)syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT, 0644) : -1;
    if (fd >= 0) syscall(SYS_fallocate, fd, 0, 0L, 8L << 20);
    fprintf(out, "%s %d %020lu %020lu\n", names[i], answer, (unsigned long)(i < 2 ? all.f_bfree : kernel.f_bfree),
            (unsigned long)(i < 2 ? all.f_ffree : kernel.f_ffree));
    fflush(out);
  }
  return fclose(out);
}

/* What is known about a file beside its content: a second time it would be an error, or undo what came in between. */
static int attributes(const char *path) {
  char directory[] = "made.XXXXXX", name[] = "free.XXXXXX", file[64];
  int fd = open(path, O_CREAT | O_RDWR, 0644), first = is_first();
  say("chmod", chmod(path, 0600));
  if (first) syscall(SYS_fchmodat, AT_FDCWD, path, 0640);
  first = is_first();
  say("fchmod", fchmod(fd, 0400));
  if (first) syscall(SYS_fchmodat, AT_FDCWD, path, 0440);
  say("utimensat", utimensat(AT_FDCWD, path, (struct timespec[2]){{1, 0}, {2, 0}}, 0));
  say("utimensat again", utimensat(AT_FDCWD, path, (struct timespec[2]){{getpid(), UTIME_OMIT}, {2, 0}}, 0));
  say("futimens", futimens(fd, (struct timespec[2]){{getpid(), UTIME_OMIT}, {2, 0}}));
  say("chown", chown(path, (uid_t)-1, getegid()));
  say("setxattr", setxattr(path, "user.one", "value", 5, XATTR_CREATE));
  say("setxattr again", setxattr(path, "user.one", "other", 5, XATTR_CREATE));
  say("removexattr", removexattr(path, "user.one"));
  say("mkdtemp", mkdtemp(directory) ? 0 : -1);
  snprintf(file, sizeof file, "%s/within", directory);
  say("within", close(open(file, O_CREAT | O_WRONLY, 0644)));
  say("rename", rename(directory, "made"));
  say("mktemp", *mktemp(name) ? 0 : -1);
  say("mkdir", mkdir(name, 0777));
  say("rename", rename(name, "free"));
  return close(fd);
}

/* Asks for what it changes itself, so that another answer is found out. */
static int slowasks(const char *path) {
  FILE *file = fopen(path, "w");
  long before = 0;
  for (int i = 0; i < 60; ++i) {
    struct stat state;
    char name[32];
    int entries = 0;
    snprintf(name, sizeof name, "step%d", i);
    const int missing = access(name, F_OK);
    FILE *step = fopen(name, "r");
    if (step || close(open(name, O_CREAT | O_WRONLY, 0644)) != 0 || stat(name, &state) != 0) return 1;
    DIR *directory = opendir(".");
    while (readdir(directory)) ++entries;
    closedir(directory);
    fprintf(file, "%d %d %d %ld %ld\n", i, missing, entries, state.st_mtim.tv_nsec, before);
    before = state.st_mtim.tv_nsec;
    fflush(file);
    usleep(50000);
  }
  return fclose(file);
}

/* An input, once, and then much else. */
static int slowreads(const char *path) {
  char text[32] = "";
  FILE *in = fopen(path, "r"), *out = fopen("file", "w");
  if (!in || !fgets(text, sizeof text, in) || fclose(in) != 0) return 1;
  fprintf(out, "%s\n", text);
  fflush(out);
  for (int i = 0; i < 40; ++i) {
    usleep(50000);
    fputs("goes on\n", out);
    fflush(out);
  }
  return fclose(out);
}

/* A temporary file with the process's number in its name: no other replica knows it. */
static int own(const char *path) {
  char name[64], text[16] = "";
  struct stat state;
  snprintf(name, sizeof name, "/tmp/holdfast-own.%d", (int)getpid());
  const int missing = access(name, F_OK);
  FILE *scratch = fopen(name, "w"), *file = fopen(path, "w");
  if (!scratch || !file || fputs("scratch", scratch) < 0 || fclose(scratch) != 0 || stat(name, &state) != 0 || chmod(name, 0600) != 0) return 1;
  scratch = fopen(name, "r");
  if (!scratch || !fgets(text, sizeof text, scratch) || fclose(scratch) != 0 || unlink(name) != 0) return 1;
  fprintf(file, "%d %ld %s %d\n", missing, (long)state.st_size, text, access(name, F_OK));
  return fclose(file);
}

/* The second replica makes another call than the others where both can wait for each other: HOW is file (it writes another one), or asks (the time). */
static int parts_company(const char *how) {
  const int is_other = is_of_team('1'), writes_other = is_other && !strcmp(how, "file");
  FILE *one = fopen("one", "w"), *two = fopen("two", "w");
  fputs("the same\n", one), fflush(one);
  if (is_other && !strcmp(how, "asks")) (void)time(NULL);
  fputs("elsewhere\n", writes_other ? two : one), fflush(writes_other ? two : one);
  return fclose(one) || fclose(two);
}

static void *writes_late(void *path) {
  struct timespec begun, now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &begun);
  now = begun;
  while (is_of_team(*(char *)path) && now.tv_sec < begun.tv_sec + 4)
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now); /* the kernel's, so it computes */
  FILE *out = fopen(path, "w");
  fputs("late\n", out);
  return fclose(out) == 0 ? path : NULL;
}

/* Two threads write a file each, their first. In either replica another one of them is late. */
static int late_threads(void) {
  pthread_t threads[2];
  void *done[2];
  static char zero[] = "0", one[] = "1";
  if (pthread_create(&threads[0], NULL, writes_late, zero) != 0 || pthread_create(&threads[1], NULL, writes_late, one) != 0) return 1;
  return pthread_join(threads[0], &done[0]) != 0 || pthread_join(threads[1], &done[1]) != 0 || !done[0] || !done[1];
}

/* The second replica alone has no descriptor left to open a file with: HOW is r or w. */
static int alone(const char *path, const char *how) {
  FILE *out = fopen("out", "w");
  const struct rlimit none = {3, 1024};
  if (is_of_team('1')) setrlimit(RLIMIT_NOFILE, &none);
  int fd = *how == 'r' ? open(path, O_RDONLY) : open(path, O_CREAT | O_WRONLY, 0644);
  fprintf(out, "opened %d\n", fd >= 0);
  return fclose(out);
}

/* A file that somebody else changes in the meantime, and a named pipe. */
static int control(const char *path) {
  char text[64];
  FILE *out = fopen("file", "w");
  const int is_slow = is_of_team('1');
  for (int i = 0; i < 60; ++i) {
    if (is_slow) syscall(SYS_nanosleep, &(struct timespec){0, 12000000}, NULL);
    FILE *in = fopen(path, "r");
    if (!in || !fgets(text, sizeof text, in) || fclose(in) != 0) return 1;
    fprintf(out, "%d %s", i, text);
    if (i % 8 == 7) fflush(out);
    syscall(SYS_nanosleep, &(struct timespec){0, 10000000}, NULL);
  }
  return fclose(out);
}

static int pipes(const char *path) {
  say("mkfifo", mkfifo(path, 0600));
  say("mkfifo again", mkfifo(path, 0600));
  say("open to write", open(path, O_WRONLY));
  say("open to read", open(path, O_RDONLY));
  say("fopen", fopen(path, "w") ? 0 : -1);
  say("unlink", unlink(path));
  return 0;
}

static int ranges(const char *path) {
  int fd = open(path, O_CREAT | O_RDWR, 0600);
  for (int i = 0; i < 2; ++i) {
    say("insert", fallocate(fd, FALLOC_FL_INSERT_RANGE, 0, 4096));
    say("collapse", fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 4096));
  }
  say("write", write(fd, "kept", 4) == 4 ? 0 : -1);
  return close(fd);
}

/* A file of each replica's own. The teams named have full disks. */
static int fills(const char *free_disk, const char *full_disk, const char *teams, const char *how) {
  char path[512], block[4096];
  int answer = -1;
  while (*teams && !is_of_team(*teams)) ++teams;
  snprintf(path, sizeof path, "%s%.1s/scratch.%d", *teams ? full_disk : free_disk, teams, (int)getpid());
  memset(block, 'x', sizeof block);
  errno = 0;
  if (!strcmp(how, "stream")) {
    FILE *file = fopen(path, "w");
    if (!file) return 1;
    for (answer = 0; answer == 0;) {
      if (fwrite(block, sizeof block, 1, file) != 1) answer = -1;
      else if (ftell(file) >= 64 * (long)sizeof block) break;
    }
    if (fclose(file) != 0) answer = -1;
  } else {
    int fd = open(path, O_CREAT | O_RDWR, 0600);
    if (fd < 0) return 1;
    if (!strcmp(how, "allocate")) answer = -(errno = posix_fallocate(fd, 0, 1 << 18));
    for (int i = 0; i < 64 && strcmp(how, "allocate"); ++i)
      for (size_t left = sizeof block; left > 0; left -= (size_t)answer)
        if ((answer = (int)write(fd, block, left)) <= 0) break;
    close(fd);
  }
  const int error = errno;
  FILE *out = fopen("out", "w");
  fprintf(out, "%s\n", answer >= 0 ? "written" : strerror(error));
  unlink(path);
  return fclose(out);
}

int main(int count, char **words) {
  const char *what = count > 1 ? words[1] : "", *path = count > 2 ? words[2] : "file";
  int answer = run_clocks(what, path);
  if (answer == is_another) answer = run_memory(what, path);
  if (answer != is_another) return answer;
  if (!strcmp(what, "own")) return own(path);
  if (!strcmp(what, "control")) return control(path);
  if (!strcmp(what, "pipes")) return pipes(path);
  if (!strcmp(what, "ranges")) return ranges(path);
  if (!strcmp(what, "parts_company")) return parts_company(path);
  if (!strcmp(what, "alone") && count > 3) return alone(path, words[3]);
  if (!strcmp(what, "fills") && count > 5) return fills(path, words[3], words[4], words[5]);
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
  if (!strcmp(what, "slowgreedy")) return slowgreedy(path);
  if (!strcmp(what, "bigblocks") && count > 4) return bigblocks(path, atoi(words[3]), atoi(words[4]));
  if (!strcmp(what, "slowwrites")) return slowwrites(path);
  if (!strcmp(what, "differ")) return differ(path);
  if (!strcmp(what, "differ_often")) return differ_often(path);
  if (!strcmp(what, "differ_in_length")) return differ_in_length(path);
  if (!strcmp(what, "readers")) return readers(path);
  if (!strcmp(what, "writers")) return writers(path);
  if (!strcmp(what, "late_threads")) return late_threads();
  if (!strcmp(what, "asks")) return asks(path);
  if (!strcmp(what, "space")) return space(path);
  if (!strcmp(what, "slowasks")) return slowasks(path);
  if (!strcmp(what, "slowreads")) return slowreads(path);
  if (!strcmp(what, "attributes")) return attributes(path);
  if (!strcmp(what, "crash")) return raise(SIGSEGV);
  if (!strcmp(what, "reopens")) return reopens(path);
  if (!strcmp(what, "crash_in_file")) return crash_in_file(path);
  if (!strcmp(what, "exit")) return atoi(path);
  return 2;
}
