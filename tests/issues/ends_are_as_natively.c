/* How processes end, and what of theirs is in the files then, for as_natively.py. Each case prints what it finds. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *path;

static void show(const char *what, const char *name) {
  char bytes[100];
  const int fd = open(name, O_RDONLY);
  const ssize_t got = fd < 0 ? 0 : read(fd, bytes, sizeof bytes);
  printf("%s: %.*s\n", what, (int)got, bytes);
  fflush(stdout);
  close(fd);
}

static void write_late(void) {
  const int fd = open(path, O_WRONLY | O_APPEND);
  if (write(fd, " late", 5) != 5) abort();
}

static void end(int how) {
  switch (how) {
    case 0: abort();
    case 1: raise(SIGTERM); break;
    case 2: kill(getpid(), SIGINT); break;
    case 3: raise(SIGSEGV); break;
    case 4: _exit(3);
    case 5: exit(4);
    case 6: quick_exit(5);
    case 7: at_quick_exit(write_late), quick_exit(0);
    default: _Exit(6);
  }
}

static void children_that_end(void) {
  for (int how = 0; how < 9; how++) {
    const pid_t child = fork();
    if (child == 0) {
      const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
      if (write(fd, "written", 7) == 7) end(how);
      _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("%d: %x\n", how, status);
    show("left", path);
  }
}

/* What a parent did with such files before is over when it forks. */
static void children_of_one_that_wrote(void) {
  FILE *file = fopen("first.dat", "w");
  fputs("first", file);
  fclose(file);
  children_that_end();
}

static void children_of_one_that_writes(void) {
  const int fd = open("first.dat", O_WRONLY | O_CREAT, 0644);
  if (write(fd, "first", 5) != 5) exit(1);
  children_that_end();
  close(fd);
}

static void quick_ends(void) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  printf("not flushed"), fflush(stdout);
  printf(" at all");
  if (write(fd, "written", 7) == 7) end(7);
}

/* A file could not be written as large as it is: other streams keep what was put into them. */
static void streams_beside_lost_writes(void) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const struct rlimit none = {0, RLIM_INFINITY}, all = {RLIM_INFINITY, RLIM_INFINITY};
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (write(fd, "written", 7) != 7) _exit(1);
    FILE *log = fopen("log", "w");
    fputs("a result", log);
    setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
    printf("a result on standard output\n");
    setrlimit(RLIMIT_FSIZE, &none);
    close(fd);
    setrlimit(RLIMIT_FSIZE, &all);
    exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  show("log", "log");
  unlink(path);
}

static void end_with_a_lock(int how) {
  static char *nothing[] = {"true", NULL};
  const int fd = open(path, O_RDWR | O_CREAT, 0644);
  const int lock = open("lock", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0 || lock < 0 || pwrite(fd, "written", 7, 0) != 7 || flock(lock, LOCK_EX | LOCK_NB) != 0) _exit(1);
  switch (how) {
    case 0: exit(0);
    case 1: _exit(0);
    case 2: quick_exit(0);
    case 3: raise(SIGTERM); break;
    default: execvp("true", nothing);
  }
  _exit(1);
}

/* The kernel lets a lock go with the process that had it: who has waited for its end gets it. On one processor, so that what is late is seen. */
static void locks_end_with_their_process(void) {
  cpu_set_t first;
  CPU_ZERO(&first);
  sched_getaffinity(0, sizeof first, &first);
  int processor = 0;
  while (!CPU_ISSET(processor, &first)) processor++;
  CPU_ZERO(&first);
  CPU_SET(processor, &first);
  sched_setaffinity(0, sizeof first, &first);
  for (int how = 0; how < 5; how++) {
    int refused = 0;
    for (int round = 0; round < 10; round++) {
      const pid_t child = fork();
      if (child == 0) end_with_a_lock(how);
      int status = 0;
      waitpid(child, &status, 0);
      const int lock = open("lock", O_RDWR | O_CREAT, 0644);
      refused += flock(lock, LOCK_EX | LOCK_NB) != 0;
      close(lock);
      if (status != (how == 3 ? SIGTERM : 0)) printf("%d: %x\n", how, status);
    }
    printf("%d: refused %d times\n", how, refused);
  }
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } cases[] = {{"children_of_one_that_wrote", children_of_one_that_wrote},
               {"children_of_one_that_writes", children_of_one_that_writes},
               {"quick_ends", quick_ends},
               {"locks_end_with_their_process", locks_end_with_their_process},
               {"streams_beside_lost_writes", streams_beside_lost_writes}};
  path = argv[2];
  setvbuf(stdout, NULL, _IOLBF, 0);
  alarm(30);
  const struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (size_t i = 0; argc == 3 && i < sizeof cases / sizeof *cases; i++)
    if (strcmp(cases[i].name, argv[1]) == 0) return cases[i].run(), 0;
  return 2;
}
