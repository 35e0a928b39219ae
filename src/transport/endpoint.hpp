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

// Which ways lead there over the network, for who has to look for what is in between: "from 10.0.0.1 to 10.0.0.2 port 4711, ...". Empty on this node.
std::string ways_to(const std::string& endpoints);

// A peer whose node dies says nothing. The kernel asks one that is idle, and gives up what it does not take: it is gone after half a minute at most.
void notice_a_dead_peer(int socket);

// Whether a connection leads by the network, to another node as a rule.
bool is_far(int socket);
// Whether it surely does: this node has another address on it than its peer.
bool is_elsewhere(int socket);

enum class Reach { node, network, loopback };  // loopback: by TCP on this node alone, for tests

// Sockets that listen, closed with it. What cannot be listened on is left out: nodes have addresses of many kinds.
class Listener {
 public:
  // node: a name of the kernel's. network: that, and each address that other nodes may know this one by, on ports that the kernel chooses.
  explicit Listener(Reach reach);
  const std::string& endpoints() const { return endpoints_; }  // a line each
  const std::string& missed() const { return missed_; }        // an address that it could not listen on, and why; empty where there is none
  const std::vector<raw::Fd>& sockets() const { return sockets_; }

 private:
  void listen_near();
  void listen_far(bool loopback);
  bool listen_on(const Endpoint& wanted, Endpoint& bound);
  std::string endpoints_, missed_;
  std::vector<raw::Fd> sockets_;
};

}  // namespace holdfast::transport
