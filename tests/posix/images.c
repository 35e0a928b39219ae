// freopen, fork, vfork, exec and exits with open files: images WAY PATH. What the file has to hold is posix_test.py's to know.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void must(int what, const char *text) {
  if (what) return;
  perror(text);
  exit(1);
}
#define MUST(what) must(what, #what)

static void wait_for(pid_t child) {
  int status = -1;
  MUST(waitpid(child, &status, 0) == child && status == 0);
}

static void with_stdout(const char *path) {
  FILE *before = stdout;
  MUST(freopen(path, "w", stdout) == before && fileno(stdout) == 1);
  printf("by printf, ");
  fflush(stdout);
  MUST(write(1, "by write, ", 10) == 10);
  MUST(system("printf 'by a child, '") == 0);
  printf("at exit");
}
static void with_stdin(const char *path) {
  FILE *out = fopen(path, "w");
  MUST(out && fputs("12 words", out) >= 0 && fclose(out) == 0);
  int number = 0;
  char word[10];
  MUST(freopen(path, "r", stdin) == stdin && scanf("%d %9s", &number, word) == 2 && number == 12 && strcmp(word, "words") == 0);
}
static void with_a_stream(const char *path) {
  FILE *stream = fopen("/dev/null", "r");
  MUST(stream && freopen(path, "a", stream) == stream);
  MUST(fprintf(stream, "%s", "appended") == 8 && fclose(stream) == 0);
}
static void through_fork(const char *path) {
  const int fd = open(path, O_CREAT | O_RDWR, 0644);
  MUST(write(fd, "parent ", 7) == 7);
  pid_t child = fork();
  if (child == 0) _exit(write(fd, "child ", 6) == 6 && close(fd) == 0 ? 0 : 1);
  wait_for(child);
  MUST(lseek(fd, 0, SEEK_CUR) == 13 && write(fd, "parent", 6) == 6);
  char back[20];
  MUST(pread(fd, back, 20, 0) == 19 && memcmp(back, "parent child parent", 19) == 0 && close(fd) == 0);
}
static void through_exec(const char *path) {
  const int fd = open(path, O_CREAT | O_WRONLY | O_APPEND, 0644);
  char number[20];
  snprintf(number, sizeof number, "%d", fd);
  MUST(write(fd, "before ", 7) == 7);
  execl("/proc/self/exe", "images", "after_exec", number, NULL);
  MUST(0);
}
static void after_exec(const char *number) {
  const int fd = atoi(number);
  MUST((fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND)) == (O_WRONLY | O_APPEND));
  MUST(lseek(fd, 0, SEEK_CUR) == 7 && write(fd, "after", 5) == 5);  // closed by the exit
}
static void through_spawn(const char *path) {
  const int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  MUST(write(fd, "parent ", 7) == 7);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fd, 1);
  char *words[] = {"echo", "-n", "child ", NULL};
  pid_t child = 0;
  MUST(posix_spawnp(&child, "echo", &actions, NULL, words, environ) == 0);
  wait_for(child);
  MUST(write(fd, "parent", 6) == 6 && close(fd) == 0);
}
static void exec_that_fails(const char *path) {
  MUST(freopen(path, "w", stdout) != NULL);
  printf("before ");
  fflush(stdout);
  execl("/nowhere/nothing", "nothing", NULL);
  MUST(errno == ENOENT);
  printf("after");
}
static void all_closed(const char *path) {
  const int fd = open(path, O_CREAT | O_WRONLY, 0644);
  MUST(write(fd, "all", 3) == 3);
  for (int i = 3; i < 1000; ++i) close(i);
  MUST(close_range(3, ~0u, 0) == 0);
  const int again = open(path, O_WRONLY | O_APPEND);
  MUST(write(again, " of it", 6) == 6 && close(again) == 0);
}
static void behind_our_back(const char *path) {
  const int fd = open(path, O_CREAT | O_WRONLY, 0644);
  MUST(write(fd, "whole", 5) == 5);
  MUST(syscall(3 /* close */, fd) == 0);
  const int other = open("/dev/null", O_RDWR);
  MUST(other == fd && write(other, "not for the file", 16) == 16 && close(other) == 0);
}
static void quick(const char *path) {
  MUST(write(open(path, O_CREAT | O_WRONLY, 0644), "whole", 5) == 5);
  _exit(0);
}
static void aborted(const char *path) {
  MUST(write(open(path, O_CREAT | O_WRONLY, 0644), "whole", 5) == 5);
  abort();
}
static void terminated(const char *path) {
  MUST(write(open(path, O_CREAT | O_WRONLY, 0644), "whole", 5) == 5);
  kill(getpid(), 15);
  pause();
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(const char *path);
  } ways[] = {{"with_stdout", with_stdout},
              {"with_stdin", with_stdin},
              {"with_a_stream", with_a_stream},
              {"through_fork", through_fork},
              {"through_exec", through_exec},
              {"after_exec", after_exec},
              {"through_spawn", through_spawn},
              {"all_closed", all_closed},
              {"behind_our_back", behind_our_back},
              {"quick", quick},
              {"aborted", aborted},
              {"terminated", terminated},
              {"exec_that_fails", exec_that_fails}};
  for (size_t i = 0; argc == 3 && i < sizeof ways / sizeof *ways; ++i)
    if (strcmp(argv[1], ways[i].name) == 0) return ways[i].run(argv[2]), 0;
  return 2;
}
