#include "catalog/environment.hpp"

#include "target/address.hpp"
#include "target/lock_reach.hpp"
#include "target/side_by_side.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include "base/own_numbers.hpp"
#include "catalog/probe.hpp"
#include "catalog/writers.hpp"

namespace holdfast::catalog {

namespace {

constexpr size_t most_attribute_bytes = 65536;  // the kernel's limit for the names, and for each value

// Who else may do what: also that nobody is named, where the directory would name some for a new file.
void copy_acl(int from, int to) {
  constexpr const char* acl = "system.posix_acl_access";
  std::string value(most_attribute_bytes, '\0');
  const long bytes = syscall(SYS_fgetxattr, from, acl, value.data(), value.size());
  if (bytes >= 0) (void)!syscall(SYS_fsetxattr, to, acl, value.data(), size_t(bytes), 0);
  else if (errno == ENODATA) (void)!syscall(SYS_fremovexattr, to, acl);
}

// Those of the users: others are the system's, which makes its own. What does not fit is left out.
void copy_attributes(int from, int to) {
  constexpr std::string_view of_users = "user.";
  if (syscall(SYS_flistxattr, from, nullptr, size_t(0)) <= 0) return;
  std::string names(most_attribute_bytes, '\0'), value(most_attribute_bytes, '\0');
  const long length = syscall(SYS_flistxattr, from, names.data(), names.size());
  for (size_t at = 0; at < size_t(std::max(length, 0L)); at += std::strlen(names.c_str() + at) + 1) {
    const char* const name = names.c_str() + at;
    if (!std::string_view(name).starts_with(of_users)) continue;
    const long bytes = syscall(SYS_fgetxattr, from, name, value.data(), value.size());
    if (bytes >= 0) (void)!syscall(SYS_fsetxattr, to, name, value.data(), size_t(bytes), 0);
  }
}

// The kernel itself, directly: libc's calls are interposed in the same process.
class Kernel final : public Environment {
  // raw::lifted(), of what was just opened: its flags are known.
  static int lifted(int fd, int flags) {
    const int lowest = raw::lowest_own.load(std::memory_order_relaxed);
    if (fd < 0 || fd >= lowest) return fd;
    const int saved = errno;
    const int high = raw::fcntl(fd, flags & O_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, lowest);
    if (high >= 0) raw::close(fd);
    errno = saved;
    return high >= 0 ? high : fd;
  }
  static int set_lock(int fd, short type, uint64_t at) {
    struct flock byte = {};
    byte.l_type = type;
    byte.l_whence = SEEK_SET;
    byte.l_start = off_t(at);
    byte.l_len = 1;
    return raw::fcntl_lock(fd, F_SETLK, &byte);
  }

