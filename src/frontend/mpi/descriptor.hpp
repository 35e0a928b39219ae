// The descriptor that MPI itself has of a file, found among the process's own. System calls on it are what MPI's access to a contiguous piece of a
// local file comes down to, at a third of the price.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/raw_syscalls.hpp"

namespace holdfast::frontend {

class Descriptor {
 public:
  Descriptor() = default;
  // A duplicate of one that is open on the file at `path`, as far as the file system shows writes to all nodes at once.
  static Descriptor find(const std::string& path, bool reads, bool writes);
  bool usable() const { return static_cast<bool>(fd_); }
  // False where the system call fails: MPI does it again then, and has the right error.
  bool write(const std::byte* from, uint64_t bytes, uint64_t offset) const;
  // Less than `bytes` at the end of the file.
  bool read(std::byte* into, uint64_t bytes, uint64_t offset, uint64_t& got) const;

 private:
  raw::Fd fd_;
};

}  // namespace holdfast::frontend
