// A client's connection. Every call gives up after the deadline. A connection that broke stays broken: what was on its way may have arrived.
#pragma once
#include <sys/uio.h>

#include <cstdint>
#include <string>

#include "base/raw_syscalls.hpp"
#include "base/status.hpp"
#include "transport/greeting.hpp"

namespace holdfast::transport {

// For a process whose sending is nobody's hurry: its connections of any link from now on are of the class "lower effort" (RFC 3662), and of the kernel's last
// band. So what others on this node send goes first, and networks that know classes do the same.
void give_way();

// A socket whose peer has been greeted. For one thread at a time.
class Link {
 public:
  Link() = default;
  // Tries the endpoints (endpoint.hpp, a line each) side by side, each begun a moment after the one before, for at most `deadline_ms`, and greets. One that
  // refuses is not waited for; one that hangs up in the greeting is tried again.
  // Kind::io where nobody answers, with both ends of each way; Kind::version and Kind::access as ClientGreeting::answer has them.
  Status connect(const std::string& endpoints, const Agreement& agreement, uint64_t deadline_ms);
  // All of it. Kind::timed_out after the deadline, Kind::io where the other side has gone; the link is broken then.
  Status send(std::span<const iovec> from);
  Status receive(std::span<const iovec> into);
  // From now on.
  void wait_up_to(uint64_t deadline_ms);
  bool connected() const { return static_cast<bool>(socket_); }
  // While nothing is expected: whether the other side has closed it, it broke, or something has come. Waits for nothing.
  bool has_ended() const;
  void close() { socket_.reset(); }
  int descriptor() const { return socket_.get(); }

 private:
  Status broken(int reason);
  raw::Fd socket_;
  uint64_t deadline_ms_ = 0;
};

}  // namespace holdfast::transport