 public:
  int openat(int directory, const char* name, int flags, mode_t mode) override {
    const int fd = lifted(raw::openat(directory, name, flags, mode), flags);
    raw::mark_own(fd, true);
    return fd;
  }
  int open_for_program(const char* name, int flags, mode_t mode) override { return raw::openat(AT_FDCWD, name, flags, mode); }
  void close(int fd) override {
    const int saved = errno;   // closing on the way out of a failure must not hide its reason
    raw::mark_own(fd, false);  // before the number can be somebody else's
    raw::spares.close(fd);
    errno = saved;
  }
  int give_away(int fd) override {
    raw::mark_own(fd, false);
    return fd;
  }
  int out_of_the_way(int fd) override {
    if (fd >= raw::own_numbers_from()) return fd;
    const int there = raw::lifted(raw::fcntl(fd, F_DUPFD_CLOEXEC, raw::own_numbers_from()));
    if (there < 0) return fd;
    raw::mark_own(there, true);
    close(fd);
    return there;
  }
  ssize_t pread(int fd, void* into, size_t bytes, uint64_t offset) override { return raw::pread(fd, into, bytes, offset); }
  ssize_t write(int fd, const void* from, size_t bytes) override { return raw::write(fd, from, bytes); }
  ssize_t pwrite(int fd, const void* from, size_t bytes, uint64_t offset) override { return raw::pwrite(fd, from, bytes, offset); }
  int fsync(int fd) override { return raw::fsync(fd); }
  int fsync_all(std::span<const int> fds) override {
    target::keep_helpers(int(fds.size()) - 1);
    std::vector<std::function<Status()>> calls;
    for (const int fd : fds) calls.emplace_back([fd] { return raw::fsync(fd) == 0 ? Status() : Status::from_errno(errno, "fsync"); });
    const Status all = target::side_by_side(calls);
    if (all.ok()) return 0;
    errno = all.sys_errno();
    return -1;
  }
  void help_targets(int targets) override { target::keep_helpers(2 * targets); }
  int write_out(int fd) override {
    if (raw::sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER) == 0) return 0;
    return errno == EIO || errno == ENOSPC || errno == EDQUOT ? -1 : raw::fsync(fd);
  }
  int fchmod(int fd, mode_t mode) override { return raw::fchmod(fd, mode); }
  int fchown(int fd, uid_t owner, gid_t group) override { return raw::fchown(fd, owner, group); }
  void say_as_of(int directory, const char* name, int fd, bool times) override {
    const raw::Fd from(raw::openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat state;
    if (!from || raw::fstat(from.get(), &state) != 0) return;
    copy_acl(from.get(), fd);
    copy_attributes(from.get(), fd);
    const timespec as_before[2] = {state.st_atim, state.st_mtim};
    if (times) (void)!syscall(SYS_utimensat, fd, nullptr, as_before, 0);
  }
  int fstatat(int directory, const char* name, struct stat* into, int flags) override { return raw::fstatat(directory, name, into, flags); }
  int fstatfs(int fd, struct statfs* into) override { return raw::fstatfs(fd, into); }
  int mkdirat(int directory, const char* name, mode_t mode) override { return raw::mkdirat(directory, name, mode); }
  int unlinkat(int directory, const char* name, int flags) override { return raw::unlinkat(directory, name, flags); }
  int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) override {
    return raw::renameat2(from_directory, from, to_directory, to, flags);
  }
  int symlinkat(const char* content, int directory, const char* name) override { return raw::symlinkat(content, directory, name); }
  ssize_t readlinkat(int directory, const char* name, char* into, size_t bytes) override { return raw::readlinkat(directory, name, into, bytes); }
  ssize_t getdents64(int fd, void* into, size_t bytes) override { return raw::getdents64(fd, into, bytes); }
  int rewind(int directory) override { return raw::lseek(directory, 0, SEEK_SET) == 0 ? 0 : -1; }
  // A read lease is refused while there is one. Where there are no leases (NFS, Lustre, another user's file) the processes are asked.
  bool has_writers(int fd) override {
    raw::fcntl(fd, F_SETSIG, SIGURG);  // who opens it while the lease is held must not end this process by it
    if (raw::fcntl(fd, F_SETLEASE, F_RDLCK) != 0) return errno == EAGAIN || is_open_to_write(fd);
    (void)raw::fcntl(fd, F_SETLEASE, F_UNLCK);
    return false;
  }
  int lock_whole(int fd) override {
    struct flock whole = {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    return raw::fcntl_lock(fd, F_OFD_SETLK, &whole);
  }
  int lock_byte(int fd, uint64_t at) override { return set_lock(fd, F_WRLCK, at); }
  int unlock_byte(int fd, uint64_t at) override { return set_lock(fd, F_UNLCK, at); }
  bool locks_reach_all_nodes(int directory) override { return target::locks_reach_all_nodes(directory); }
  ssize_t getcwd(char* into, size_t bytes) override { return raw::getcwd(into, bytes); }

  Result<std::shared_ptr<target::Target>> open_target(const std::string& path, const target::DirectoryOptions& options) override {
    return target::open(path, options);
  }
  std::shared_ptr<target::Lane> lane_for(const std::string& directory, std::chrono::milliseconds deadline) override {
    return lane_of_process(directory, deadline);
  }
  Result<std::shared_ptr<target::Target>> open_beside(const std::string& path) override { return target::open_beside(path); }
  std::shared_ptr<target::Lane> lane_beside(const std::string& directory, std::chrono::milliseconds deadline) override {
    return target::make_companion_lane(directory, deadline);
  }

  std::chrono::steady_clock::time_point now() override { return std::chrono::steady_clock::now(); }
  void wait(std::chrono::milliseconds time) override { std::this_thread::sleep_for(time); }
};

// Neither is ever destroyed: calls come until the process ends.
constinit Kernel kernel;
constinit Environment* current = &kernel;
uint64_t replaced = 0;

}  // namespace

Environment& environment() { return *current; }
uint64_t environment_number() { return replaced; }

int Environment::fsync_all(std::span<const int> fds) {
  for (const int fd : fds)
    if (fsync(fd) != 0) return -1;
  return 0;
}

ReplacedEnvironment::ReplacedEnvironment(Environment& other) : before_(std::exchange(current, &other)) { ++replaced; }

ReplacedEnvironment::~ReplacedEnvironment() { current = before_, ++replaced; }

}  // namespace holdfast::catalog
