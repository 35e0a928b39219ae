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
#include <sys/syscall.h>
#include <unistd.h>

static void entry(const char* name, int type) { printf("%s %d\n", name, type); }

static ssize_t by_library(int fd, void* into, size_t bytes) { return getdents64(fd, into, bytes); }
static ssize_t by_number(int fd, void* into, size_t bytes) { return syscall(SYS_getdents64, fd, into, bytes); }

static int by_getdents(const char* path, ssize_t (*next)(int, void*, size_t)) {
  char piece[200];  // a few entries at a time
  const int fd = open(path, O_RDONLY | O_DIRECTORY);
  int first = 0, second = 0;
  while (next(fd, piece, sizeof piece) > 0) ++first;
  lseek(fd, 0, SEEK_SET);  // and once more
  for (ssize_t got; (got = next(fd, piece, sizeof piece)) > 0 && ++second;)
    for (char* at = piece; at < piece + got; at += ((struct dirent64*)at)->d_reclen)
      entry(((struct dirent64*)at)->d_name, ((struct dirent64*)at)->d_type);
  return close(fd) || first != second;
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

static int by_name(const FTSENT** a, const FTSENT** b) { return strcmp((*a)->fts_name, (*b)->fts_name); }

// Each is looked at where the walk says that it is, and not gone into where it is to be skipped.
static int by_fts(char* path, int options) {
  char* roots[] = {path, NULL};
  FTS* tree = fts_open(roots, options, by_name);
  for (FTSENT* found; (found = fts_read(tree));) {
    struct stat state;
    const int there = found->fts_info != FTS_F || (stat(found->fts_accpath, &state) == 0 && state.st_size == found->fts_statp->st_size);
    if (found->fts_info == FTS_D && !strcmp(found->fts_name, "skipped")) fts_set(tree, found, FTS_SKIP);
    if (found->fts_info != FTS_DP) printf("%s %d%s\n", found->fts_path, found->fts_info, there ? "" : " is not there");
  }
  return fts_close(tree);
}

// The names that a directory's children have before the walk goes on to them.
static int by_fts_children(char* path) {
  char* roots[] = {path, NULL};
  FTS* tree = fts_open(roots, FTS_PHYSICAL, by_name);
  int listed = 0, met = 0;
  for (FTSENT* found; (found = fts_read(tree));) {
    if (found->fts_info == FTS_F) ++met;
    if (found->fts_info != FTS_D) continue;
    for (FTSENT* child = fts_children(tree, FTS_NAMEONLY); child; child = child->fts_link) printf("%s\n", child->fts_name);
    for (FTSENT* child = fts_children(tree, 0); child; child = child->fts_link) listed += child->fts_info == FTS_F;
  }
  return fts_close(tree) || listed != met;
}

static int in_place(const char* path, const struct stat* state, int kind, struct FTW* where) {
  struct stat here;
  const int there = kind != FTW_F || (stat(path + where->base, &here) == 0 && here.st_size == state->st_size);
  printf("%s %d%s\n", path, where->level, there ? "" : " is not there");
  return 0;
}
static int skipping(const char* path, const struct stat* state, int kind, struct FTW* where) {
  (void)state, (void)where;
  printf("%s\n", path);
  return kind == FTW_D && strstr(path, "skipped") ? FTW_SKIP_SUBTREE : kind == FTW_F ? FTW_SKIP_SIBLINGS : FTW_CONTINUE;
}

static int by_plain_fts(char* path) {
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
  if (!strcmp(how, "getdents")) return by_getdents(path, by_library);
  if (!strcmp(how, "getdents_number")) return by_getdents(path, by_number);
  if (!strcmp(how, "seekdir")) return by_seekdir(path);
  if (!strcmp(how, "readdir_r")) return by_readdir_r(path);
  if (!strcmp(how, "scandir")) return by_scandir(path);
  if (!strcmp(how, "nftw")) return nftw(path, visit, 10, FTW_PHYS);
  if (!strcmp(how, "nftw_depth")) return nftw(path, visit, 10, FTW_PHYS | FTW_DEPTH | FTW_CHDIR);
  if (!strcmp(how, "ftw")) return ftw(path, visit_plainly, 10);
  if (!strcmp(how, "nftw_in_place")) return nftw(path, in_place, 10, FTW_PHYS | FTW_CHDIR);
  if (!strcmp(how, "nftw_skips")) return nftw(path, skipping, 10, FTW_PHYS | FTW_ACTIONRETVAL);
  if (!strcmp(how, "fts")) return by_plain_fts(path);
  if (!strcmp(how, "fts_in_place")) return by_fts(path, FTS_PHYSICAL);
  if (!strcmp(how, "fts_from_here")) return by_fts(path, FTS_PHYSICAL | FTS_NOCHDIR);
  if (!strcmp(how, "fts_children")) return by_fts_children(path);
  if (!strcmp(how, "glob")) return by_glob(path);
  return 2;
}
