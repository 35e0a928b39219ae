#include "agent/client_process.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace holdfast::agent {

// Where another process has got its number meanwhile, that one is taken for it: an error on the safe side.
ClientProcess::ClientProcess(int socket) {
  sockaddr_storage here{};
  socklen_t bytes = sizeof here;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&here), &bytes) != 0 || here.ss_family != AF_UNIX) return;
  ucred peer{};
  bytes = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || peer.pid <= 0) return;
  process_.reset(int(syscall(SYS_pidfd_open, peer.pid, 0)));
  is_gone_ = !process_ && errno == ESRCH;
}

bool ClientProcess::has_ended() const {
  pollfd look{process_.get(), POLLIN, 0};
  return is_gone_ || (process_ && poll(&look, 1, 0) > 0);
}

}  // namespace holdfast::agent
