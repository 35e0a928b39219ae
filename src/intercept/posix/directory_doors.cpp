// Doors that list directories: a program sees its files and not what Holdfast keeps beside them.
#include <dirent.h>
#include <glob.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "intercept/posix/alike.hpp"
#include "intercept/posix/decided.hpp"
#include "intercept/posix/listings.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"
#include "intercept/posix/told_listings.hpp"
#include "tree/list.hpp"

namespace {

using namespace holdfast::intercept::posix;
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
Entry* next_there(DIR* stream, Entry* (*native)(DIR*)) {
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
Entry* next_of(DIR* stream, Entry* (*native)(DIR*)) {
  ToldListing* const listing = told_listing(stream);
  if (!listing) [[likely]]
    return next_there(stream, native);
  const OurCode ours_now;
  return listing->next<Entry>([=] {
    dirent64* entry = real().readdir64(stream);
    while (entry && !shows(dirfd(stream), *entry)) entry = real().readdir64(stream);
    return entry;
  });
}

template <class Entry>
int next_into(DIR* stream, Entry* entry, Entry** result, int (*native)(DIR*, Entry*, Entry**)) {
  if (told_listing(stream)) [[unlikely]] {
    const KeepErrno keep;
    errno = 0;
    const Entry* const next = next_of<Entry>(stream, nullptr);
    *result = next ? static_cast<Entry*>(std::memcpy(entry, next, next->d_reclen)) : nullptr;
    return errno;
  }
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

// As many of the checkpoints that lie elsewhere as there is room for.
ssize_t entries_behind(Listed& checkpoints, void* into, size_t bytes) {
  const int before = errno;
  size_t filled = 0;
  for (;;) {
    const long here = checkpoints.position();
    errno = 0;
    const auto* const next = checkpoints.next<dirent64>();
    const int error = next ? EINVAL : errno;
    if (next && next->d_reclen <= bytes - filled) {
      std::memcpy(static_cast<char*>(into) + filled, next, next->d_reclen);
      filled += next->d_reclen;
      continue;
    }
    if (next) checkpoints.go_to(here);
    errno = before;
    if (filled > 0 || error == 0) return ssize_t(filled);
    return errno = error, -1;
  }
}

// The entries that are seen move together; where none is left of a piece, the next one is read: 0 would mean the end.
ssize_t entries_of(int directory, void* into, size_t bytes) {
  for (;;) {
    Listed* const checkpoints = inside == 0 ? listed(directory) : nullptr;
    if (checkpoints && checkpoints->behind()) return entries_behind(*checkpoints, into, bytes);
    const ssize_t got = real().getdents64(directory, into, bytes);
    if (got == 0 && checkpoints) return entries_behind(*checkpoints, into, bytes);
    if (got <= 0 || inside > 0) return got;
    char* const begin = static_cast<char*>(into);
    char* end = begin;
    for (char *at = begin, *next; at < begin + got; at = next) {
      auto* entry = reinterpret_cast<dirent64*>(at);
      const size_t length = entry->d_reclen;
      next = at + length;
      if (!shows(directory, *entry) || (checkpoints && !checkpoints->shows(entry->d_name))) continue;
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
  HF_ALIKE(AT_FDCWD, path);
  (void)checkpoints();
  holdfast::redundant::Replica* const replica = replica_for(HF_CALLER);
  if (!replica) [[likely]]
    return is_unseen_directory(AT_FDCWD, path) ? (errno = ENOENT, nullptr) : real().opendir(path);
  const OurCode ours_now;
  const std::string name = name_asked(*replica, AT_FDCWD, path);
  DIR* const opened = real().opendir(path);
  return name.empty() ? opened : open_as_told(*replica, name, opened);
}
HF_DOOR DIR* fdopendir(int directory) {
  DIR* const stream = real().fdopendir(directory);
  if (!stream || !replica_for(HF_CALLER)) [[likely]]
    return stream;
  const OurCode ours_now;
  const KeepErrno keep;
  tell_listing(stream, name_of_number(directory));
  return stream;
}
HF_DOOR int closedir(DIR* stream) {
  forget_told_listing(stream);
  forget_listed(stream);
  return real().closedir(stream);
}
HF_DOOR void rewinddir(DIR* stream) noexcept {
  forget_listed(stream);
  if (ToldListing* const listing = told_listing(stream)) listing->begin_anew();
  real().rewinddir(stream);
}
HF_DOOR long telldir(DIR* stream) noexcept {
  if (const ToldListing* const listing = told_listing(stream)) return listing->position();
  const Listed* const checkpoints = inside == 0 ? listed(stream) : nullptr;
  return checkpoints && checkpoints->behind() ? checkpoints->position() : real().telldir(stream);
}
HF_DOOR void seekdir(DIR* stream, long position) noexcept {
  if (ToldListing* const listing = told_listing(stream)) return listing->go_to(position);
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
  HF_ALIKE(AT_FDCWD, path);
  const ForProgram asking(replica_for(HF_CALLER) != nullptr);
  return scan(opendir(path), list, select, compare, readdir);
}
HF_DOOR int scandir64(const char* path, dirent64*** list, int (*select)(const dirent64*), int (*compare)(const dirent64**, const dirent64**)) {
  HF_ALIKE(AT_FDCWD, path);
  const ForProgram asking(replica_for(HF_CALLER) != nullptr);
  return scan(opendir(path), list, select, compare, readdir64);
}
HF_DOOR int scandirat(int directory, const char* path, dirent*** list, int (*select)(const dirent*), int (*compare)(const dirent**, const dirent**)) {
  HF_ALIKE(directory, path);
  const ForProgram asking(replica_for(HF_CALLER) != nullptr);
  return scan(open_directory_at(directory, path), list, select, compare, readdir);
}
HF_DOOR int scandirat64(int directory, const char* path, dirent64*** list, int (*select)(const dirent64*),
                        int (*compare)(const dirent64**, const dirent64**)) {
  HF_ALIKE(directory, path);
  const ForProgram asking(replica_for(HF_CALLER) != nullptr);
  return scan(open_directory_at(directory, path), list, select, compare, readdir64);
}

HF_DOOR int glob(const char* pattern, int flags, int (*error)(const char*, int), glob_t* result) noexcept {
  HF_ALIKE(AT_FDCWD, pattern);
  const ForProgram asking(replica_for(HF_CALLER) != nullptr);
  return glob_by(
      pattern, flags, error, result, [](void* stream) { return readdir(static_cast<DIR*>(stream)); }, &stat, &lstat, real().glob);
}
HF_DOOR int glob64(const char* pattern, int flags, int (*error)(const char*, int), glob64_t* result) noexcept {
  HF_ALIKE(AT_FDCWD, pattern);
  const ForProgram asking(replica_for(HF_CALLER) != nullptr);
  return glob_by(
      pattern, flags, error, result, [](void* stream) { return readdir64(static_cast<DIR*>(stream)); }, &stat64, &lstat64, real().glob64);
}
