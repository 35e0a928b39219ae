#include "intercept/posix/children.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/keep_errno.hpp"
#include "base/raw_syscalls.hpp"
#include "catalog/user_files.hpp"
#include "frontend/posix/own_code.hpp"
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

}  // namespace

void tell_of_write(int directory, const char* path) {
  const frontend::posix::OurCode ours_now;
  const KeepErrno keep;
  const std::string full = catalog::absolute_path(full_path(directory, path));
  if (!is_a_result(full)) return;
  const bool is_shared = tree::sharing_of(full, settings()) == tree::Sharing::shared;
  if (frontend::posix::tell_of_write(full, is_shared)) is_child_of_replica = false;
}

}  // namespace holdfast::intercept::posix
