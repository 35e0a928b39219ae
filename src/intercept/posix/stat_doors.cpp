// Doors that describe: the stat family and access. A protected file has the size of its content.
#include <fmt/format.h>
#include <sys/sysmacros.h>

#include "catalog/user_files.hpp"
#include "intercept/posix/alike.hpp"
#include "intercept/posix/checkpoints.hpp"
#include "intercept/posix/decided.hpp"
#include "intercept/posix/descriptor_names.hpp"
#include "intercept/posix/door.hpp"
#include "intercept/posix/tree_of_process.hpp"

namespace {

using namespace holdfast::intercept::posix;
using holdfast::Kind;
using holdfast::frontend::posix::ProcessFile;
namespace tree = holdfast::tree;

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

bool stub_sized(const struct statx& state) { return holdfast::intercept::posix::stub_sized(state.stx_mode, off_t(state.stx_size)); }
template <class Stat>
bool stub_sized(const Stat& state) {
  return holdfast::intercept::posix::stub_sized(state.st_mode, state.st_size);
}

// What stands behind a number that came through exec: memory of ours, which has no name.
constexpr auto memory_bytes = holdfast::frontend::posix::open_state_bytes;
bool memory_sized(const struct statx& state) { return state.stx_size == memory_bytes && state.stx_nlink == 0; }
template <class Stat>
bool memory_sized(const Stat& state) {
  return state.st_size == off_t(memory_bytes) && state.st_nlink == 0;
}

using tree::Identity;
template <class Stat>
void set_identity(Stat& state, Identity is) {
  state.st_ino = is.inode;
  if (is.device) state.st_dev = is.device;
}
void set_identity(struct statx& state, Identity is) {
  state.stx_ino = is.inode;
  if (!is.device) return;
  state.stx_dev_major = major(is.device);
  state.stx_dev_minor = minor(is.device);
}

// A file is changed when it is written, not when that arrives at its entry.
constexpr int64_t ns_of_s = 1000000000;
template <class Time>
void make_later(Time& time, int64_t ns) {
  if (time.tv_sec * ns_of_s + time.tv_nsec >= ns) return;
  time.tv_sec = ns / ns_of_s;
  time.tv_nsec = decltype(time.tv_nsec)(ns % ns_of_s);
}
template <class Stat>
void show_written(Stat& state, int64_t ns) {
  make_later(state.st_mtim, ns);
  make_later(state.st_ctim, ns);
}
void show_written(struct statx& state, int64_t ns) {
  make_later(state.stx_mtime, ns);
  make_later(state.stx_ctime, ns);
}

// As this process sees it. -1 and errno, with one line on standard error. `copy`: a whole copy stands there.
template <class Stat>
int fill_in(const std::string& path, Stat* into, bool copy = false) {
  const OurCode ours_now;
  const auto seen = tree_of_process().stat(path, copy);
  if (!seen) {
    if (seen.status().kind() != Kind::not_found) complain(path, seen.status().sentence());
    return errno = seen.status().to_errno(), -1;
  }
  set_size(*into, seen->size);
  if (seen->is.inode) set_identity(*into, seen->is);
  show_written(*into, seen->written_ns);
  return 0;
}

void set_mode(struct statx& state, mode_t mode) { state.stx_mode = uint16_t((state.stx_mode & ~07777) | mode); }
template <class Stat>
void set_mode(Stat& state, mode_t mode) {
  state.st_mode = (state.st_mode & ~mode_t(07777)) | mode;
}

uint64_t device_of(const struct statx& state) { return makedev(state.stx_dev_major, state.stx_dev_minor); }
uint64_t inode_of(const struct statx& state) { return state.stx_ino; }
template <class Stat>
uint64_t device_of(const Stat& state) {
  return state.st_dev;
}
template <class Stat>
uint64_t inode_of(const Stat& state) {
  return state.st_ino;
}

// A plain file with buffers before it is as long as what this process has written.
template <class Stat>
void show_buffered(Stat& state) {
  const OurCode ours_now;
  const auto file = ProcessFile::find(ProcessFile::plain_id(device_of(state), inode_of(state)));
  if (!file) return;
  if (auto size = file->size()) set_size(state, *size);
  show_written(state, file->written_ns());
}

bool is_link(const struct statx& state) { return S_ISLNK(state.stx_mode); }
template <class Stat>
bool is_link(const Stat& state) {
  return S_ISLNK(state.st_mode);
}

template <class Stat, class Native>
int describe_number(int fd, Stat* into, Native native);

// As by a descriptor of it.
template <class Stat>
void show_growing(Stat& state, const std::string& id, int directory, const char* path) {
  const OurCode ours_now;
  struct stat above;
  Identity is = tree::identity_of(id, {});
  const std::string parent = holdfast::catalog::parent_of(holdfast::catalog::absolute_path(full_path(directory, path)));
  if (holdfast::raw::fstatat(AT_FDCWD, parent.c_str(), &above, 0) == 0) is.device = above.st_dev;
  set_identity(state, is);
}

std::string in_place_of_lost_entry(const std::string& path) {
  const OurCode ours_now;
  return tree::in_place_of_lost_entry(path);
}

// By path. `native(directory, path, flags)` describes whatever is there. A link to a whole copy is a file.
template <class Stat, class Native>
int describe_named(int directory, const char* path, int flags, Stat* into, Native native) {
  if (const int number = flags & AT_SYMLINK_NOFOLLOW ? -1 : served_number_named(path); number >= 0)
    return describe_number(number, into, [=](const char* at) { return native(AT_FDCWD, at ? at : path, flags); });
  if (const SeenAt seen = describe_checkpoint(directory, path, !(flags & AT_SYMLINK_NOFOLLOW)); !seen.natively) {
    const int result = call_where_it_is(seen, directory, path, [&](const char* at) { return native(AT_FDCWD, at, flags); });
    if (result == 0 && into && !seen.grows.empty()) show_growing(*into, seen.grows, directory, path);
    return result;
  }
  int result = native(directory, path, flags);
  if (inside > 0 || !path || !into) return result;
  if (result == 0 && (flags & AT_SYMLINK_NOFOLLOW) && is_link(*into) && is_link_of_ours(directory, path))
    result = native(directory, path, flags &= ~AT_SYMLINK_NOFOLLOW);
  const bool follow = !(flags & AT_SYMLINK_NOFOLLOW);
  if (result == 0) {
    if (ProcessFile::any_plain()) show_buffered(*into);
    mode_t mode = 0;
    const bool stub = stub_sized(*into) && is_stub_at(directory, path, &mode);
    const bool ours = stub || (ProcessFile::any_written() && follow && is_protected(directory, path));
    if (stub) set_mode(*into, mode);
    return ours ? fill_in(full_path(directory, path), into, !stub) : result;
  }
  if (!follow && errno != ENOENT) return result;
  if (!is_protected_after(errno, directory, path)) return result;
  const std::string full = full_path(directory, path);
  if (native(AT_FDCWD, in_place_of_lost_entry(full).c_str(), 0) != 0) return -1;
  return fill_in(full, into);
}

// Replicas look one after another; what the first of them has seen all are told.
template <class Stat, class Native>
int describe(const void* caller, int directory, const char* path, int flags, Stat* into, Native native) {
  const int result = observed_name(Counter::stats, directory, path, [=] { return describe_named(directory, path, flags, into, native); });
  holdfast::redundant::Replica* const replica = replica_for(caller);
  if (!replica || !path || !into) [[likely]]
    return result;
  const OurCode ours_now;
  const int error = errno;
  const std::string name = name_asked(*replica, directory, path);
  errno = error;
  return name.empty() ? result : told(*replica, flags & AT_SYMLINK_NOFOLLOW ? "lstat" : "stat", name, result, into, sizeof *into);
}

// What stands at its path is described, with its own size and number; where nothing stands there any more, an ordinary file is.
template <class Stat>
void become_regular(Stat& state, uint64_t device) {
  state.st_mode = S_IFREG | 0644;
  state.st_nlink = 1;
  state.st_dev = device;
}
void become_regular(struct statx& state, uint64_t device) {
  state.stx_mode = S_IFREG | 0644;
  state.stx_nlink = 1;
  state.stx_dev_major = unsigned(device >> 8);
  state.stx_dev_minor = unsigned(device & 0xff);
}

bool regular(const struct statx& state) { return S_ISREG(state.stx_mode); }
template <class Stat>
bool regular(const Stat& state) {
  return S_ISREG(state.st_mode);
}

// By descriptor; also one that came through exec. `native(path)` describes the entry at a path, or the descriptor where that is null.
template <class Stat, class Native>
int describe_number(int fd, Stat* into, Native native) {
  const int result = native(nullptr);
  if (result != 0 || inside > 0 || !into) return result;
  auto description = find(fd);
  if (!description && memory_sized(*into)) description = adopt(fd);
  if (!description) return result;
  const OurCode ours_now;
  auto size = description->size();
  if (!size) return fail(*description, size.status());
  if (description->is_plain()) {
    auto own = description->native_descriptor();
    if (!own || native(fmt::format("/proc/self/fd/{}", *own).c_str()) != 0) return -1;
    set_size(*into, *size);
    show_written(*into, description->written_ns());
    return 0;
  }
  const bool there = native(description->path().c_str()) == 0 && regular(*into);
  mode_t mode = 0;
  if (!there) become_regular(*into, description->device());
  else if (stub_sized(*into) && is_stub_at(AT_FDCWD, description->path().c_str(), &mode)) set_mode(*into, mode);
  if (const auto own = description->mode()) set_mode(*into, *own);
  set_size(*into, *size);
  set_identity(*into, tree::identity_of(description->file_id(), description->identity_of_copy()));
  show_written(*into, description->written_ns());
  return 0;
}

template <class Stat, class Native>
int describe_open(const void* caller, int fd, Stat* into, Native native) {
  const int result = observed(fd, {Counter::stats}, [=] { return describe_number(fd, into, native); });
  holdfast::redundant::Replica* const replica = replica_for(caller);
  if (!replica || !into || result != 0) [[likely]]
    return result;
  const OurCode ours_now;
  const KeepErrno keep;
  const std::string name = name_of_number(fd);
  return name.empty() ? result : told(*replica, "fstat", name, result, into, sizeof *into);
}

bool means_descriptor(const char* path, int flags) { return (flags & AT_EMPTY_PATH) && path && !*path; }

template <class Stat, class Native>
int describe_at(const void* caller, int directory, const char* path, Stat* into, int flags, Native native) {
  if (means_descriptor(path, flags))
    return describe_open(caller, directory, into, [=](const char* at) { return at ? native(AT_FDCWD, at, flags) : native(directory, path, flags); });
  return describe(caller, directory, path, flags, into, native);
}

template <class Native>
int look_for_access(int directory, const char* path, int wanted, int flags, Native native) {
  return observed_name(Counter::stats, directory, path, [=] {
    if (const SeenAt seen = describe_checkpoint(directory, path, !(flags & AT_SYMLINK_NOFOLLOW)); !seen.natively)
      return call_where_it_is(seen, directory, path, [=](const char* at) { return real().faccessat(AT_FDCWD, at, wanted, flags); });
    const int result = native();
    if (result == 0 || inside > 0) return result;
    if (errno == EACCES && (wanted & W_OK) && path && is_stub_at(directory, path)) return access_of_file(directory, path, wanted, flags & AT_EACCESS);
    if (!is_protected_after(errno, directory, path)) return result;
    return 0;  // its entry is gone or leads to a lost target; the file is there
  });
}

template <class Native>
int may_access(int directory, const char* path, int wanted, int flags, const void* caller, Native native) {
  const int result = look_for_access(directory, path, wanted, flags, native);
  holdfast::redundant::Replica* const replica = replica_for(caller);
  if (!replica || !path) [[likely]]
    return result;
  const OurCode ours_now;
  const int error = errno;
  const std::string name = name_asked(*replica, directory, path);
  errno = error;
  return name.empty() ? result : told(*replica, "access", name, result, nullptr, 0);
}

}  // namespace

