// Children whose standard input and output posix_spawn opens: by each of its file actions, one after another. Prints what each was told, what
// a child has read and what is in the files in the end. usage: PROGRAM FILE
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static posix_spawn_file_actions_t actions;

static void begin(void) { posix_spawn_file_actions_init(&actions); }

static void shell(const char* what, const char* command) {
  char* words[] = {"sh", "-c", (char*)command, NULL};
  pid_t child = -1;
  int status = 0;
  fflush(stdout);
  const int error = posix_spawn(&child, "/bin/sh", &actions, NULL, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) waitpid(child, &status, 0);
  printf("%s: %s, status %d\n", what, strerror(error), WEXITSTATUS(status));
}

static void show(const char* path) {
  char text[400];
  const int fd = open(path, O_RDONLY);
  const ssize_t bytes = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
  text[bytes < 0 ? 0 : bytes] = '\0';
  printf("[%s]\n", text);
  close(fd);
}

int main(int count, char** arguments) {
  if (count < 2) return 2;
  char made[4096], directory[4096];
  snprintf(made, sizeof made, "%s.new", arguments[1]);
  snprintf(directory, sizeof directory, "%s", arguments[1]);
  char* slash = strrchr(directory, '/');
  *slash = '\0';
  const char *file = arguments[1], *name = slash + 1;
  const int first = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (write(first, "first\n", 6) != 6) return 3;
  close(first);

  begin();
  posix_spawn_file_actions_addopen(&actions, 1, file, O_WRONLY | O_APPEND, 0);
  shell("append", "echo appended");
  begin();
  posix_spawn_file_actions_addopen(&actions, 0, file, O_RDONLY, 0);
  shell("read", "cat");
  begin();
  posix_spawn_file_actions_addopen(&actions, 1, made, O_WRONLY | O_CREAT | O_EXCL, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  shell("new", "echo new; echo error >&2");
  begin();
  posix_spawn_file_actions_addopen(&actions, 1, made, O_WRONLY | O_CREAT | O_EXCL, 0600);
  shell("exclusive", "echo never");
  begin();
  posix_spawn_file_actions_addchdir_np(&actions, "/");
  posix_spawn_file_actions_addchdir_np(&actions, directory);
  posix_spawn_file_actions_addopen(&actions, 7, name, O_WRONLY | O_APPEND, 0);
  posix_spawn_file_actions_adddup2(&actions, 7, 1);
  posix_spawn_file_actions_addclose(&actions, 7);
  shell("below a directory", "echo relative; pwd; test -e /proc/self/fd/7 && echo open");
  const int there = open(directory, O_RDONLY | O_DIRECTORY);
  begin();
  posix_spawn_file_actions_addfchdir_np(&actions, there);
  posix_spawn_file_actions_addopen(&actions, 1, name, O_WRONLY | O_APPEND, 0);
  shell("below a descriptor", "echo descriptor");
  begin();
  posix_spawn_file_actions_addopen(&actions, 1, file, O_RDWR, 0);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  shell("over the beginning", "echo FIRST");
  begin();
  posix_spawn_file_actions_addopen(&actions, 1, "/nowhere/at/all", O_WRONLY | O_CREAT, 0600);
  shell("nowhere", "echo never");
  show(file);
  show(made);
  begin();
  posix_spawn_file_actions_addopen(&actions, 1, file, O_WRONLY | O_TRUNC, 0);
  shell("cut", "echo all anew");
  show(file);
  return 0;
}
