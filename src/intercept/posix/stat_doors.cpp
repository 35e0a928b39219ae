// Doors that describe: the stat family and access. A protected file has the size of its content.
#include "base/raw_syscalls.hpp"
#include "catalog/catalog.hpp"
#include "catalog/user_files.hpp"
#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"
#include "intercept/posix/settings.hpp"

namespace {

using namespace holdfast::intercept::posix;
using holdfast::Kind;
namespace catalog = holdfast::catalog;
namespace raw = holdfast::raw;

constexpr uint64_t sector = 512;  // the unit of st_blocks

template <class Stat>
void set_size(Stat& state, uint64_t bytes) {
  state.st_size = decltype(state.st_size)(bytes);
  // Never sparse: programs would look for holes.
  state.st_blocks = decltype(state.st_blocks)((bytes + sector - 1) / sector);
  state.st_blksize = 1 << 20;
}
void set_size(struct statx& state, uint64_t bytes) {
  state.stx_size = bytes;
  state.stx_blocks = (bytes + sector - 1) / sector;
  state.stx_blksize = 1 << 20;
}

bool stub_sized(const struct statx& state) {
  return holdfast::intercept::posix::stub_sized(state.stx_mode, off_t(state.stx_size));
}
template <class Stat>
bool stub_sized(const Stat& state) {
  return holdfast::intercept::posix::stub_sized(state.st_mode, state.st_size);
}

// The logical size as of the last sync, from the manifest alone. -1 and errno, with one line on standard error.
int64_t logical_size(const std::string& path) {
  const OurCode ours_now;
  auto located = catalog::locate(path, settings());
  if (located) return int64_t(located->manifest.size);
  if (located.status().kind() != Kind::not_found) complain(path, located.status().sentence());
  return errno = located.status().to_errno(), -1;
}

// What a lost entry looked like: owner, times and permissions of the sidecar's manifest.
std::string sidecar_manifest(const std::string& path) {
  const OurCode ours_now;
  return catalog::sidecar_of(catalog::absolute_path(path)) + "/manifest";
}

// By path. `native(directory, path)` describes whatever is there.
template <class Stat, class Native>
int describe(int directory, const char* path, bool follow, Stat* into, Native native) {
  const int result = native(directory, path);
  if (inside > 0 || !path || !into) return result;
  if (result == 0) {
    if (!stub_sized(*into) || !is_stub_at(directory, path)) return result;
    const int64_t size = logical_size(full_path(directory, path));
    if (size < 0) return -1;
    set_size(*into, uint64_t(size));
    return 0;
  }
  if (!follow && errno != ENOENT) return result;
  if (!is_protected_after(errno, directory, path)) return result;
  const std::string full = full_path(directory, path);
  const int64_t size = logical_size(full);
  if (size < 0) return -1;
  if (native(AT_FDCWD, sidecar_manifest(full).c_str()) != 0) return -1;
  set_size(*into, uint64_t(size));
  return 0;
}

// By descriptor; also one that came through exec.
template <class Stat, class Native>
int describe_open(int fd, Stat* into, Native native) {
  const int result = native();
  if (result != 0 || inside > 0 || !into) return result;
  auto description = find(fd);
  if (!description && stub_sized(*into)) description = adopt(fd);
  if (!description) return result;
  if constexpr (requires { into->st_mode; }) {
    if (!S_ISREG(into->st_mode)) into->st_mode = S_IFREG | 0644;  // the number is held by a link or by /dev/null
  } else {
    if (!S_ISREG(into->stx_mode)) into->stx_mode = S_IFREG | 0644;
  }
  set_size(*into, description->size());
  return 0;
}

bool means_descriptor(const char* path, int flags) { return (flags & AT_EMPTY_PATH) && path && !*path; }

template <class Stat, class Native>
int describe_at(int directory, const char* path, Stat* into, int flags, Native native) {
  if (means_descriptor(path, flags)) return describe_open(directory, into, [=] { return native(directory, path); });
  return describe(directory, path, !(flags & AT_SYMLINK_NOFOLLOW), into, native);
}

int may_access(int directory, const char* path, int result) {
  if (result == 0 || inside > 0 || !is_protected_after(errno, directory, path)) return result;
  return 0;  // its entry is gone or leads to a lost target; the file is there
}

}  // namespace

