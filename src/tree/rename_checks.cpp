#include "tree/rename_checks.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/raw_syscalls.hpp"
#include "catalog/user_files.hpp"

namespace holdfast::tree {

namespace {

bool ends_in_slash(const std::string& path) { return path.ends_with('/'); }

// The directory that a name is in. False, and errno, where it cannot be looked at.
bool look_at_parent(const std::string& path, std::string& parent, struct stat& state) {
  parent = catalog::parent_of(catalog::absolute_path(path));
  if (raw::fstatat(AT_FDCWD, parent.c_str(), &state, 0) != 0) return false;
  return S_ISDIR(state.st_mode) || (errno = ENOTDIR, false);
}

// An older kernel does not know the call, and says so.
bool may_be_changed(const std::string& directory) {
  const int allowed = int(syscall(SYS_faccessat2, AT_FDCWD, directory.c_str(), W_OK | X_OK, AT_EACCESS));
  return allowed == 0 || (errno != EACCES && errno != EROFS);
}

}  // namespace

int refusal_of_rename(const Name& from, const Name& to) {
  std::string from_directory, to_directory;
  struct stat from_parent, to_parent, source, there;
  if (!look_at_parent(from.path, from_directory, from_parent) || !look_at_parent(to.path, to_directory, to_parent)) return errno;
  if (from_parent.st_dev != to_parent.st_dev) return EXDEV;
  const bool is_there = raw::fstatat(AT_FDCWD, from.path.c_str(), &source, AT_SYMLINK_NOFOLLOW) == 0;
  if (!is_there && !from.is_protected) return errno;  // a protected file may have lost its entry
  const bool is_directory = is_there && S_ISDIR(source.st_mode);
  if (!is_directory && (ends_in_slash(from.path) || ends_in_slash(to.path))) return ENOTDIR;
  if (!may_be_changed(from_directory) || !may_be_changed(to_directory)) return errno;
  if (is_directory) return to.is_protected ? ENOTDIR : 0;
  const bool over_directory = raw::fstatat(AT_FDCWD, to.path.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(there.st_mode);
  return over_directory ? EISDIR : 0;
}

}  // namespace holdfast::tree
