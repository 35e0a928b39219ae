// Descriptors of protected files. Each is a real descriptor of the kernel, opened with O_PATH: its number belongs to
// nobody else, it survives dup, fork and exec as any other, and a door that we do not watch answers EBADF rather than
// the bytes of a stub.
#pragma once
#include <memory>
#include <mutex>
#include <string>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "exchange/exchange.hpp"
#include "layers/protected/protected_file.hpp"

namespace holdfast::intercept::posix {

// An open file description: what dup shares.
class Description {
 public:
  static Result<std::shared_ptr<Description>> open(const std::string& path);

  const std::string& path() const { return path_; }
  uint64_t size();
  // As pread: the number of bytes, or -1 and errno, with one line on standard error.
  ssize_t read_at(uint64_t offset, void* into, size_t bytes);
  // As read and lseek.
  ssize_t read(void* into, size_t bytes);
  off_t seek(off_t offset, int whence);

 private:
  Description() = default;

  std::string path_;
  std::unique_ptr<exchange::Exchange> alone_;
  std::unique_ptr<layers::ProtectedFile> file_;
  std::mutex mutex_;  // of the position
  uint64_t position_ = 0;
};

// Null for any other descriptor: one load for those that are not ours.
std::shared_ptr<Description> find(int fd);
// `fd` came from a process that knew it as a protected file's (exec): an O_PATH descriptor of one. Null if it is not.
std::shared_ptr<Description> adopt(int fd);
// What `find` says, or, after a call on `fd` failed with EBADF, what `adopt` says.
std::shared_ptr<Description> find_after_failure(int fd);

// Opens the protected file and gives it a descriptor. -1 and errno, with one line on standard error.
int open_descriptor(int directory, const char* path, int flags);
void set(int fd, std::shared_ptr<Description> description);
void forget(int fd);
void forget_range(unsigned first, unsigned last);

}  // namespace holdfast::intercept::posix