HF_DOOR int stat(const char* path, struct stat* into) noexcept {
  return describe(AT_FDCWD, path, true, into, [=](int at, const char* name) { return real().fstatat(at, name, into, 0); });
}
HF_DOOR int stat64(const char* path, struct stat64* into) noexcept {
  return describe(AT_FDCWD, path, true, into, [=](int at, const char* name) { return real().fstatat64(at, name, into, 0); });
}
HF_DOOR int lstat(const char* path, struct stat* into) noexcept {
  return describe(AT_FDCWD, path, false, into, [=](int at, const char* name) {
    return real().fstatat(at, name, into, AT_SYMLINK_NOFOLLOW);
  });
}
HF_DOOR int lstat64(const char* path, struct stat64* into) noexcept {
  return describe(AT_FDCWD, path, false, into, [=](int at, const char* name) {
    return real().fstatat64(at, name, into, AT_SYMLINK_NOFOLLOW);
  });
}
HF_DOOR int fstat(int fd, struct stat* into) noexcept {
  return describe_open(fd, into, [=] { return real().fstat(fd, into); });
}
HF_DOOR int fstat64(int fd, struct stat64* into) noexcept {
  return describe_open(fd, into, [=] { return real().fstat64(fd, into); });
}
HF_DOOR int fstatat(int directory, const char* path, struct stat* into, int flags) noexcept {
  return describe_at(directory, path, into, flags,
                     [=](int at, const char* name) { return real().fstatat(at, name, into, flags); });
}
HF_DOOR int fstatat64(int directory, const char* path, struct stat64* into, int flags) noexcept {
  return describe_at(directory, path, into, flags,
                     [=](int at, const char* name) { return real().fstatat64(at, name, into, flags); });
}
HF_DOOR int statx(int directory, const char* path, int flags, unsigned mask, struct statx* into) noexcept {
  return describe_at(directory, path, into, flags,
                     [=](int at, const char* name) { return real().statx(at, name, flags, mask, into); });
}
HF_DOOR int __xstat(int version, const char* path, struct stat* into) {
  return describe(AT_FDCWD, path, true, into, [=](int at, const char* name) {
    return real().__fxstatat(version, at, name, into, 0);
  });
}
HF_DOOR int __xstat64(int version, const char* path, struct stat64* into) {
  return describe(AT_FDCWD, path, true, into, [=](int at, const char* name) {
    return real().__fxstatat64(version, at, name, into, 0);
  });
}
HF_DOOR int __lxstat(int version, const char* path, struct stat* into) {
  return describe(AT_FDCWD, path, false, into, [=](int at, const char* name) {
    return real().__fxstatat(version, at, name, into, AT_SYMLINK_NOFOLLOW);
  });
}
HF_DOOR int __lxstat64(int version, const char* path, struct stat64* into) {
  return describe(AT_FDCWD, path, false, into, [=](int at, const char* name) {
    return real().__fxstatat64(version, at, name, into, AT_SYMLINK_NOFOLLOW);
  });
}
HF_DOOR int __fxstat(int version, int fd, struct stat* into) {
  return describe_open(fd, into, [=] { return real().__fxstat(version, fd, into); });
}
HF_DOOR int __fxstat64(int version, int fd, struct stat64* into) {
  return describe_open(fd, into, [=] { return real().__fxstat64(version, fd, into); });
}
HF_DOOR int __fxstatat(int version, int directory, const char* path, struct stat* into, int flags) {
  return describe_at(directory, path, into, flags,
                     [=](int at, const char* name) { return real().__fxstatat(version, at, name, into, flags); });
}
HF_DOOR int __fxstatat64(int version, int directory, const char* path, struct stat64* into, int flags) {
  return describe_at(directory, path, into, flags,
                     [=](int at, const char* name) { return real().__fxstatat64(version, at, name, into, flags); });
}

HF_DOOR int access(const char* path, int mode) noexcept { return may_access(AT_FDCWD, path, real().access(path, mode)); }
HF_DOOR int faccessat(int directory, const char* path, int mode, int flags) noexcept {
  return may_access(directory, path, real().faccessat(directory, path, mode, flags));
}
