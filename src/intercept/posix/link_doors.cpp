// Doors that follow symbolic links: a link to a whole copy is the file itself, and leads nowhere.
#include <limits.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "base/in_mpi.hpp"
#include "intercept/posix/alike.hpp"
#include "intercept/posix/checkpoints.hpp"
#include "intercept/posix/descriptor_names.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"
#include "tree/list.hpp"

namespace {

using namespace holdfast::intercept::posix;

// Its file is not at its path. `errno` stays ENOENT where there is none.
std::optional<Checkpoints::File> checkpoint_there(int directory, const char* path, bool follow) {
  if (inside > 0 || !path || !*path) return {};
  const auto file = checkpoint_at(directory, path, follow);
  if (!file) return {};
  const SeenAt seen = holdfast::in_mpi_calls > 0 ? see_checkpoint_again(directory, path) : describe_checkpoint(directory, path, follow);
  return seen.natively || seen.path.empty() ? std::nullopt : file;
}

template <class Native>
ssize_t read_link(int directory, const char* path, char* into, size_t bytes, Native native) {
  if (const std::string shown = inside > 0 ? "" : path_shown(path); !shown.empty() && bytes > 0) {
    const size_t length = std::min(shown.size(), bytes);
    std::memcpy(into, shown.data(), length);
    return ssize_t(length);
  }
  const ssize_t result = native();
  if (result < 0 && errno == ENOENT && checkpoint_there(directory, path, false)) return errno = EINVAL, -1;
  if (result <= 0 || inside > 0 || !is_link_of_ours(directory, path)) return result;
  return errno = EINVAL, -1;
}

// Where a name of the kernel's for a descriptor leads; empty where that is not a file of ours.
std::string path_of_number(const char* path) {
  const int number = served_number_named(path);
  return number < 0 ? "" : path_shown(("/dev/fd/" + std::to_string(number)).c_str());
}

std::string end_at_own_link(const char* path) {
  const OurCode ours_now;
  return holdfast::tree::end_at_own_link(path);
}

// `into`: PATH_MAX bytes, or null for memory of malloc(3).
template <class Native>
char* real_path(const char* path, char* into, Native native) {
  char* const result = native();
  if (inside > 0 || !path || !*path) return result;
  const auto checkpoint = !result && errno == ENOENT ? checkpoint_there(AT_FDCWD, path, true) : std::nullopt;
  const int error = errno;
  const std::string at = checkpoint ? checkpoint->path : number_named(path) >= 0 ? path_of_number(path) : end_at_own_link(path);
  errno = error;
  if (at.empty() || at.size() >= PATH_MAX) return result;
  if (into) return std::strcpy(into, at.c_str());
  free(result);
  return strdup(at.c_str());
}

}  // namespace

HF_DOOR ssize_t readlink(const char* path, char* into, size_t bytes) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return read_link(AT_FDCWD, path, into, bytes, [=] { return real().readlink(path, into, bytes); });
}
HF_DOOR ssize_t readlinkat(int directory, const char* path, char* into, size_t bytes) noexcept {
  HF_ALIKE(directory, path);
  return read_link(directory, path, into, bytes, [=] { return real().readlinkat(directory, path, into, bytes); });
}
HF_DOOR ssize_t __readlink_chk(const char* path, char* into, size_t bytes, size_t room) {
  HF_ALIKE(AT_FDCWD, path);
  return read_link(AT_FDCWD, path, into, bytes, [=] { return real().__readlink_chk(path, into, bytes, room); });
}
HF_DOOR ssize_t __readlinkat_chk(int directory, const char* path, char* into, size_t bytes, size_t room) {
  HF_ALIKE(directory, path);
  return read_link(directory, path, into, bytes, [=] { return real().__readlinkat_chk(directory, path, into, bytes, room); });
}
HF_DOOR char* realpath(const char* path, char* into) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return real_path(path, into, [=] { return real().realpath(path, into); });
}
HF_DOOR char* __realpath_chk(const char* path, char* into, size_t room) {
  HF_ALIKE(AT_FDCWD, path);
  return real_path(path, into, [=] { return real().__realpath_chk(path, into, room); });
}
HF_DOOR char* canonicalize_file_name(const char* path) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return realpath(path, nullptr);
}
