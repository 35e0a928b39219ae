// Another environment, of whose calls a test changes some.
#pragma once
#include <memory>
#include <string>

#include "catalog/environment.hpp"

namespace holdfast::catalog {

class ForwardingEnvironment : public Environment {
 public:
  explicit ForwardingEnvironment(Environment& inner) : inner_(inner) {}
  int openat(int directory, const char* name, int flags, mode_t mode) override { return inner_.openat(directory, name, flags, mode); }
  int open_for_program(const char* name, int flags, mode_t mode) override { return inner_.open_for_program(name, flags, mode); }
  void close(int fd) override { inner_.close(fd); }
  int give_away(int fd) override { return inner_.give_away(fd); }
  int out_of_the_way(int fd) override { return inner_.out_of_the_way(fd); }
  ssize_t pread(int fd, void* into, size_t bytes, uint64_t offset) override { return inner_.pread(fd, into, bytes, offset); }
  ssize_t write(int fd, const void* from, size_t bytes) override { return inner_.write(fd, from, bytes); }
  ssize_t pwrite(int fd, const void* from, size_t bytes, uint64_t offset) override { return inner_.pwrite(fd, from, bytes, offset); }
  int fsync(int fd) override { return inner_.fsync(fd); }
  int fsync_all(std::span<const int> fds) override { return inner_.fsync_all(fds); }
  void help_targets(int targets) override { inner_.help_targets(targets); }
  int write_out(int fd) override { return inner_.write_out(fd); }
  int fchmod(int fd, mode_t mode) override { return inner_.fchmod(fd, mode); }
  int fchown(int fd, uid_t owner, gid_t group) override { return inner_.fchown(fd, owner, group); }
  void say_as_of(int directory, const char* name, int fd, bool times) override { inner_.say_as_of(directory, name, fd, times); }
  int fstatat(int directory, const char* name, struct stat* into, int flags) override { return inner_.fstatat(directory, name, into, flags); }
  int fstatfs(int fd, struct statfs* into) override { return inner_.fstatfs(fd, into); }
  int mkdirat(int directory, const char* name, mode_t mode) override { return inner_.mkdirat(directory, name, mode); }
  int unlinkat(int directory, const char* name, int flags) override { return inner_.unlinkat(directory, name, flags); }
  int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) override {
    return inner_.renameat2(from_directory, from, to_directory, to, flags);
  }
  int linkat(int from_directory, const char* from, int to_directory, const char* to) override {
    return inner_.linkat(from_directory, from, to_directory, to);
  }
  int symlinkat(const char* content, int directory, const char* name) override { return inner_.symlinkat(content, directory, name); }
  ssize_t readlinkat(int directory, const char* name, char* into, size_t bytes) override { return inner_.readlinkat(directory, name, into, bytes); }
  ssize_t getdents64(int fd, void* into, size_t bytes) override { return inner_.getdents64(fd, into, bytes); }
  int rewind(int directory) override { return inner_.rewind(directory); }
  bool has_writers(int fd) override { return inner_.has_writers(fd); }
  int lock_whole(int fd) override { return inner_.lock_whole(fd); }
  int lock_byte(int fd, uint64_t at) override { return inner_.lock_byte(fd, at); }
  int unlock_byte(int fd, uint64_t at) override { return inner_.unlock_byte(fd, at); }
  ssize_t getcwd(char* into, size_t bytes) override { return inner_.getcwd(into, bytes); }
  Result<std::shared_ptr<target::Target>> open_target(const std::string& path, const target::DirectoryOptions& options) override {
    return inner_.open_target(path, options);
  }
  std::shared_ptr<target::Lane> lane_for(const std::string& directory, std::chrono::milliseconds deadline) override {
    return inner_.lane_for(directory, deadline);
  }
  std::chrono::steady_clock::time_point now() override { return inner_.now(); }
  void wait(std::chrono::milliseconds time) override { inner_.wait(time); }

 protected:
  Environment& inner_;
};

}  // namespace holdfast::catalog
