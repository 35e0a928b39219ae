// The kernel's file calls under their own names. Inside a preloaded library libc's open, read, write ... are the library's own
// doors for the program. What Holdfast does for itself must not come in through them.
//
// Semantics are those of the manual pages, section 2: -1 and errno; EINTR is the caller's to handle. 64-bit Linux only, where
// the kernel's struct stat and statfs are libc's.
#pragma once
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <utility>

namespace holdfast::raw {

static_assert(sizeof(long) == 8, "offsets are passed in one register");

inline int close(int fd) { return static_cast<int>(syscall(SYS_close, fd)); }

// Which descriptors are Holdfast's own, a bit each. A program that closes "all" descriptors must not close these. Their numbers would be
// given to files of the program's, and a unit be written into one of them. Higher numbers are not watched.
constexpr int watched_descriptors = 1 << 16;
inline std::atomic<uint64_t> own_descriptors[watched_descriptors / 64];

inline void mark_own(int fd, bool own) {
  if (fd < 0 || fd >= watched_descriptors) return;
  const uint64_t bit = 1ull << (fd % 64);
  if (own) own_descriptors[fd / 64].fetch_or(bit, std::memory_order_relaxed);
  else own_descriptors[fd / 64].fetch_and(~bit, std::memory_order_relaxed);
}
inline bool is_own(unsigned fd) {
  return fd < unsigned(watched_descriptors) && (own_descriptors[fd / 64].load(std::memory_order_relaxed) >> (fd % 64) & 1);
}

// Descriptors on "/" that are kept to be closed where there is no room for another (spare_numbers.hpp). Their numbers are all from
// `lowest` on: a lower one may be the program's at any time.
class Spares {
 public:
  static constexpr int most = 256;
  std::atomic<int> kept{0}, wanted{0}, lowest{0};
  std::atomic<int> pattern{-1};  // what they are duplicates of

  // Whether one was closed.
  bool give_up() {
    for (std::atomic<int>& place : places_) {
      if (kept.load() <= 0) return false;
      const int fd = place.exchange(none);
      if (fd == none) continue;
      --kept;
      mark_own(fd, false);
      if (syscall(SYS_fcntl, fd, F_GETFL) & O_PATH && raw::close(fd) == 0) return true;  // or the program has put a file of its own there
    }
    return false;
  }
  // Those that other threads have given up come back when what they opened is closed: who comes meanwhile waits, up to a second. False: none is
  // away, or none has come. Where somebody has waited in vain there may be too few at all: until one comes back each waits for a moment.
  bool wait_for_one(int tries) {
    constexpr int most_tries = 1000, tries_after_vain_ones = 10;
    if (kept.load() >= wanted.load()) return false;
    if (tries >= (in_vain_.load() ? tries_after_vain_ones : most_tries)) return in_vain_ = true, false;
    const timespec moment{0, 1000000};
    (void)syscall(SYS_nanosleep, &moment, nullptr);
    return true;
  }
  void keep(int fd) {
    in_vain_ = false;
    mark_own(fd, true);
    ++kept;
    for (std::atomic<int>& place : places_) {
      int free = none;
      if (place.compare_exchange_strong(free, fd)) return;
    }
    --kept;
    mark_own(fd, false);
    raw::close(fd);
  }
  // After something was closed: as many as are wanted, as far as there is room.
  void refill() {
    while (kept.load() < wanted.load()) {
      const int fd = static_cast<int>(syscall(SYS_fcntl, pattern.load(), F_DUPFD_CLOEXEC, lowest.load()));
      if (fd < 0) return;
      keep(fd);
    }
  }
  // Closes a descriptor of Holdfast's. Where a spare one is lacking its number is kept, before anybody else can take it.
  void close(int fd) {
    const bool lacks = kept.load() < wanted.load() && fd >= lowest.load();
    if (lacks && syscall(SYS_dup3, pattern.load(), fd, O_CLOEXEC) == fd) return keep(fd);
    mark_own(fd, false);  // before the number can be somebody else's
    raw::close(fd);
    refill();
  }

