// ftw(3) and nftw(3) in a redundant job: the C library's own walk asks by calls of its own, which pass no door. This one asks by the doors.
#pragma once
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/raw_syscalls.hpp"

namespace holdfast::intercept::posix {

inline int state_of(const std::string& path, struct stat* into, bool follow) { return follow ? stat(path.c_str(), into) : lstat(path.c_str(), into); }
inline int state_of(const std::string& path, struct stat64* into, bool follow) {
  return follow ? stat64(path.c_str(), into) : lstat64(path.c_str(), into);
}

// `visit(path, state, kind, where)`; paths are shown as the program has begun them, and asked about from the root. The walk may change the working
// directory.
template <class Stat, class Visit>
class ToldWalk {
 public:
  ToldWalk(std::string shown, std::string absolute, int flags, Visit visit)
      : shown_(std::move(shown)), absolute_(std::move(absolute)), flags_(flags), visit_(std::move(visit)) {}

  int walk() {
    Stat state{};
    if (state_of(absolute_, &state, !has(FTW_PHYS)) != 0) return -1;
    device_ = state.st_dev;
    const int said = go_to("", state.st_mode, state, 0);
    return has(FTW_ACTIONRETVAL) && (said == FTW_SKIP_SUBTREE || said == FTW_SKIP_SIBLINGS) ? 0 : said;
  }

 private:
  bool has(int flag) const { return (flags_ & flag) != 0; }
  int tell(const std::string& rest, const Stat& state, int kind, int level) const {
    const std::string path = shown_ + rest;
    const size_t slash = path.rfind('/');
    const bool is_root = slash == std::string::npos || path.size() == 1;
    const FTW where{is_root ? 0 : int(slash + 1), level};
    return visit_(path.c_str(), &state, kind, &where);
  }
  bool skips_subtree(int said) const { return has(FTW_ACTIONRETVAL) && said == FTW_SKIP_SUBTREE; }

  int look_at(const std::string& rest, int level) {
    Stat state{};
    const std::string path = absolute_ + rest;
    if (state_of(path, &state, !has(FTW_PHYS)) == 0) return go_to(rest, state.st_mode, state, level);
    if (errno != EACCES && errno != ENOENT) return -1;
    const bool dangles = !has(FTW_PHYS) && state_of(path, &state, false) == 0 && S_ISLNK(state.st_mode);
    const int said = tell(rest, state, dangles ? FTW_SLN : FTW_NS, level);
    return skips_subtree(said) ? 0 : said;
  }

  int go_to(const std::string& rest, mode_t mode, const Stat& state, int level) {
    if (!S_ISDIR(mode)) {
      const int said = tell(rest, state, S_ISLNK(mode) ? FTW_SL : FTW_F, level);
      return skips_subtree(said) ? 0 : said;
    }
    if (has(FTW_MOUNT) && state.st_dev != device_) return 0;
    if (!has(FTW_PHYS) && !met_.insert({state.st_dev, state.st_ino}).second) return 0;
    return into(rest, state, level);
  }

  int into(const std::string& rest, const Stat& state, int level) {
    DIR* const stream = opendir((absolute_ + rest).c_str());
    if (!stream) return errno == EACCES ? tell(rest, state, FTW_DNR, level) : -1;
    int said = has(FTW_DEPTH) ? 0 : tell(rest, state, FTW_D, level);
    if (said != 0) return (void)closedir(stream), skips_subtree(said) ? 0 : said;
    std::vector<std::string> names;
    while (const dirent64* const entry = readdir64(stream)) names.emplace_back(entry->d_name);
    const raw::Fd before(has(FTW_CHDIR) ? raw::openat(AT_FDCWD, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1);
    if (has(FTW_CHDIR)) (void)!fchdir(dirfd(stream));
    (void)closedir(stream);
    for (const std::string& name : names) {
      if (said != 0) break;
      if (name != "." && name != "..") said = look_at((shown_ + rest).ends_with('/') ? rest + name : rest + "/" + name, level + 1);
    }
    if (has(FTW_CHDIR)) (void)!fchdir(before.get());
    if (has(FTW_ACTIONRETVAL) && (said == FTW_SKIP_SIBLINGS || said == FTW_SKIP_SUBTREE)) said = 0;
    return said == 0 && has(FTW_DEPTH) ? tell(rest, state, FTW_DP, level) : said;
  }

  const std::string shown_, absolute_;
  const int flags_;
  const Visit visit_;
  dev_t device_ = 0;
  std::set<std::pair<dev_t, ino_t>> met_;
};

}  // namespace holdfast::intercept::posix
