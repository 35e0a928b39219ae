// Doors that list directories: a program sees its files and not what Holdfast keeps beside them.
#include <dirent.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "catalog/user_files.hpp"
#include "intercept/posix/listings.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"
#include "tree/list.hpp"

namespace {

using namespace holdfast::intercept::posix;
namespace catalog = holdfast::catalog;
namespace tree = holdfast::tree;

// False where the entry is not to be seen. Positions stay right: they are those of the entries that are left.
template <class Entry>
bool shows(int directory, Entry& entry) {
  if (entry.d_name[0] != '.' && entry.d_type != DT_LNK) return true;
  const OurCode ours_now;
  return tree::show_entry(directory, entry.d_name, entry.d_type);
}

// The next that stands in the directory; those that checkpoints have elsewhere come behind the last of these.
template <class Entry>
Entry* next_of(DIR* stream, Entry* (*native)(DIR*)) {
  if (inside > 0) return native(stream);
  Listed* const checkpoints = listed(stream);
  if (checkpoints && checkpoints->behind()) return checkpoints->next<Entry>();
  const int before = errno;
  if (checkpoints) errno = 0;
  Entry* entry = native(stream);
  while (entry && !(shows(dirfd(stream), *entry) && (!checkpoints || checkpoints->shows(entry->d_name)))) entry = native(stream);
  if (!checkpoints || (!entry && errno != 0)) return entry;
  errno = before;
  return entry ? entry : checkpoints->next<Entry>();
}

template <class Entry>
int next_into(DIR* stream, Entry* entry, Entry** result, int (*native)(DIR*, Entry*, Entry**)) {
  Listed* const checkpoints = inside == 0 ? listed(stream) : nullptr;
  while (!checkpoints || !checkpoints->behind()) {
    const int error = native(stream, entry, result);
    if (error != 0 || inside > 0) return error;
    if (!*result) break;
    if (shows(dirfd(stream), **result) && (!checkpoints || checkpoints->shows(entry->d_name))) return 0;
  }
  const KeepErrno keep;
  errno = 0;
  const Entry* const next = checkpoints ? checkpoints->next<Entry>() : nullptr;
  *result = next ? static_cast<Entry*>(std::memcpy(entry, next, next->d_reclen)) : nullptr;
  return errno;
}

// The entries that are seen move together; where none is left of a piece, the next one is read: 0 would mean the end.
ssize_t entries_of(int directory, void* into, size_t bytes) {
  for (;;) {
    const ssize_t got = real().getdents64(directory, into, bytes);
    if (got <= 0 || inside > 0) return got;
    char* const begin = static_cast<char*>(into);
    char* end = begin;
    for (char *at = begin, *next; at < begin + got; at = next) {
      auto* entry = reinterpret_cast<dirent64*>(at);
      const size_t length = entry->d_reclen;
      next = at + length;
      if (!shows(directory, *entry)) continue;
      std::memmove(end, at, length);
      end += length;
    }
    if (end > begin) return end - begin;
  }
}

// scandir(3), by our own readdir.
template <class Entry>
int scan(DIR* stream, Entry*** list, int (*select)(const Entry*), int (*compare)(const Entry**, const Entry**), Entry* (*next)(DIR*)) {
  if (!stream) return -1;
  std::vector<Entry*> found;
  const int before = errno;
  errno = 0;
  while (const Entry* entry = next(stream)) {
    const bool wanted = !select || select(entry);
    errno = 0;
    if (!wanted) continue;
    auto* copy = static_cast<Entry*>(malloc(entry->d_reclen));
    if (!copy) break;
    found.push_back(static_cast<Entry*>(memcpy(copy, entry, entry->d_reclen)));
  }
  const int error = errno;
  closedir(stream);
  auto** all = error == 0 ? static_cast<Entry**>(malloc(std::max<size_t>(found.size(), 1) * sizeof(Entry*))) : nullptr;
  if (!all) {
    for (Entry* entry : found) free(entry);
    return errno = error ? error : ENOMEM, -1;
  }
  std::copy(found.begin(), found.end(), all);
  if (compare) qsort(all, found.size(), sizeof(Entry*), reinterpret_cast<int (*)(const void*, const void*)>(compare));
  *list = all;
  errno = before;
  return int(found.size());
}

DIR* open_directory_at(int directory, const char* path) {
  const int fd = openat(directory, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
  return fd < 0 ? nullptr : fdopendir(fd);
}

// ---- what walks a tree inside the C library

// Below the directory where the walk began.
bool passes_hidden(const std::string& path, size_t root) {
  const OurCode ours_now;
  return tree::passes_hidden(path, root);
}
bool is_hidden(const char* path) {
  const OurCode ours_now;
  return tree::is_hidden(path);
}

void describe(const char* path, struct stat* into) { (void)lstat(path, into); }
void describe(const char* path, struct stat64* into) { (void)lstat64(path, into); }

// The walk's own calls pass no door: what it says of a protected file is put right here.
template <class Stat, class Callback>
struct Walk {
  Callback callback;
  std::string begin;  // absolute: the walk may change the working directory
  size_t root;        // bytes of the path that the program has named

  template <class... More>
  int visit(const char* path, const Stat* state, int kind, More... more) const {
    const std::string at = begin + (path + root);
    if (passes_hidden(at, begin.size())) return 0;
    if ((kind != FTW_F && kind != FTW_SL && kind != FTW_SLN && kind != FTW_NS) || !is_protected(AT_FDCWD, at.c_str(), false))
      return callback(path, state, kind, more...);
    Stat right = *state;
    describe(at.c_str(), &right);
    return callback(path, &right, FTW_F, more...);
  }
};

using Ftw = int (*)(const char*, const struct stat*, int);
using Ftw64 = int (*)(const char*, const struct stat64*, int);
using Nftw = int (*)(const char*, const struct stat*, int, FTW*);
using Nftw64 = int (*)(const char*, const struct stat64*, int, FTW*);

// ftw(3) gives its callback nothing of ours.
template <class Stat, class Callback>
thread_local const Walk<Stat, Callback>* walking = nullptr;

template <class Stat, class Callback, class Native>
int walk(const char* path, Callback callback, Native native) {
  if (inside > 0 || !path) return native(callback);
  size_t root = std::strlen(path);
  while (root > 1 && path[root - 1] == '/') --root;
  const Walk<Stat, Callback> mine{callback, catalog::absolute_path(path), root};
  const auto* before = std::exchange(walking<Stat, Callback>, &mine);
  const int result = native([](auto... arguments) -> int { return walking<Stat, Callback>->visit(arguments...); });
  walking<Stat, Callback> = before;
  return result;
}

template <class Entry>
bool shows_in_walk(Entry* entry) {
  if (entry->fts_level < 1 || inside > 0) return true;
  if (tree::may_be_hidden(entry->fts_name) && is_hidden(entry->fts_accpath)) return false;
  const bool file = entry->fts_info == FTS_F || entry->fts_info == FTS_SL || entry->fts_info == FTS_SLNONE || entry->fts_info == FTS_NS;
  if (!file || !is_protected(AT_FDCWD, entry->fts_accpath, false)) return true;
  describe(entry->fts_accpath, entry->fts_statp);
  entry->fts_info = FTS_F;
  return true;
}

template <class Tree, class Entry>
Entry* next_in_walk(Tree* tree, Entry* (*next)(Tree*), int (*set)(Tree*, Entry*, int)) {
  for (;;) {
    Entry* entry = next(tree);
    if (!entry || shows_in_walk(entry)) return entry;
    set(tree, entry, FTS_SKIP);
  }
}

template <class Entry>
Entry* shown_children(Entry* first) {
  while (first && !shows_in_walk(first)) first = first->fts_link;
  for (Entry* entry = first; entry; entry = entry->fts_link)
    while (entry->fts_link && !shows_in_walk(entry->fts_link)) {
      Entry* hidden = std::exchange(entry->fts_link, entry->fts_link->fts_link);
      free(hidden);
    }
  return first;
}

// glob(3) takes the functions by which it looks at directories.
template <class Glob, class Next, class Stat>
int glob_by(const char* pattern, int flags, int (*error)(const char*, int), Glob* result, Next next, Stat follow, Stat stay,
            int (*native)(const char*, int, int (*)(const char*, int), Glob*)) {
  if (inside > 0 || (flags & GLOB_ALTDIRFUNC)) return native(pattern, flags, error, result);
  const Glob before = *result;
  result->gl_opendir = [](const char* path) -> void* { return opendir(path); };
  result->gl_closedir = [](void* stream) { closedir(static_cast<DIR*>(stream)); };
  result->gl_readdir = next;
  result->gl_stat = follow;
  result->gl_lstat = stay;
  const int answer = native(pattern, flags | GLOB_ALTDIRFUNC, error, result);
  result->gl_opendir = before.gl_opendir;
  result->gl_closedir = before.gl_closedir;
  result->gl_readdir = before.gl_readdir;
  result->gl_stat = before.gl_stat;
  result->gl_lstat = before.gl_lstat;
  result->gl_flags &= ~GLOB_ALTDIRFUNC;
  return answer;
}

}  // namespace

// A directory that no one has looked for yet may have to be made: checkpoints lie there.
HF_DOOR DIR* opendir(const char* path) {
  (void)checkpoints();
  return real().opendir(path);
}
HF_DOOR int closedir(DIR* stream) {
  forget_listed(stream);
  return real().closedir(stream);
}
HF_DOOR void rewinddir(DIR* stream) noexcept {
  forget_listed(stream);
  real().rewinddir(stream);
}
HF_DOOR long telldir(DIR* stream) noexcept {
  const Listed* const checkpoints = inside == 0 ? listed(stream) : nullptr;
  return checkpoints && checkpoints->behind() ? checkpoints->position() : real().telldir(stream);
}
HF_DOOR void seekdir(DIR* stream, long position) noexcept {
  if (Listed* const checkpoints = inside == 0 ? listed(stream) : nullptr) checkpoints->go_to(position);
  if (!Listed::is_position(position)) real().seekdir(stream, position);
}
HF_DOOR dirent* readdir(DIR* stream) { return next_of(stream, real().readdir); }
HF_DOOR dirent64* readdir64(DIR* stream) { return next_of(stream, real().readdir64); }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
HF_DOOR int readdir_r(DIR* stream, dirent* entry, dirent** result) { return next_into(stream, entry, result, real().readdir_r); }
HF_DOOR int readdir64_r(DIR* stream, dirent64* entry, dirent64** result) { return next_into(stream, entry, result, real().readdir64_r); }
#pragma GCC diagnostic pop
HF_DOOR ssize_t getdents64(int directory, void* into, size_t bytes) noexcept { return entries_of(directory, into, bytes); }

HF_DOOR int scandir(const char* path, dirent*** list, int (*select)(const dirent*), int (*compare)(const dirent**, const dirent**)) {
  return scan(opendir(path), list, select, compare, readdir);
}
HF_DOOR int scandir64(const char* path, dirent64*** list, int (*select)(const dirent64*), int (*compare)(const dirent64**, const dirent64**)) {
  return scan(opendir(path), list, select, compare, readdir64);
}
HF_DOOR int scandirat(int directory, const char* path, dirent*** list, int (*select)(const dirent*), int (*compare)(const dirent**, const dirent**)) {
  return scan(open_directory_at(directory, path), list, select, compare, readdir);
}
HF_DOOR int scandirat64(int directory, const char* path, dirent64*** list, int (*select)(const dirent64*),
                        int (*compare)(const dirent64**, const dirent64**)) {
  return scan(open_directory_at(directory, path), list, select, compare, readdir64);
}

HF_DOOR int ftw(const char* path, Ftw callback, int descriptors) {
  return walk<struct stat>(path, callback, [=](Ftw ours) { return real().ftw(path, ours, descriptors); });
}
HF_DOOR int ftw64(const char* path, Ftw64 callback, int descriptors) {
  return walk<struct stat64>(path, callback, [=](Ftw64 ours) { return real().ftw64(path, ours, descriptors); });
}
HF_DOOR int nftw(const char* path, Nftw callback, int descriptors, int flags) {
  return walk<struct stat>(path, callback, [=](Nftw ours) { return real().nftw(path, ours, descriptors, flags); });
}
HF_DOOR int nftw64(const char* path, Nftw64 callback, int descriptors, int flags) {
  return walk<struct stat64>(path, callback, [=](Nftw64 ours) { return real().nftw64(path, ours, descriptors, flags); });
}
HF_DOOR FTSENT* fts_read(FTS* tree) { return next_in_walk(tree, real().fts_read, real().fts_set); }
HF_DOOR FTSENT64* fts64_read(FTS64* tree) { return next_in_walk(tree, real().fts64_read, real().fts64_set); }
HF_DOOR FTSENT* fts_children(FTS* tree, int instructions) { return shown_children(real().fts_children(tree, instructions)); }
HF_DOOR FTSENT64* fts64_children(FTS64* tree, int instructions) { return shown_children(real().fts64_children(tree, instructions)); }

HF_DOOR int glob(const char* pattern, int flags, int (*error)(const char*, int), glob_t* result) noexcept {
  return glob_by(
      pattern, flags, error, result, [](void* stream) { return readdir(static_cast<DIR*>(stream)); }, &stat, &lstat, real().glob);
}
HF_DOOR int glob64(const char* pattern, int flags, int (*error)(const char*, int), glob64_t* result) noexcept {
  return glob_by(
      pattern, flags, error, result, [](void* stream) { return readdir64(static_cast<DIR*>(stream)); }, &stat64, &lstat64, real().glob64);
}
