#include "tree/look.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "base/keep_errno.hpp"
#include "base/raw_syscalls.hpp"
#include "catalog/entry.hpp"
#include "catalog/stub.hpp"

namespace holdfast::tree {

namespace {

// No stub is shorter: its words alone are more than this.
constexpr off_t smallest_stub = 256;

bool has_sidecar(int directory, const char* path) {
  const std::string_view whole(path);
  const size_t slash = whole.rfind('/');
  const std::string_view parent = slash == std::string_view::npos ? "" : whole.substr(0, slash + 1);
  const std::string_view name = slash == std::string_view::npos ? whole : whole.substr(slash + 1);
  constexpr std::string_view tail = ".holdfast/manifest";
  char sidecar[PATH_MAX];
  if (name.empty() || name == "." || name == ".." || whole.size() + tail.size() + 2 > sizeof sidecar) return false;
  char* end = sidecar;
  auto add = [&end](std::string_view text) { end = static_cast<char*>(mempcpy(end, text.data(), text.size())); };
  add(parent);
  add(".");
  add(name);
  add(tail);
  *end = '\0';
  return raw::faccessat(directory, sidecar, F_OK) == 0;
}

// Of an open stub.
mode_t mode_of_file(int stub) {
  char text[catalog::max_stub_bytes];
  struct stat state;
  if (raw::fstat(stub, &state) != 0) return 0;
  const ssize_t length = raw::pread(stub, text, sizeof text, 0);
  return catalog::own_mode(state.st_mode, catalog::mode_in_stub({text, length > 0 ? size_t(length) : 0}));
}

constexpr int longest_link_chain = 40;  // as the kernel

// `path` is a link of the user's. Whether a protected file stands where it leads in the end.
bool leads_to_protected(int directory, std::string path) {
  for (int i = 0; i < longest_link_chain; ++i) {
    char leads_to[PATH_MAX];
    const ssize_t length = raw::readlinkat(directory, path.c_str(), leads_to, sizeof leads_to);
    if (length <= 0) return is_protected(directory, path.c_str(), false);
    const std::string_view next(leads_to, size_t(length));
    if (catalog::is_own_link(next)) return true;
    const size_t slash = next.front() == '/' ? std::string::npos : path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash + 1);
    path += next;
  }
  return false;
}

}  // namespace

bool stub_sized(mode_t mode, off_t size) { return S_ISREG(mode) && size >= smallest_stub && size <= off_t(catalog::max_stub_bytes); }

bool is_stub(int fd) {
  const KeepErrno keep;
  struct stat state;
  if (raw::fstat(fd, &state) != 0 || !stub_sized(state.st_mode, state.st_size)) return false;
  char beginning[catalog::stub_line.size()];
  return raw::pread(fd, beginning, sizeof beginning, 0) == ssize_t(sizeof beginning) &&
         std::memcmp(beginning, catalog::stub_line.data(), sizeof beginning) == 0;
}

bool is_stub_at(int directory, const char* path, mode_t* mode) {
  const KeepErrno keep;
  constexpr int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  raw::Fd file(raw::openat(directory, path, flags | O_NOATIME));  // to the program nobody has read the file
  if (!file && errno == EPERM) file = raw::Fd(raw::openat(directory, path, flags));
  if (!file || !is_stub(file.get())) return false;
  if (mode) *mode = mode_of_file(file.get());
  return true;
}

bool is_link_of_ours(int directory, const char* path) {
  const KeepErrno keep;
  char leads_to[PATH_MAX];
  const ssize_t length = raw::readlinkat(directory, path, leads_to, sizeof leads_to);
  return length > 0 && catalog::is_own_link({leads_to, size_t(length)});
}

bool is_protected(int directory, const char* path, bool follow) {
  const KeepErrno keep;
  struct stat state;
  if (raw::fstatat(directory, path, &state, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT && has_sidecar(directory, path);
  if (S_ISLNK(state.st_mode)) {
    if (is_link_of_ours(directory, path)) return true;
    return follow && leads_to_protected(directory, path);
  }
  if (!S_ISREG(state.st_mode)) return false;
  return (stub_sized(state.st_mode, state.st_size) && is_stub_at(directory, path)) || has_sidecar(directory, path);
}

bool is_protected_after(int error, int directory, const char* path) {
  switch (error) {
    case ENOENT:
    case EIO:
    case ESTALE:
    case ENOTCONN:
    case ENODEV:
    case ETIMEDOUT:
    case EHOSTDOWN:
    case ELOOP: return path && *path && is_protected(directory, path);
    default: return false;
  }
}

}  // namespace holdfast::tree