 private:
  static constexpr int none = 0;
  std::atomic<bool> in_vain_{false};
  std::atomic<int> places_[most]{};
};
inline Spares spares;

// A call that makes a descriptor.
template <class Call>
int with_room(Call call) {
  int fd = static_cast<int>(call());
  int tries = 0;
  while (fd < 0 && errno == EMFILE) {
    const bool room = spares.give_up() || spares.wait_for_one(tries++);
    errno = EMFILE;
    if (!room) break;
    fd = static_cast<int>(call());
  }
  return fd;
}

inline int openat(int directory, const char* name, int flags, mode_t mode = 0) {
  return with_room([&] { return syscall(SYS_openat, directory, name, flags | O_LARGEFILE, mode); });
}
inline int openat2(int directory, const char* name, const open_how& how) {
  return with_room([&] { return syscall(SYS_openat2, directory, name, &how, sizeof how); });
}
inline ssize_t read(int fd, void* into, size_t bytes) { return syscall(SYS_read, fd, into, bytes); }
inline ssize_t write(int fd, const void* from, size_t bytes) { return syscall(SYS_write, fd, from, bytes); }
inline ssize_t pread(int fd, void* into, size_t bytes, uint64_t offset) { return syscall(SYS_pread64, fd, into, bytes, offset); }
inline ssize_t pwrite(int fd, const void* from, size_t bytes, uint64_t offset) { return syscall(SYS_pwrite64, fd, from, bytes, offset); }
inline ssize_t preadv(int fd, const iovec* into, int count, uint64_t offset) { return syscall(SYS_preadv, fd, into, count, offset, 0L); }
inline ssize_t preadv2(int fd, const iovec* into, int count, uint64_t offset, int flags) {
  return syscall(SYS_preadv2, fd, into, count, offset, 0L, flags);
}
inline ssize_t pwritev(int fd, const iovec* from, int count, uint64_t offset) { return syscall(SYS_pwritev, fd, from, count, offset, 0L); }
inline ssize_t pwritev2(int fd, const iovec* from, int count, uint64_t offset, int flags) {
  return syscall(SYS_pwritev2, fd, from, count, offset, 0L, flags);
}
inline int fsync(int fd) { return static_cast<int>(syscall(SYS_fsync, fd)); }
inline int sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned flags) {
  return static_cast<int>(syscall(SYS_sync_file_range, fd, offset, bytes, flags));
}
inline int fdatasync(int fd) { return static_cast<int>(syscall(SYS_fdatasync, fd)); }
inline int ftruncate(int fd, uint64_t size) { return static_cast<int>(syscall(SYS_ftruncate, fd, size)); }
inline int fallocate(int fd, int mode, uint64_t offset, uint64_t bytes) { return static_cast<int>(syscall(SYS_fallocate, fd, mode, offset, bytes)); }
// MAP_FAILED and errno.
inline void* mmap(size_t bytes, int protection, int flags, int fd, uint64_t offset) {
  return reinterpret_cast<void*>(syscall(SYS_mmap, nullptr, bytes, protection, flags, fd, offset));
}
// Memory of nobody else's in the place of what is mapped there, at once and for all threads.
inline bool map_nothing_over(void* at, size_t bytes) {
  const long done = syscall(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0L);
  return done != -1;
}
inline int munmap(void* at, size_t bytes) { return static_cast<int>(syscall(SYS_munmap, at, bytes)); }
inline int madvise(void* at, size_t bytes, int advice) { return static_cast<int>(syscall(SYS_madvise, at, bytes, advice)); }
inline off_t lseek(int fd, off_t offset, int whence) { return syscall(SYS_lseek, fd, offset, whence); }
// With AT_EMPTY_PATH and "" it is fstat.
inline int fstatat(int directory, const char* name, struct stat* into, int flags) {
  return static_cast<int>(syscall(SYS_newfstatat, directory, name, into, flags));
}
inline int fstat(int fd, struct stat* into) { return raw::fstatat(fd, "", into, AT_EMPTY_PATH); }
// Where the library stands before syscall(2) itself: the kernel knows no argument of statx in this place.
inline constexpr long of_our_own = 0x486f6c6466617374;
inline int statx(int directory, const char* name, int flags, unsigned wanted, struct statx* into) {
  return static_cast<int>(syscall(SYS_statx, directory, name, flags, wanted, into, of_our_own));
}
inline int fstatfs(int fd, struct statfs* into) { return static_cast<int>(syscall(SYS_fstatfs, fd, into)); }
inline int mkdirat(int directory, const char* name, mode_t mode) { return static_cast<int>(syscall(SYS_mkdirat, directory, name, mode)); }
inline int mknodat(int directory, const char* name, mode_t mode) { return static_cast<int>(syscall(SYS_mknodat, directory, name, mode, 0)); }
inline int linkat(int from_directory, const char* from, int to_directory, const char* to) {
  return static_cast<int>(syscall(SYS_linkat, from_directory, from, to_directory, to, 0));
}
inline int unlinkat(int directory, const char* name, int flags) { return static_cast<int>(syscall(SYS_unlinkat, directory, name, flags)); }
// flags: 0 or RENAME_NOREPLACE, RENAME_EXCHANGE (which not every file system has: EINVAL).
inline int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags = 0) {
  return static_cast<int>(syscall(SYS_renameat2, from_directory, from, to_directory, to, flags));
}
inline int symlinkat(const char* content, int directory, const char* name) {
  return static_cast<int>(syscall(SYS_symlinkat, content, directory, name));
}
inline ssize_t readlinkat(int directory, const char* name, char* into, size_t bytes) { return syscall(SYS_readlinkat, directory, name, into, bytes); }
inline int faccessat(int directory, const char* name, int mode) { return static_cast<int>(syscall(SYS_faccessat, directory, name, mode)); }
// Links are followed.
inline int fchmodat(int directory, const char* name, mode_t mode) { return static_cast<int>(syscall(SYS_fchmodat, directory, name, mode)); }
inline int fchmod(int fd, mode_t mode) { return static_cast<int>(syscall(SYS_fchmod, fd, mode)); }
inline int fchown(int fd, uid_t owner, gid_t group) { return static_cast<int>(syscall(SYS_fchown, fd, owner, group)); }
inline ssize_t getdents64(int fd, void* into, size_t bytes) { return syscall(SYS_getdents64, fd, into, bytes); }
inline int fcntl(int fd, int command, long argument = 0) {
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) return with_room([&] { return syscall(SYS_fcntl, fd, command, argument); });
  return static_cast<int>(syscall(SYS_fcntl, fd, command, argument));
}
// Open file description locks: F_OFD_SETLK, F_OFD_GETLK.
inline int fcntl_lock(int fd, int command, struct flock* lock) { return static_cast<int>(syscall(SYS_fcntl, fd, command, lock)); }
inline int flock(int fd, int operation) { return static_cast<int>(syscall(SYS_flock, fd, operation)); }
// Bytes including the closing zero, or -1.
inline ssize_t getcwd(char* into, size_t bytes) { return syscall(SYS_getcwd, into, bytes); }
inline ssize_t fgetxattr(int fd, const char* name, void* into, size_t bytes) { return syscall(SYS_fgetxattr, fd, name, into, bytes); }
inline int fsetxattr(int fd, const char* name, const void* from, size_t bytes, int flags) {
  return static_cast<int>(syscall(SYS_fsetxattr, fd, name, from, bytes, flags));
}

