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
#include "file/coordinated/alike.hpp"
#include "frontend/mpi/file.hpp"

namespace holdfast::frontend {

namespace {

void say_once(const std::string& path, const std::string& remark) {
  static std::mutex mutex;
  static auto* said = new std::set<std::string>;
  std::lock_guard lock(mutex);
  if (said->insert(path).second) say(path + ": " + remark);
}

// As all replicas name it.
std::string alike(std::string path) {
  const redundant::Replica* const replica = file::program_has_its_number.load() ? redundant::Replica::now() : nullptr;
  return replica ? file::named_alike(*replica, std::move(path)) : path;
}

}  // namespace

void say_once_of_hints(const std::string& path, const Settings& settings) {
  static std::atomic<bool> said{false};
  if (settings.hint_remarks.empty() || said.exchange(true)) return;
  say(fmt::format("{}: {}", path, fmt::join(settings.hint_remarks, "; ")));
}

std::string path_of_filename(const char* filename) {
  std::string path = alike(filename);
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

tree::Way decide(const std::string& path, int amode, const Settings& settings, Fault& fault) {
  const tree::Opening opening{.writes = (amode & (MPI_MODE_WRONLY | MPI_MODE_RDWR)) != 0,
                              .creates = (amode & MPI_MODE_CREATE) != 0,
                              .exclusive = (amode & MPI_MODE_EXCL) != 0};
  const tree::Decision decision = tree::decide(path, {catalog::kind_of(path)}, opening, settings, tree::mpi_io);
  if (!decision.remark.empty()) say_once(path, decision.remark);
  if (decision.way == tree::Way::as_without) return decision.way;  // contradictions are MPI's to refuse
  fault = check_amode(amode);
  if (fault.ok()) fault = Fault(decision.refusal);
  return fault.ok() ? decision.way : tree::Way::refuse;
}

}  // namespace holdfast::frontend
