#include "target/directory_root.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <cerrno>
#include <utility>

#include "base/own_numbers.hpp"
#include "target/kernel_calls.hpp"
#include "target/lock_reach.hpp"
#include "target/name.hpp"

namespace holdfast::target {

using raw::Fd;

namespace {

// What every open of a name below the root adds. O_NONBLOCK: a FIFO put in an object's place must not hang us.
constexpr int kAlways = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

// O_DIRECTORY says ENOTDIR for a symbolic link; say ELOOP, as openat2 does.
Fd name_link(int directory, const std::string& component) {
  const int reason = errno;
  struct stat found;
  bool link = reason == ENOTDIR && raw::fstatat(directory, component.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(found.st_mode);
  errno = link ? ELOOP : reason;
  return Fd();
}

}  // namespace

DirectoryRoot::DirectoryRoot(Fd fd, std::string path, const DirectoryOptions& options) : DirectoryRoot(std::move(fd), path, path, options, nullptr) {}

DirectoryRoot::DirectoryRoot(Fd fd, std::string path, std::string label, const DirectoryOptions& options, LookThere look)
    : fd_(raw::out_of_the_way(std::move(fd))),
      path_(std::move(path)),
      label_(std::move(label)),
      options_(options),
      look_(std::move(look)),
      use_openat2_(!options.without_openat2) {
  struct statfs found;
  const bool known = raw::fstatfs(fd_.get(), &found) == 0;
  is_memory_ = known && found.f_type == TMPFS_MAGIC;
  // One page cache for write() and for memory, and blocks that were allocated stay what they are (no copies on write).
  maps_ = known && (is_memory_ || found.f_type == EXT4_SUPER_MAGIC || found.f_type == XFS_SUPER_MAGIC);
  locks_reach_all_ = known && locks_reach_all_nodes(fd_.get(), uint64_t(found.f_type));
  caches_by_node_ = !known || target::caches_by_node(uint64_t(found.f_type));
}

Status DirectoryRoot::look_there(struct stat& found) const {
  const bool there = raw::fstatat(AT_FDCWD, path_.c_str(), &found, 0) == 0;
  struct stat held;
  if (!look_ && !there) return failure("the target " + label_ + " is gone");
  if (!look_ || (there && raw::fstat(fd(), &held) == 0 && held.st_dev == found.st_dev && held.st_ino == found.st_ino)) return {};
  const auto opened = look_();
  if (!opened.ok()) return opened.status();
  return raw::fstat(*opened ? opened->get() : fd(), &found) == 0 ? Status() : failure("the target " + label_ + " is gone");
}

mode_t DirectoryRoot::directory_mode() const {
  if (!options_.mode) return 0777;
  mode_t readable = *options_.mode & 0444;
  return *options_.mode | readable >> 2 | 0300;  // who may read may enter; the owner may always work in it
}

const StripeWish* DirectoryRoot::wish(const std::string& name) const {
  for (const StripeRule& rule : options_.stripes)
    if (rule.name.empty() || rule.name == name) return &rule.wish;
  return nullptr;
}

Fd DirectoryRoot::open(const std::string& name, int flags, mode_t mode) const {
  if (name.empty()) return Fd(restarted([&] { return raw::openat(fd(), ".", flags | O_CLOEXEC, mode); }));
  if (use_openat2_) {
    open_how how{};
    // Without O_NOFOLLOW, which would say ENOTDIR for a link to a directory: RESOLVE_NO_SYMLINKS refuses all with ELOOP.
    how.flags = static_cast<uint64_t>(flags | kAlways) & ~static_cast<uint64_t>(O_NOFOLLOW);
    if (flags & O_PATH) how.flags &= O_PATH | O_DIRECTORY | O_CLOEXEC;  // openat2 refuses the others
    how.mode = flags & O_CREAT ? mode & 07777 : 0;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    int fd = restarted([&] { return raw::openat2(this->fd(), name.c_str(), how); });
    // ENOSYS: an older kernel. EPERM: a sandbox that does not know the call (or the name's own doing: then the walk says so too).
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EAGAIN)) return Fd(fd);
    if (errno == ENOSYS) use_openat2_ = false;
  }
  return walk(name, flags, mode);
}

Result<DirectoryRoot::Place> DirectoryRoot::place(const std::string& name, const std::string& doing) const {
  auto [directory, leaf] = split_name(name);
  Place place;
  place.leaf = leaf;
  place.fd = fd();
  if (!directory.empty()) {
    place.opened = open(directory, O_PATH | O_DIRECTORY);
    if (!place.opened) return unreachable("cannot " + doing + " " + at(name));
    place.fd = place.opened.get();
  }
  return place;
}

Status DirectoryRoot::unreachable(const std::string& what) {
  if (errno != ELOOP) return failure(what);
  return Status(Kind::invalid, what + ": it is a symbolic link, or lies behind one, which a target may not hold", ELOOP);
}

Status DirectoryRoot::sync_directories(const std::string& directory) const {
  std::vector<std::function<Status()>> waits;
  const uint64_t inode = add_waits(directory, waits);
  for (const auto& wait : waits) HF_TRY(wait());
  entry_is_durable(inode);
  return {};
}

uint64_t DirectoryRoot::add_waits(const std::string& directory, std::vector<std::function<Status()>>& waits) const {
  const uint64_t inode = inode_of(directory);
  for (std::string next = directory;; next = split_name(next).first) {
    waits.emplace_back([this, next] { return sync_directory(next); });
    if (next.empty() || inode == durable_inode_) return inode;
  }
}

// Another number at each call where it cannot be known.
uint64_t DirectoryRoot::inode_of(const std::string& directory) const {
  static std::atomic<uint64_t> unknown{UINT64_MAX};
  struct stat found;
  const Fd opened = open(directory, O_PATH | O_DIRECTORY);
  return opened && raw::fstat(opened.get(), &found) == 0 ? uint64_t(found.st_ino) : unknown--;
}

Status DirectoryRoot::sync_directory(const std::string& directory) const {
  Fd opened = open(directory, O_RDONLY | O_DIRECTORY);
  if (!opened) return failure("cannot open the directory " + at(directory) + " to make it durable");
  // EINVAL: a file system that has no such thing (some FUSE ones) and keeps its entries its own way.
  if (restarted([&] { return raw::fsync(opened.get()); }) == 0 || errno == EINVAL) return {};
  return failure("cannot make the directory " + at(directory) + " durable");
}

Fd DirectoryRoot::walk(const std::string& name, int flags, mode_t mode) const {
  Fd held;
  int at = fd();
  size_t begin = 0;
  for (size_t slash; (slash = name.find('/', begin)) != std::string::npos; begin = slash + 1) {
    std::string component = name.substr(begin, slash - begin);
    Fd next(restarted([&] { return raw::openat(at, component.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }));
    if (!next) return name_link(at, component);
    held = std::move(next);
    at = held.get();
  }
  const std::string leaf = name.substr(begin);
  Fd opened(restarted([&] { return raw::openat(at, leaf.c_str(), flags | kAlways, mode); }));
  if (!opened) return name_link(at, leaf);
  if (flags & O_PATH) {  // which opens a link itself instead of refusing it
    struct stat found;
    if (raw::fstat(opened.get(), &found) == 0 && S_ISLNK(found.st_mode)) {
      errno = ELOOP;
      return Fd();
    }
  }
  return opened;
}

}  // namespace holdfast::target
