#include "frontend/mpi/policy.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>
#include <mutex>
#include <set>

#include <fmt/ranges.h>

#include "catalog/catalog.hpp"
#include "frontend/mpi/file.hpp"
#include "target/lock_reach.hpp"

namespace holdfast::frontend {

bool names(const Settings& settings, const std::string& path) {
  return settings.path_globs.empty() ||
         std::any_of(settings.path_globs.begin(), settings.path_globs.end(), [&](const std::string& glob) { return glob_matches(glob, path); });
}

namespace {

void say_once_unprotected(const std::string& path) {
  static std::mutex mutex;
  static auto* said = new std::set<std::string>;
  std::lock_guard lock(mutex);
  if (!said->insert(path).second) return;
  say(path + ": exists and is not protected, and stays so; to protect it run: holdfast import " + path + " NEW");
}

}  // namespace

void say_once_of_hints(const std::string& path, const Settings& settings) {
  static std::atomic<bool> said{false};
  if (settings.hint_remarks.empty() || said.exchange(true)) return;
  say(fmt::format("{}: {}", path, fmt::join(settings.hint_remarks, "; ")));
}

namespace {

Decision decide_existing(int amode) {
  if (const Fault fault = check_amode(amode); !fault.ok()) return {Way::fail, fault};
  if ((amode & MPI_MODE_CREATE) && (amode & MPI_MODE_EXCL)) return {Way::fail, Fault(MPI_ERR_FILE_EXISTS)};
  return {Way::locate, {}};
}

}  // namespace

const Result<Settings>& process_settings() {
  static const auto* loaded = [] {
    auto* settings = new Result<Settings>(Settings::load());
    if (settings->ok()) target::choose_lock_way((*settings)->locks);
    return settings;
  }();
  return *loaded;
}

std::string absolute_path(const char* filename) {
  std::string path = filename;
  // ROMIO lets programs name the kind of file system before the path.
  static const char* const kinds[] = {"ufs:",   "nfs:", "lustre:", "gpfs:",   "panfs:", "pvfs2:", "xfs:", "pfs:",
                                      "piofs:", "hfs:", "sfs:",    "testfs:", "ftp:",   "daos:",  "ime:", "quobytefs:"};
  for (const char* kind : kinds) {
    if (path.rfind(kind, 0) == 0) path.erase(0, std::strlen(kind));
  }
  if (!path.empty() && path[0] == '/') return path;
  char here[PATH_MAX];
  if (getcwd(here, sizeof here) == nullptr) return path;
  while (path.rfind("./", 0) == 0) path.erase(0, 2);
  return std::string(here) + "/" + path;
}

Fault check_amode(int amode) {
  const int ways = ((amode & MPI_MODE_RDONLY) != 0) + ((amode & MPI_MODE_WRONLY) != 0) + ((amode & MPI_MODE_RDWR) != 0);
  if (ways != 1) return Fault(MPI_ERR_AMODE);
  if ((amode & MPI_MODE_RDONLY) && (amode & (MPI_MODE_CREATE | MPI_MODE_EXCL))) return Fault(MPI_ERR_AMODE);
  if ((amode & MPI_MODE_RDWR) && (amode & MPI_MODE_SEQUENTIAL)) return Fault(MPI_ERR_AMODE);
  return Fault();
}

Decision decide(const std::string& path, int amode, const Settings& settings) {
  const bool writes = (amode & (MPI_MODE_WRONLY | MPI_MODE_RDWR)) != 0;
  const bool wanted = settings.protects() && writes && names(settings, path);
  switch (catalog::kind_of(path)) {
    case catalog::PathKind::protected_file:
      // What a power cut has left of a creation is no file yet.
      if (!wanted || !(amode & MPI_MODE_CREATE) || !catalog::is_torn_creation(path)) return decide_existing(amode);
      break;
    case catalog::PathKind::plain:
      if (wanted && !(amode & MPI_MODE_EXCL)) say_once_unprotected(path);
      return {};
    case catalog::PathKind::other: return {};
    case catalog::PathKind::absent:
      if (!wanted || !(amode & MPI_MODE_CREATE)) return {};  // MPI has the right error, or makes the file
      break;
    case catalog::PathKind::empty:
      if (!wanted || (amode & MPI_MODE_EXCL)) return {};
      break;
  }
  if (const Fault fault = check_amode(amode); !fault.ok()) return {Way::fail, fault};
  if (const Status status = settings.check(); !status.ok()) return {Way::fail, Fault(status)};
  return {Way::create, {}};
}

}  // namespace holdfast::frontend
