// Descriptors, sizes, processes and limits.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;
static void say(const char* what, long value) { printf("%s %ld%s%s\n", what, value, value < 0 ? " " : "", value < 0 ? strerrorname_np(errno) : ""); }
static int other;
static void* reopen(void* unused) {
  for (int i = 0; i < 200; ++i) close(open("a.dat", O_RDWR)), close(dup(other));
  return NULL;
}
static void* fill(void* part) {
  char block[1000];
  memset(block, 'a' + (long)part, sizeof block);
  for (int i = 0; i < 100; ++i) pwrite(other, block, sizeof block, (long)part * 100000 + i * 1000);
  return NULL;
}
static void wait_all(void) {
  while (wait(NULL) > 0) {
  }
}

int main(void) {
  setvbuf(stdout, NULL, _IONBF, 0);
  // Threads on disjoint parts while another one opens and closes.
  other = open("a.dat", O_RDWR | O_CREAT | O_TRUNC, 0644);
  pthread_t threads[4];
  for (long i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, i ? fill : reopen, (void*)i);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  // Numbers: the lowest free one, high ones, and a chain of duplicates.
  int low = open("b.dat", O_WRONLY | O_CREAT, 0644);
  close(low);
  say("lowest", open("b.dat", O_RDWR) == low);
  int chain = low;
  for (int i = 0; i < 20; ++i) chain = dup(chain);
  say("chain", chain - low), write(chain, "chain", 5), say("position", lseek(low, 0, SEEK_CUR));
  for (int fd = 10; fd < 30; ++fd) dup2(low, fd), write(fd, "x", 1);
  say("position", lseek(20, 0, SEEK_CUR)), say("append", fcntl(15, F_SETFL, O_APPEND)), say("flags", fcntl(11, F_GETFL) & O_APPEND);
  for (int fd = 4; fd < 30; ++fd) close(fd);
  // Sizes and flags.
  int fd = open("c.dat", O_RDWR | O_CREAT, 0644);
  struct iovec two[2] = {{"one", 3}, {"two", 3}};
  say("pwritev2", pwritev2(fd, two, 2, 0, RWF_DSYNC)), say("append", pwritev2(fd, two, 2, 0, RWF_APPEND)),
      say("current", pwritev2(fd, two, 2, -1, 0));
  say("bad flags", pwritev2(fd, two, 2, 0, 1 << 20)), say("position", lseek(fd, 0, SEEK_CUR)), say("grow", ftruncate(fd, 100000));
  say("beyond", pwrite(fd, "far", 3, 200000)), say("negative", lseek(fd, -1, SEEK_SET)), say("read", pread(fd, malloc(10), 10, 199995));
  say("write only", (low = open("c.dat", O_WRONLY))), say("read", read(low, malloc(9), 9)), close(low);
  say("read only", (low = open("c.dat", O_RDONLY))), say("write", write(low, "x", 1)), say("truncate", ftruncate(low, 1)), close(low);
  say("directory", open(".", O_WRONLY)), say("missing", open("nowhere/x.dat", O_WRONLY | O_CREAT, 0644)), say("null", write(fd, NULL, 5));
  say("huge", ftruncate(fd, -1)), say("zero", write(fd, "", 0)), close(fd), say("closed", write(fd, "x", 1)), say("twice", close(fd));
  // Several processes append; two write a descriptor that they share; vfork and posix_spawn.
  fd = open("d.dat", O_WRONLY | O_CREAT | O_APPEND, 0644);
  for (int child = 0; child < 3; ++child)
    if (fork() == 0) {
      int own = open("d.dat", O_WRONLY | O_APPEND);
      for (int i = 0; i < 100; ++i) write(own, "appended\n", 9);
      close(own), _exit(0);
    } else {
      wait_all();
    }
  struct stat state;
  fstat(fd, &state), say("appended", state.st_size), close(fd);
  fd = open("e.dat", O_RDWR | O_CREAT | O_TRUNC, 0644);
  write(fd, "parent ", 7);
  if (fork() == 0) write(fd, "child ", 6), _exit(0);
  wait_all(), write(fd, "parent ", 7), say("end", lseek(fd, 0, SEEK_END));
  char* echo[] = {"sh", "-c", "echo spawned", NULL};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions), posix_spawn_file_actions_adddup2(&actions, fd, 1);
  pid_t pid;
  posix_spawn(&pid, "/bin/sh", &actions, NULL, echo, environ), wait_all();
  say("end", lseek(fd, 0, SEEK_END)), write(fd, "more ", 5);
  char* again[] = {"sh", "-c", "echo after vfork", NULL};
  if ((pid = vfork()) == 0) dup2(fd, 1), execve("/bin/sh", again, environ), _exit(1);
  wait_all(), say("end", lseek(fd, 0, SEEK_END)), write(fd, "last", 4), close(fd);
  // A daemon that closes everything and begins anew.
  if (fork() == 0) {
    setsid();
    if (fork() == 0) {
      for (int i = 0; i < 1024; ++i) close(i);
      open("/dev/null", O_RDWR), dup(0), dup(0);
      int log = open("f.dat", O_WRONLY | O_CREAT | O_APPEND, 0644);
      dprintf(log, "daemon on %d\n", log), printf("not to be seen\n"), fflush(stdout), write(2, "nor this\n", 9);
      FILE* file = fopen("g.dat", "w");
      fprintf(file, "daemon's file\n");
      exit(0);
    }
    wait_all(), _exit(0);
  }
  wait_all();
  // Limits.
  struct rlimit few = {64, 64}, small = {5000, 5000};
  if (fork() == 0) {
    setrlimit(RLIMIT_NOFILE, &few);
    int opened = 0;
    while (opened < 100 && open("h.dat", O_RDWR | O_CREAT, 0644) >= 0) ++opened;
    say("opened", opened < 64 && opened > 10), say("limit", open("h.dat", O_RDWR) < 0), _exit(0);
  }
  wait_all();
  if (fork() == 0) {
    signal(SIGXFSZ, SIG_IGN), setrlimit(RLIMIT_NOFILE, &(struct rlimit){1024, 1024});
    umask(027), fd = open("i.dat", O_RDWR | O_CREAT, 0666), fstat(fd, &state), say("mode", state.st_mode & 0777), say("chmod", fchmod(fd, 0600)),
                close(fd), _exit(0);
  }
  wait_all();
  // Killed by a signal that nobody handles, and aborted.
  if (fork() == 0) write(open("j.dat", O_WRONLY | O_CREAT, 0644), "terminated", 10), kill(getpid(), SIGTERM), pause();
  wait_all();
  if (fork() == 0) fd = open("k.dat", O_WRONLY | O_CREAT, 0644), write(fd, "synced", 6), fsync(fd), kill(getpid(), SIGKILL);
  wait_all();
  // The directory goes, and comes back by another name.
  mkdir("l", 0755), chdir("l"), fd = open("x.dat", O_RDWR | O_CREAT, 0644), write(fd, "moved", 5), rename("../l", "../m"), write(fd, " on", 3),
                                close(fd), chdir("..");
  mkdir("n", 0755), chdir("n"), rmdir("../n"), say("gone", open("x.dat", O_RDWR | O_CREAT, 0644)), chdir(getenv("PWD"));
  // The same file five hundred times.
  int count = 0;
  for (int i = 0; i < 400; ++i) count += (fd = open("o.dat", O_RDWR | O_CREAT, 0644)) >= 0 && pwrite(fd, "o", 1, i) == 1;
  say("open at once", count), stat("o.dat", &state), say("size", state.st_size);
  return 0;
}
