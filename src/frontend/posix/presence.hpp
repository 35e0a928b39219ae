// Whether other processes of this node have a file open with buffers before it, too. Each shows itself by a socket whose name, known to the kernel
// alone, is made of the file's. The name goes with the process, and nothing is left in any file system.
#pragma once
#include <memory>
#include <string>

#include "base/raw_syscalls.hpp"

namespace holdfast::frontend::posix {

class Presence {
 public:
  // From now on others know. `writes`: readers alone are in nobody's way.
  Presence(const std::string& file_id, bool writes);
  // Whether somebody is or was there in whose way this process's buffers are: a writer, or a reader where this process writes.
  // Costs a call of the system once in a tick of the kernel's coarse clock, else nothing.
  bool met_another();

 private:
  raw::Fd socket_;
  bool met_ = false;
  int64_t asked_ = -1;
};

}  // namespace holdfast::frontend::posix