// In a program that does not know of them, Holdfast's own descriptors have high numbers. A program may give any low one to a file of its own (dup2, a
// shell's `exec 9>file`). What Holdfast writes next by that number would go there. 0: numbers stay as they are.
inline std::atomic<int> lowest_own{0};

// The same on a number that no program chooses; the one that it has where there is none. Leaves errno as it is.
inline int lifted(int fd) {
  const int lowest = lowest_own.load(std::memory_order_relaxed);
  if (fd < 0 || fd >= lowest) return fd;
  const int saved = errno;
  const int flags = raw::fcntl(fd, F_GETFD);
  const int high = raw::fcntl(fd, flags & FD_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, lowest);
  if (high >= 0) raw::close(fd);
  errno = saved;
  return high >= 0 ? high : fd;
}

// A descriptor of Holdfast's own that is closed when it goes. Its number may be another than the one that it was made with.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(lifted(fd)) { mark_own(fd_, true); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    const int taken = other.release();
    reset(taken);
    return *this;
  }
  ~Fd() { reset(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  // From here on it is the caller's, perhaps the program's.
  int release() {
    int fd = fd_;
    fd_ = -1;
    mark_own(fd, false);
    return fd;
  }
  void reset(int fd = -1) {
    if (fd_ >= 0) {
      const int saved = errno;  // closing on the way out of a failure must not hide its reason
      spares.close(fd_);
      errno = saved;
    }
    fd_ = lifted(fd);
    mark_own(fd_, true);
  }

 private:
  int fd_ = -1;
};

}  // namespace holdfast::raw
