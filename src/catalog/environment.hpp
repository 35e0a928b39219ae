// All that this room asks of the machine: system calls on what lies outside the targets, the ways to the targets, and time. One seam, so
// that the whole room runs on files that only a simulator has (tests/sim).
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/raw_syscalls.hpp"
#include "base/status.hpp"
#include "target/directory.hpp"
#include "target/lane.hpp"

namespace holdfast::catalog {

// Calls of the kernel are those of the manual pages, section 2: -1 and errno; EINTR is the caller's to handle.
class Environment {
 public:
  virtual int openat(int directory, const char* name, int flags, mode_t mode) = 0;
  // One for the program: its number is the kernel's choice.
  virtual int open_for_program(const char* name, int flags, mode_t mode) = 0;
  virtual void close(int fd) = 0;     // leaves errno as it is
  virtual int give_away(int fd) = 0;  // from here on the program's: the number that it has then
  // The same file under a number that no program chooses, for what is kept; the old number where there is no room.
  virtual int out_of_the_way(int fd) = 0;
  virtual ssize_t pread(int fd, void* into, size_t bytes, uint64_t offset) = 0;
  virtual ssize_t write(int fd, const void* from, size_t bytes) = 0;
  virtual ssize_t pwrite(int fd, const void* from, size_t bytes, uint64_t offset) = 0;
  virtual int fsync(int fd) = 0;
  // fsync of all of them, side by side.
  virtual int fsync_all(std::span<const int> fds);
  // What helps so many targets to wait for several things at the same time (target/side_by_side.hpp) is there from now on.
  virtual void help_targets(int /*targets*/) {}
  // The content is written to the device, and no device flushed. What the file system notes down after this, a new name for it, is not kept by a
  // power cut without the content. An fsync where there is no such call.
  virtual int write_out(int fd) = 0;
  virtual int fchmod(int fd, mode_t mode) = 0;
  virtual int fchown(int fd, uid_t owner, gid_t group) = 0;
  // What users have said about a file with extended attributes and an ACL is said about an open one too, and its times where that is asked for.
  virtual void say_as_of(int directory, const char* name, int fd, bool times) = 0;
  virtual int fstatat(int directory, const char* name, struct stat* into, int flags) = 0;
  virtual int fstatfs(int fd, struct statfs* into) = 0;
  virtual int mkdirat(int directory, const char* name, mode_t mode) = 0;
  virtual int unlinkat(int directory, const char* name, int flags) = 0;
  virtual int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) = 0;
  virtual int linkat(int from_directory, const char* from, int to_directory, const char* to) {
    return raw::linkat(from_directory, from, to_directory, to);
  }
  virtual int symlinkat(const char* content, int directory, const char* name) = 0;
  virtual ssize_t readlinkat(int directory, const char* name, char* into, size_t bytes) = 0;
  virtual ssize_t getdents64(int fd, void* into, size_t bytes) = 0;
  virtual int rewind(int directory) = 0;  // the next getdents64 begins anew
  // Whether some process of this machine has the open file open to write, by any descriptor, or mapped. Where its file system has no leases, of the
  // processes that this one may look at: the user's own.
  virtual bool has_writers(int fd) = 0;
  virtual int lock_whole(int fd) = 0;  // F_OFD_SETLK of all of it, for writing
  // F_SETLK of one byte, for writing: it is this process's, however it has the file open, until it closes any descriptor of that.
  virtual int lock_byte(int fd, uint64_t at) = 0;
  virtual int unlock_byte(int fd, uint64_t at) = 0;
  // Whether locks of the kernel on what lies in an open directory keep other nodes out.
  virtual bool locks_reach_all_nodes(int /*directory*/) { return true; }
  virtual ssize_t getcwd(char* into, size_t bytes) = 0;

  virtual Result<std::shared_ptr<target::Target>> open_target(const std::string& path, const target::DirectoryOptions& options) = 0;
  // The one lane of this process to a directory, shared by all files on it. Survives fork.
  virtual std::shared_ptr<target::Lane> lane_for(const std::string& directory, std::chrono::milliseconds deadline) = 0;

  // Of a target that an agent serves: another connection, and another lane, so that long calls there hold up no others.
  virtual Result<std::shared_ptr<target::Target>> open_beside(const std::string& path) { return open_target(path, {}); }
  virtual std::shared_ptr<target::Lane> lane_beside(const std::string& directory, std::chrono::milliseconds deadline) {
    return lane_for(directory, deadline);
  }

  virtual std::chrono::steady_clock::time_point now() = 0;
  virtual void wait(std::chrono::milliseconds time) = 0;

  int fstat(int fd, struct stat* into) { return fstatat(fd, "", into, AT_EMPTY_PATH); }

 protected:
  ~Environment() = default;
};

// The kernel's, or the one that a test has put there.
Environment& environment();
// Another number for each environment that was put there. What a process remembers of targets holds for one alone.
uint64_t environment_number();

// While it lives, everything in this process runs in `other`. For tests, before they have threads.
class ReplacedEnvironment {
 public:
  explicit ReplacedEnvironment(Environment& other);
  ReplacedEnvironment(const ReplacedEnvironment&) = delete;
  ~ReplacedEnvironment();

 private:
  Environment* const before_;
};

// A descriptor of the environment's that is closed when it goes.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) environment().close(fd_);
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return environment().give_away(std::exchange(fd_, -1)); }
  void forget() { fd_ = -1; }  // somebody has closed it, and its number may be another one's
  void move_out_of_the_way() {
    if (fd_ >= 0) fd_ = environment().out_of_the_way(fd_);
  }

 private:
  int fd_ = -1;
};

}  // namespace holdfast::catalog
