#include "intercept/posix/own_failures.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "base/in_mpi.hpp"
#include "base/raw_syscalls.hpp"
#include "catalog/catalog.hpp"
#include "file/coordinated/alike.hpp"
#include "file/coordinated/coordinated.hpp"
#include "intercept/posix/checkpoints.hpp"
#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/observe.hpp"
#include "intercept/posix/paths.hpp"
#include "redundant/twins/replica.hpp"
#include "tree/mounts.hpp"

namespace holdfast::intercept::posix {

namespace {

redundant::Replica* replica_that_asks() { return in_mpi_calls > 0 ? nullptr : redundant::Replica::now(); }

std::string path_of_number(int fd) {
  char path[PATH_MAX];
  const ssize_t bytes = raw::readlinkat(AT_FDCWD, fmt::format("/proc/self/fd/{}", fd).c_str(), path, sizeof path);
  return {path, size_t(std::max<ssize_t>(bytes, 0))};
}

// Its directory may have another name on another node.
std::string name_in_all(const redundant::Replica& replica, const std::string& path) {
  const std::string alike = file::named_alike(replica, path);
  return alike.substr(alike.rfind('/') + 1);
}

int64_t ask(redundant::Replica& replica, const std::string& path, const std::string& call, int64_t answer) {
  const std::string error = answer < 0 ? std::strerror(errno) : "";
  const std::string why = answer < 0 ? fmt::format("{}: {}", path, error) : fmt::format("{}: a write was cut short after {} bytes", path, answer);
  const int64_t all = replica.answer_of_failure(file::subject_of(call, name_in_all(replica, path)), answer < 0 ? -errno : answer, why);
  if (all >= 0) return all;
  return errno = int(-all), -1;
}

}  // namespace

int64_t failure_of_all(int fd, int kind, int64_t place, int64_t answer) {
  const int error = errno;
  if (kind == int(Counter::writes_independent) || kind == int(Counter::syncs)) checkpoint_write_failed(fd, answer < 0 ? error : ENOSPC);
  redundant::Replica* const replica = replica_that_asks();
  struct stat state {};
  if (!replica || inside > 0 || is_watched(fd) || raw::fstat(fd, &state) != 0 || !S_ISREG(state.st_mode)) return errno = error, answer;
  const OurCode ours_now;
  const int64_t at = place >= 0 ? place : int64_t(raw::lseek(fd, 0, SEEK_CUR)) - std::max<int64_t>(answer, 0);
  const std::string path = path_of_number(fd);
  errno = error;
  if (tree::is_of_the_system(path)) return answer;
  return ask(*replica, path, fmt::format("{} at {}", kind, at), answer);
}

int failure_of_all(int directory, const char* path, int kind, int answer) {
  const int error = errno;
  redundant::Replica* const replica = replica_that_asks();
  if (!replica || !path || answer >= 0 || !may_be_alone(error)) return errno = error, answer;
  const OurCode ours_now;
  const std::string full = catalog::absolute_path(full_path(directory, path));
  errno = error;
  if (tree::is_of_the_system(full)) return answer;
  return int(ask(*replica, full, std::to_string(kind), answer));
}

}  // namespace holdfast::intercept::posix
