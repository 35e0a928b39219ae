// The process at the other end of a socket of this node.
#pragma once
#include "base/raw_syscalls.hpp"

namespace holdfast::agent {

// Which may be a companion (target/companion.hpp): that can end before the process that it was started by.
class ClientProcess {
 public:
  // Nothing is known of one on another node, or where the agent sees no process of that number: in another container.
  explicit ClientProcess(int socket);
  // Whether it has ended for certain. One that is not reaped yet has.
  bool has_ended() const;

 private:
  bool is_gone_ = false;
  raw::Fd process_;
};

}  // namespace holdfast::agent
