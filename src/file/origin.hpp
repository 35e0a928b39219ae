// Where the bytes of a file lie that this process has open, and what differs by it. A protected file is found by its path, a plain one by a
// descriptor that the process has got by its own open. Whoever shares an Origin takes turns.
#pragma once
#include <string>

#include "base/raw_syscalls.hpp"
#include "file/stack.hpp"

namespace holdfast::file {

class Origin {
 public:
  virtual ~Origin() = default;
  // Under which the file was opened, or what has become of it since.
  virtual const std::string& path() = 0;
  // The bottom of a new stack; the one of before has gone. `now`: it is to be written by the call that asks. A protected file has a reader until
  // then. `later`: somebody has it open for writing.
  struct Writing {
    bool now = false, later = false;
  };
  virtual Result<Bottom> reach(Writing writing) = 0;
  // The kernel keeps what is below: other processes see it at once, and it outlives this one. A protected file's bytes do so by a sync.
  virtual bool kernel_keeps() const = 0;
  // Locks are the kernel's: on the plain file itself, on a protected file's lock file. `inherited` is taken where it is one. The caller
  // owns what it gets.
  virtual Result<raw::Fd> lock_descriptor(int inherited) = 0;
  // Of a plain file; else -1.
  virtual int descriptor() const { return -1; }
  // A protected file's name need not be touched by a write, but shows its time: `stored`, all that was `written` has arrived.
  virtual void written() {}
  virtual void stored() {}
};

}  // namespace holdfast::file
