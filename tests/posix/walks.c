// What the C library itself says of a directory: walks NAME DIRECTORY prints one line per entry, sorted by whoever compares.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void entry(const char* name, int type) { printf("%s %d\n", name, type); }

static int by_getdents(const char* path) {
  char piece[200];  // a few entries at a time
  const int fd = open(path, O_RDONLY | O_DIRECTORY);
  for (ssize_t got; (got = getdents64(fd, piece, sizeof piece)) > 0;)
    for (char* at = piece; at < piece + got; at += ((struct dirent64*)at)->d_reclen)
      entry(((struct dirent64*)at)->d_name, ((struct dirent64*)at)->d_type);
  return close(fd);
}

// Each entry again, by its position.
static int by_seekdir(const char* path) {
  DIR* stream = opendir(path);
  long places[64];
  char names[64][256];
  int count = 0;
  for (;;) {
    places[count] = telldir(stream);
    struct dirent* found = readdir(stream);
    if (!found) break;
    strcpy(names[count++], found->d_name);
  }
  for (int i = count - 1; i >= 0; --i) {
    seekdir(stream, places[i]);
    struct dirent* found = readdir(stream);
    if (!found || strcmp(found->d_name, names[i]) != 0) return printf("%s is not at its place\n", names[i]), 1;
    entry(found->d_name, found->d_type);
  }
  return closedir(stream);
}

static int by_readdir_r(const char* path) {
  DIR* stream = opendir(path);
  struct dirent room, *found;
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  while (readdir_r(stream, &room, &found) == 0 && found) entry(found->d_name, found->d_type);
  return closedir(stream);
}

static int by_scandir(const char* path) {
  struct dirent** list;
  const int count = scandir(path, &list, NULL, alphasort);
  for (int i = 0; i < count; ++i) entry(list[i]->d_name, list[i]->d_type), free(list[i]);
  free(list);
  return count < 0;
}

static int visit(const char* path, const struct stat* state, int kind, struct FTW* where) {
  printf("%s %d %d %lld\n", path, kind, where->level, S_ISREG(state->st_mode) ? (long long)state->st_size : -1);
  return 0;
}
static int visit_plainly(const char* path, const struct stat* state, int kind) {
  printf("%s %d %lld\n", path, kind, S_ISREG(state->st_mode) ? (long long)state->st_size : -1);
  return 0;
}

static int by_fts(char* path) {
  char* roots[] = {path, NULL};
  FTS* tree = fts_open(roots, FTS_PHYSICAL, NULL);
  for (FTSENT* found; (found = fts_read(tree));)
    printf("%s %d %lld\n", found->fts_path, found->fts_info, found->fts_info == FTS_F ? (long long)found->fts_statp->st_size : -1);
  return fts_close(tree);
}

static int by_glob(const char* path) {
  char pattern[4096];
  glob_t found;
  snprintf(pattern, sizeof pattern, "%s/{.,}*", path);
  const int result = glob(pattern, GLOB_BRACE | GLOB_MARK, NULL, &found);
  for (size_t i = 0; i < found.gl_pathc; ++i) puts(found.gl_pathv[i]);
  globfree(&found);
  return result;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const char* how = argv[1];
  char* path = argv[2];
  if (!strcmp(how, "getdents")) return by_getdents(path);
  if (!strcmp(how, "seekdir")) return by_seekdir(path);
  if (!strcmp(how, "readdir_r")) return by_readdir_r(path);
  if (!strcmp(how, "scandir")) return by_scandir(path);
  if (!strcmp(how, "nftw")) return nftw(path, visit, 10, FTW_PHYS);
  if (!strcmp(how, "nftw_depth")) return nftw(path, visit, 10, FTW_PHYS | FTW_DEPTH | FTW_CHDIR);
  if (!strcmp(how, "ftw")) return ftw(path, visit_plainly, 10);
  if (!strcmp(how, "fts")) return by_fts(path);
  if (!strcmp(how, "glob")) return by_glob(path);
  return 2;
}
