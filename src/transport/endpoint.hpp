// Where a server is to be reached: lines of text, "unix NAME" (the kernel's own space of names, this node only) or "tcp ADDRESS PORT".
#pragma once
#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "base/raw_syscalls.hpp"

namespace holdfast::transport {

struct Endpoint {
  sockaddr_storage address{};
  socklen_t bytes = 0;
};
std::optional<Endpoint> parse_endpoint(const std::string& line);

// A peer whose node dies says nothing. The kernel asks one that is idle, and gives up what it does not take: it is gone after half a minute at most.
void notice_a_dead_peer(int socket);

enum class Reach { node, network, loopback };  // loopback: by TCP on this node alone, for tests

// Sockets that listen, closed with it. What cannot be listened on is left out: nodes have addresses of many kinds.
class Listener {
 public:
  // node: a name of the kernel's. network: that, and each address that other nodes may know this one by, on ports that the kernel chooses.
  explicit Listener(Reach reach);
  const std::string& endpoints() const { return endpoints_; }  // a line each
  const std::vector<raw::Fd>& sockets() const { return sockets_; }

 private:
  void listen_near();
  void listen_far(bool loopback);
  bool listen_on(const Endpoint& wanted, Endpoint& bound);
  std::string endpoints_;
  std::vector<raw::Fd> sockets_;
};

}  // namespace holdfast::transport
