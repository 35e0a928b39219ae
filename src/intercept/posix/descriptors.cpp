#include "intercept/posix/descriptors.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <map>

#include <fmt/format.h>

#include "base/raw_syscalls.hpp"
#include "catalog/catalog.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"
#include "intercept/posix/settings.hpp"

namespace holdfast::intercept::posix {

namespace {

constexpr int most_descriptors = 65536;
constexpr size_t most_bytes_of_a_read = 0x7ffff000;  // as the kernel

std::array<std::atomic<bool>, most_descriptors> ours;  // what find() asks first, without the lock

// Never destroyed: other libraries' destructors may still read.
struct Table {
  std::mutex mutex;
  std::map<int, std::shared_ptr<Description>> descriptions;
  // After vfork the child runs in our memory: what it closes must not be closed for us.
  std::atomic<pid_t> owner{getpid()};
};

Table& table() {
  static Table* one = [] {
    auto* made = new Table;
    pthread_atfork([] { table().mutex.lock(); }, [] { table().mutex.unlock(); },
                   [] {
                     table().owner = getpid();
                     table().mutex.unlock();
                   });
    return made;
  }();
  return *one;
}

bool in_range(int fd) { return fd >= 0 && fd < most_descriptors; }

// Something with no bytes behind it to hold the number: the path's own entry, so that fstat-like doors see its owner.
int hold_number(int directory, const char* path, int flags) {
  const int how = O_PATH | O_NOFOLLOW | (flags & O_CLOEXEC);
  const int fd = raw::openat(directory, path, how);
  return fd >= 0 || errno == EMFILE || errno == ENFILE ? fd : raw::openat(AT_FDCWD, "/dev/null", how);
}

}  // namespace

Result<std::shared_ptr<Description>> Description::open(const std::string& path) {
  const Settings& settings = posix::settings();
  auto located = catalog::locate(path, settings);
  if (!located) return located.status();
  std::shared_ptr<Description> made(new Description);
  made->path_ = located->manifest.path;
  made->alone_ = exchange::make_solo();
  auto file = layers::ProtectedFile::open(std::move(*located), layers::Access{}, settings, *made->alone_);
  if (!file) return file.status();
  made->file_ = std::move(*file);
  return made;
}

uint64_t Description::size() {
  const OurCode ours_now;
  return file_->size();
}

ssize_t Description::read_at(uint64_t offset, void* into, size_t bytes) {
  const OurCode ours_now;
  const uint64_t size = file_->size();
  if (offset >= size || bytes == 0) return 0;
  const Extent extent{offset, std::min({uint64_t(bytes), size - offset, uint64_t(most_bytes_of_a_read)})};
  auto got = file_->read({&extent, 1}, {static_cast<std::byte*>(into), size_t(extent.length)});
  if (got) return ssize_t(*got);
  complain(path_, got.status().sentence());
  errno = got.status().to_errno();
  return -1;
}

ssize_t Description::read(void* into, size_t bytes) {
  std::lock_guard lock(mutex_);
  const ssize_t got = read_at(position_, into, bytes);
  if (got > 0) position_ += uint64_t(got);
  return got;
}

off_t Description::seek(off_t offset, int whence) {
  std::lock_guard lock(mutex_);
  const off_t end = off_t(size());
  off_t base = 0;
  switch (whence) {
    case SEEK_SET: break;
    case SEEK_CUR: base = off_t(position_); break;
    case SEEK_END: base = end; break;
    case SEEK_DATA:  // all of it counts as data
    case SEEK_HOLE:
      if (offset < 0 || offset >= end) return errno = ENXIO, -1;
      position_ = uint64_t(whence == SEEK_DATA ? offset : end);
      return off_t(position_);
    default: return errno = EINVAL, -1;
  }
  off_t to;
  if (__builtin_add_overflow(base, offset, &to)) return errno = EOVERFLOW, -1;
  if (to < 0) return errno = EINVAL, -1;
  position_ = uint64_t(to);
  return to;
}

std::shared_ptr<Description> find(int fd) {
  if (!in_range(fd) || !ours[size_t(fd)].load(std::memory_order_acquire) || inside > 0) return nullptr;
  Table& all = table();
  std::lock_guard lock(all.mutex);
  auto found = all.descriptions.find(fd);
  return found == all.descriptions.end() ? nullptr : found->second;
}

std::shared_ptr<Description> adopt(int fd) {
  if (inside > 0 || !in_range(fd)) return nullptr;
  const int before = errno;
  const int flags = raw::fcntl(fd, F_GETFL);
  std::shared_ptr<Description> description;
  if (flags >= 0 && (flags & O_PATH)) {
    const OurCode ours_now;
    const std::string name = fmt::format("/proc/self/fd/{}", fd);
    char path[4096];
    const ssize_t length = raw::readlinkat(AT_FDCWD, name.c_str(), path, sizeof path - 1);
    if (length > 0) {
      path[length] = '\0';
      if (is_protected(AT_FDCWD, path))
        if (auto opened = Description::open(path)) description = *opened;
    }
  }
  if (description) set(fd, description);
  errno = before;
  return description;
}

std::shared_ptr<Description> find_after_failure(int fd) {
  if (errno != EBADF) return nullptr;
  return adopt(fd);
}

int open_descriptor(int directory, const char* path, int flags) {
  const OurCode ours_now;
  const std::string full = full_path(directory, path);
  auto description = Description::open(full);
  if (!description) {
    complain(full, description.status().sentence());
    return errno = description.status().to_errno(), -1;
  }
  const int fd = hold_number(directory, path, flags);
  if (fd >= most_descriptors) {
    raw::close(fd);
    return errno = EMFILE, -1;
  }
  if (fd >= 0) set(fd, std::move(*description));
  return fd;
}

void set(int fd, std::shared_ptr<Description> description) {
  Table& all = table();
  if (!in_range(fd) || all.owner != getpid()) return;
  std::shared_ptr<Description> before;  // closed outside the lock
  std::lock_guard lock(all.mutex);
  const bool there = description != nullptr;
  if (auto found = all.descriptions.find(fd); found != all.descriptions.end()) {
    before = std::move(found->second);
    all.descriptions.erase(found);
  }
  if (there) all.descriptions.emplace(fd, std::move(description));
  ours[size_t(fd)].store(there, std::memory_order_release);
}

void forget(int fd) {
  if (!in_range(fd) || !ours[size_t(fd)].load(std::memory_order_acquire)) return;
  const OurCode ours_now;
  set(fd, nullptr);
}

void forget_range(unsigned first, unsigned last) {
  for (unsigned fd = first; fd < unsigned(most_descriptors) && fd <= last; ++fd) forget(int(fd));
}

}  // namespace holdfast::intercept::posix
