#include "intercept/posix/children.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/in_mpi.hpp"
#include "base/keep_errno.hpp"
#include "base/raw_syscalls.hpp"
#include "catalog/user_files.hpp"
#include "frontend/posix/appends_of_child.hpp"
#include "frontend/posix/own_code.hpp"
#include "frontend/posix/process_file.hpp"
#include "frontend/posix/taking_part.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/settings.hpp"
#include "profile/choice.hpp"
#include "tree/decide.hpp"
#include "tree/mounts.hpp"

namespace holdfast::intercept::posix {

namespace {

// Compilers' files and the like, which have a name of their own in each team. A job that runs there writes its results there.
bool is_scratch(const std::string& full) {
  std::error_code ignored;
  const std::string here = std::filesystem::current_path(ignored).string() + "/";
  return tree::is_temporary(full) && !full.starts_with(here);
}

bool is_a_result(const std::string& full) {
  constexpr const char* of_python = "/__pycache__/";
  struct stat state;
  if (raw::fstatat(AT_FDCWD, full.c_str(), &state, 0) == 0 && !S_ISREG(state.st_mode)) return false;
  return !tree::is_of_the_system(full) && !profile::is_of_the_system(full) && !is_scratch(full) && full.find(of_python) == std::string::npos;
}

std::atomic<bool> asks{false};

bool is_shared(const std::string& full) { return tree::sharing_of(full, settings()) == tree::Sharing::shared; }

}  // namespace

bool asks_before_appends() { return asks.load(std::memory_order_relaxed); }

void begins_as_child() {
  is_child_of_replica = true;
  if (!frontend::posix::is_asked_before_appends()) return;
  asks = true;
  ProcessFile::asks_before_appends([](const std::string& path) { return appends_for_all(path); });
}

// On nodes of their own teams have files of their own on a node's disk. Where they share the node they share these, too.
bool appends_for_all(const std::string& full) {
  if (!asks_before_appends()) [[likely]]
    return false;
  return is_a_result(full) && (is_shared(full) || !frontend::posix::is_of_teams_apart());
}

// Whoever makes a file, or cuts it, does so once more in each team: that is told of.
bool appends_for_all(int directory, const char* path, int flags) {
  if (!asks_before_appends()) [[likely]]
    return false;
  if (inside > 0 || in_mpi_calls > 0 || !path || !(flags & O_APPEND) || (flags & O_ACCMODE) == O_RDONLY || (flags & (O_TRUNC | O_EXCL | O_PATH)))
    return false;
  const frontend::posix::OurCode ours_now;
  return appends_for_all(catalog::absolute_path(full_path(directory, path)));
}

void tell_of_write(int directory, const char* path) {
  const frontend::posix::OurCode ours_now;
  const KeepErrno keep;
  const std::string full = catalog::absolute_path(full_path(directory, path));
  if (!is_a_result(full)) return;
  if (frontend::posix::tell_of_write(full, is_shared(full))) is_child_of_replica = false;
}

}  // namespace holdfast::intercept::posix
