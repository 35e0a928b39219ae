// Checkpoints written under another name and renamed, by each call that can. Prints what each was told. usage: PROGRAM DIRECTORY
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

static void make(const char* path, const char* text, int times) {
  FILE* file = fopen(path, "w");
  for (int i = 0; i < times; ++i) fprintf(file, "%s %d\n", text, i);
  fclose(file);
}

static void tell(const char* what, const char* path, int result) {
  const int error = result ? errno : 0;
  struct stat state = {0};
  const int there = stat(path, &state);
  printf("%s: %d %s, %s of %ld bytes, mode %o\n", what, result, strerror(error), there ? "nothing" : "a file", (long)state.st_size, state.st_mode);
}

int main(int count, char** arguments) {
  if (count < 2 || chdir(arguments[1]) != 0) return 2;
  const int directory = open(".", O_RDONLY | O_DIRECTORY);
  make("a.tmp", "first", 3);
  tell("rename to a new name", "a.dat", rename("a.tmp", "a.dat"));
  make("a.tmp", "second, which is longer", 3000);
  chmod("a.tmp", 0600);
  tell("rename over it", "a.dat", rename("a.tmp", "a.dat"));
  make("a.tmp", "third", 2);
  tell("renameat over it", "a.dat", renameat(directory, "a.tmp", directory, "a.dat"));
  make("a.tmp", "fourth", 2);
  tell("renameat2 that replaces nothing, over it", "a.dat", renameat2(directory, "a.tmp", directory, "a.dat", RENAME_NOREPLACE));
  tell("what it left", "a.tmp", access("a.tmp", F_OK));
  tell("renameat2 that replaces nothing", "b.dat", renameat2(directory, "a.tmp", directory, "b.dat", RENAME_NOREPLACE));
  make("direct.dat", "written here", 5);
  char name[] = "temporary.XXXXXX";
  int fd = mkstemp(name);
  if (write(fd, "from mkstemp\n", 13) != 13) return 3;
  close(fd);
  tell("mkstemp over a file that was open", "direct.dat", rename(name, "direct.dat"));
  FILE* old = fopen("a.dat", "r");
  make("a.tmp", "fifth", 4);
  tell("while the old one is read", "a.dat", rename("a.tmp", "a.dat"));
  char line[100];
  printf("the old one: %s", fgets(line, sizeof line, old) ? line : "nothing\n");
  fclose(old);
  make("empty.tmp", "", 0);
  tell("an empty one", "empty.dat", rename("empty.tmp", "empty.dat"));
  mkdir("directory.dat", 0755);
  make("a.tmp", "sixth", 2);
  tell("over a directory", "directory.dat", rename("a.tmp", "directory.dat"));
  tell("of nothing", "a.dat", rename("nothing.tmp", "a.dat"));
  tell("below nothing", "a.dat", rename("a.tmp", "nothing/a.dat"));
  const struct timeval times[2] = {{1000, 0}, {2000, 0}};
  utimes("a.tmp", times);
  tell("with its times", "a.dat", rename("a.tmp", "a.dat"));
  struct stat state;
  stat("a.dat", &state);
  printf("modified at %ld\n", (long)state.st_mtime);
  return 0;
}
