// What include/holdfast/holdfast.h promises to programs that ask.
#define HOLDFAST_API __attribute__((visibility("default")))
#include <fcntl.h>

#include <cerrno>
#include <cstdio>

#include "catalog/catalog.hpp"
#include "engine/maintenance.hpp"
#include "holdfast/holdfast.h"
#include "intercept/posix/checkpoints.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"
#include "intercept/posix/settings.hpp"

namespace holdfast::intercept::posix {

namespace {

int health_of(const std::string& path, std::string& sentence) {
  auto located = catalog::locate(path, settings());
  if (!located && located.status().kind() == Kind::not_found) return HOLDFAST_NOT_PROTECTED;
  auto status = located ? engine::file_status(*located, settings()) : Result<engine::FileStatus>(located.status());
  if (!status) {
    sentence = status.status().sentence();
    return status.status().kind() == Kind::lost ? HOLDFAST_LOST : HOLDFAST_UNKNOWN;
  }
  for (const engine::MemberReport& member : status->members)
    if (member.state != "ok") sentence += (sentence.empty() ? "" : "; ") + member.path + " is " + member.state;
  return static_cast<int>(status->health);
}

}  // namespace
}  // namespace holdfast::intercept::posix

extern "C" const char* holdfast_version(void) { return HOLDFAST_VERSION; }

extern "C" int holdfast_file_health(const char* path, char* sentence, size_t bytes) {
  using namespace holdfast::intercept::posix;
  const int error = errno;
  const OurCode ours_now;
  std::string text;
  const int health = health_of(full_path(AT_FDCWD, path), text);
  if (sentence && bytes) std::snprintf(sentence, bytes, "%s", text.c_str());
  errno = error;
  return health;
}

extern "C" int holdfast_checkpoint_complete(unsigned long long step) {
  using namespace holdfast::intercept::posix;
  Checkpoints* const all = checkpoints();
  if (!all) return errno = ENOENT, -1;
  const OurCode ours_now;
  const auto done = all->complete(step);
  return done ? 0 : (errno = done.to_errno(), -1);
}
