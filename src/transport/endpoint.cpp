#include "transport/endpoint.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <sstream>
#include <string_view>

#include "base/status.hpp"
#include "transport/greeting.hpp"

namespace holdfast::transport {

namespace {

constexpr int longest_queue = 4096;  // all ranks of a job may connect at once

std::optional<Endpoint> local(std::string_view name) {
  Endpoint endpoint;
  auto& address = reinterpret_cast<sockaddr_un&>(endpoint.address);
  if (name.empty() || name.size() >= sizeof address.sun_path - 1) return std::nullopt;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  endpoint.bytes = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return endpoint;
}

std::optional<Endpoint> remote(const std::string& name, in_port_t port) {
  Endpoint endpoint;
  auto& v4 = reinterpret_cast<sockaddr_in&>(endpoint.address);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(endpoint.address);
  if (inet_pton(AF_INET, name.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET, v4.sin_port = htons(port);
    endpoint.bytes = sizeof v4;
    return endpoint;
  }
  if (inet_pton(AF_INET6, name.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6, v6.sin6_port = htons(port);
    endpoint.bytes = sizeof v6;
    return endpoint;
  }
  return std::nullopt;
}

struct Name {
  std::string address;
  in_port_t port = 0;
};
Name name_of(const Endpoint& bound) {
  char text[INET6_ADDRSTRLEN] = "";
  if (bound.address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(bound.address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return {text, ntohs(v4.sin_port)};
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(bound.address);
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  return {text, ntohs(v6.sin6_port)};
}

std::string line_of(const Endpoint& bound) {
  const Name name = name_of(bound);
  return "tcp " + name.address + " " + std::to_string(name.port) + "\n";
}

// The address that this node takes for it. Nothing is sent.
std::string own_address_for(const Endpoint& there) {
  const raw::Fd probe(::socket(there.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  Endpoint own;
  own.bytes = sizeof own.address;
  const bool has_way = probe && ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&there.address), there.bytes) == 0;
  if (!has_way || getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own.address), &own.bytes) != 0) return "";
  return name_of(own).address;
}

std::optional<Endpoint> any_port_of(const sockaddr* address) {
  Endpoint endpoint;
  if (address->sa_family == AF_INET) endpoint.bytes = sizeof(sockaddr_in);
  if (address->sa_family == AF_INET6) endpoint.bytes = sizeof(sockaddr_in6);
  if (endpoint.bytes == 0) return std::nullopt;
  std::memcpy(&endpoint.address, address, endpoint.bytes);
  if (address->sa_family == AF_INET) {
    reinterpret_cast<sockaddr_in&>(endpoint.address).sin_port = 0;
    return endpoint;
  }
  auto& v6 = reinterpret_cast<sockaddr_in6&>(endpoint.address);
  if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) return std::nullopt;  // each node gives its interfaces numbers of its own
  v6.sin6_port = 0;
  return endpoint;
}

}  // namespace

std::optional<Endpoint> parse_endpoint(const std::string& line) {
  const size_t first = line.find(' '), second = line.find(' ', first == std::string::npos ? first : first + 1);
  if (first == std::string::npos) return std::nullopt;
  const std::string kind = line.substr(0, first), name = line.substr(first + 1, second - first - 1);
  if (kind == "unix" && second == std::string::npos) return local(name);
  if (kind != "tcp" || second == std::string::npos) return std::nullopt;
  in_port_t port = 0;
  const char *from = line.data() + second + 1, *end = line.data() + line.size();
  const auto parsed = std::from_chars(from, end, port);
  if (parsed.ec != std::errc() || parsed.ptr != end || port == 0) return std::nullopt;
  return remote(name, port);
}

std::string ways_to(const std::string& endpoints) {
  std::string text;
  std::istringstream lines(endpoints);
  for (std::string line; std::getline(lines, line);) {
    const auto there = parse_endpoint(line);
    if (!there || there->address.ss_family == AF_UNIX) continue;
    const std::string own = own_address_for(*there);
    const Name name = name_of(*there);
    if (!text.empty()) text += ", ";
    text += (own.empty() ? "no way" : "from " + own) + " to " + name.address + " port " + std::to_string(name.port);
  }
  return text;
}

void notice_a_dead_peer(int socket) {
  const int yes = 1, idle_s = 10, between_s = 5, times = 3, untaken_ms = 25000;
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof between_s);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &untaken_ms, sizeof untaken_ms);
}

bool is_far(int socket) {
  sockaddr_storage peer{};
  socklen_t bytes = sizeof peer;
  return getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &bytes) == 0 && peer.ss_family != AF_UNIX;
}

bool is_elsewhere(int socket) {
  Endpoint own, peer;
  own.bytes = peer.bytes = sizeof own.address;
  return is_far(socket) && getsockname(socket, reinterpret_cast<sockaddr*>(&own.address), &own.bytes) == 0 &&
         getpeername(socket, reinterpret_cast<sockaddr*>(&peer.address), &peer.bytes) == 0 && name_of(own).address != name_of(peer).address;
}

Listener::Listener(Reach reach) {
  if (reach != Reach::loopback) listen_near();
  if (reach != Reach::node) listen_far(reach == Reach::loopback);
}

bool Listener::listen_on(const Endpoint& wanted, Endpoint& bound) {
  raw::Fd socket(::socket(wanted.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&wanted.address), wanted.bytes) != 0) return false;
  if (::listen(socket.get(), longest_queue) != 0) return false;
  bound.bytes = sizeof bound.address;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound.address), &bound.bytes) != 0) return false;
  sockets_.push_back(std::move(socket));
  return true;
}

// Nothing in the file system to be left over.
void Listener::listen_near() {
  std::array<std::byte, 16> random;
  if (!draw(random)) return;
  std::string name = "holdfast-";
  for (const std::byte byte : random)
    for (const int nibble : {int(byte) >> 4, int(byte) & 15}) name += "0123456789abcdef"[nibble];
  Endpoint bound;
  if (listen_on(*local(name), bound)) endpoints_ += "unix " + name + "\n";
}

void Listener::listen_far(bool loopback) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return;
  for (const ifaddrs* one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr || !(one->ifa_flags & IFF_UP) || ((one->ifa_flags & IFF_LOOPBACK) != 0) != loopback) continue;
    const auto wanted = any_port_of(one->ifa_addr);
    Endpoint bound;
    if (!wanted) continue;
    if (listen_on(*wanted, bound)) endpoints_ += line_of(bound);
    else missed_ = Status::from_errno(errno, name_of(*wanted).address).sentence();
  }
  freeifaddrs(all);
}

}  // namespace holdfast::transport