HF_DOOR int stat(const char* path, struct stat* into) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return describe(HF_CALLER, AT_FDCWD, path, 0, into, [=](int at, const char* name, int flags) { return real().fstatat(at, name, into, flags); });
}
HF_DOOR int stat64(const char* path, struct stat64* into) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return describe(HF_CALLER, AT_FDCWD, path, 0, into, [=](int at, const char* name, int flags) { return real().fstatat64(at, name, into, flags); });
}
HF_DOOR int lstat(const char* path, struct stat* into) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return describe(HF_CALLER, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, into,
                  [=](int at, const char* name, int flags) { return real().fstatat(at, name, into, flags); });
}
HF_DOOR int lstat64(const char* path, struct stat64* into) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return describe(HF_CALLER, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, into,
                  [=](int at, const char* name, int flags) { return real().fstatat64(at, name, into, flags); });
}
HF_DOOR int fstat(int fd, struct stat* into) noexcept {
  return describe_open(HF_CALLER, fd, into, [=](const char* path) { return path ? real().stat(path, into) : real().fstat(fd, into); });
}
HF_DOOR int fstat64(int fd, struct stat64* into) noexcept {
  return describe_open(HF_CALLER, fd, into, [=](const char* path) { return path ? real().stat64(path, into) : real().fstat64(fd, into); });
}
HF_DOOR int fstatat(int directory, const char* path, struct stat* into, int flags) noexcept {
  HF_ALIKE(directory, path);
  return describe_at(HF_CALLER, directory, path, into, flags, [=](int at, const char* name, int how) { return real().fstatat(at, name, into, how); });
}
HF_DOOR int fstatat64(int directory, const char* path, struct stat64* into, int flags) noexcept {
  HF_ALIKE(directory, path);
  return describe_at(HF_CALLER, directory, path, into, flags,
                     [=](int at, const char* name, int how) { return real().fstatat64(at, name, into, how); });
}
HF_DOOR int statx(int directory, const char* path, int flags, unsigned mask, struct statx* into) noexcept {
  HF_ALIKE(directory, path);
  return describe_at(HF_CALLER, directory, path, into, flags,
                     [=](int at, const char* name, int how) { return real().statx(at, name, how, mask, into); });
}
HF_DOOR int __xstat(int version, const char* path, struct stat* into) {
  HF_ALIKE(AT_FDCWD, path);
  return describe(HF_CALLER, AT_FDCWD, path, 0, into,
                  [=](int at, const char* name, int flags) { return real().__fxstatat(version, at, name, into, flags); });
}
HF_DOOR int __xstat64(int version, const char* path, struct stat64* into) {
  HF_ALIKE(AT_FDCWD, path);
  return describe(HF_CALLER, AT_FDCWD, path, 0, into,
                  [=](int at, const char* name, int flags) { return real().__fxstatat64(version, at, name, into, flags); });
}
HF_DOOR int __lxstat(int version, const char* path, struct stat* into) {
  HF_ALIKE(AT_FDCWD, path);
  return describe(HF_CALLER, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, into,
                  [=](int at, const char* name, int flags) { return real().__fxstatat(version, at, name, into, flags); });
}
HF_DOOR int __lxstat64(int version, const char* path, struct stat64* into) {
  HF_ALIKE(AT_FDCWD, path);
  return describe(HF_CALLER, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, into,
                  [=](int at, const char* name, int flags) { return real().__fxstatat64(version, at, name, into, flags); });
}
HF_DOOR int __fxstat(int version, int fd, struct stat* into) {
  return describe_open(HF_CALLER, fd, into,
                       [=](const char* path) { return path ? real().__xstat(version, path, into) : real().__fxstat(version, fd, into); });
}
HF_DOOR int __fxstat64(int version, int fd, struct stat64* into) {
  return describe_open(HF_CALLER, fd, into,
                       [=](const char* path) { return path ? real().__xstat64(version, path, into) : real().__fxstat64(version, fd, into); });
}
HF_DOOR int __fxstatat(int version, int directory, const char* path, struct stat* into, int flags) {
  HF_ALIKE(directory, path);
  return describe_at(HF_CALLER, directory, path, into, flags,
                     [=](int at, const char* name, int how) { return real().__fxstatat(version, at, name, into, how); });
}
HF_DOOR int __fxstatat64(int version, int directory, const char* path, struct stat64* into, int flags) {
  HF_ALIKE(directory, path);
  return describe_at(HF_CALLER, directory, path, into, flags,
                     [=](int at, const char* name, int how) { return real().__fxstatat64(version, at, name, into, how); });
}

namespace {

int may_effectively(const char* path, int mode, const void* caller) {
  return may_access(AT_FDCWD, path, mode, AT_EACCESS, caller, [=] { return real().faccessat(AT_FDCWD, path, mode, AT_EACCESS); });
}

}  // namespace

HF_DOOR int euidaccess(const char* path, int mode) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return may_effectively(path, mode, HF_CALLER);
}
HF_DOOR int eaccess(const char* path, int mode) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return may_effectively(path, mode, HF_CALLER);
}

// The doors whose chain stands in gen/libc_functions.txt.
#include "stat_doors.inc"
