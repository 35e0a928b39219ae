#include "service/pointer_server.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/raw_syscalls.hpp"
#include "service/pointer_protocol.hpp"

namespace holdfast::service {

namespace {

constexpr size_t kMostStrangers = 256;  // connections that have not shown the token yet

struct Client {
  raw::Fd socket;
  bool known = false;
  size_t filled = 0;
  std::byte buffer[64 * sizeof(Request)];
};

class Server {
 public:
  explicit Server(int control) : control_(control), poll_(epoll_create1(EPOLL_CLOEXEC)) { watch(control); }

  void run() {
    while (true) {
      epoll_event events[64];
      const int count = epoll_wait(poll_.get(), events, 64, -1);
      if (count < 0 && errno != EINTR) return;
      for (int i = 0; i < count; ++i) {
        const int fd = events[i].data.fd;
        if (fd == control_.get()) {
          if (!obey()) return;
        } else if (is_listener(fd)) {
          welcome(fd);
        } else if (auto found = clients_.find(fd); found != clients_.end() && !serve(*found->second)) {
          if (!found->second->known) --strangers_;
          clients_.erase(found);
        }
      }
    }
  }

 private:
  void watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event);
  }

  bool is_listener(int fd) const {
    for (const raw::Fd& listener : listeners_) {
      if (listener.get() == fd) return true;
    }
    return false;
  }

  // False: who started us is gone, or wants no more.
  bool obey() {
    Command command;
    const ssize_t got = recv(control_.get(), &command, sizeof command, MSG_WAITALL);
    if (got < 0 && errno == EINTR) return true;
    if (got != sizeof command) return false;
    listeners_.clear();
    if (command.what == Command::hush) return true;
    token_ = command.token;
    endpoints_.clear();
    if (command.what != Command::listen_loopback) listen_near();
    if (command.what != Command::listen_near) listen_far(command.what == Command::listen_loopback);
    endpoints_.resize(kEndpointsBytes);
    return send(control_.get(), endpoints_.data(), endpoints_.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(endpoints_.size());
  }

  bool listen_on(int family, const sockaddr* address, socklen_t bytes, sockaddr_storage& bound) {
    raw::Fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket || ::bind(socket.get(), address, bytes) != 0 || ::listen(socket.get(), 4096) != 0) return false;
    socklen_t size = sizeof bound;
    getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size);
    watch(socket.get());
    listeners_.push_back(std::move(socket));
    return true;
  }

  // A name in the kernel's own space: nothing in the file system to be left over.
  void listen_near() {
    unsigned char random[16];
    if (getrandom(random, sizeof random, 0) != sizeof random) return;
    std::string name = "holdfast-";
    for (unsigned char byte : random) name += "0123456789abcdef"[byte >> 4], name += "0123456789abcdef"[byte & 15];
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    sockaddr_storage bound{};
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (listen_on(AF_UNIX, reinterpret_cast<sockaddr*>(&address), bytes, bound)) endpoints_ += "unix " + name + "\n";
  }

  // On each address that other nodes may know us by. `loopback`: on that instead.
  void listen_far(bool loopback) {
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) return;
    for (const ifaddrs* one = all; one; one = one->ifa_next) {
      if (!one->ifa_addr || !(one->ifa_flags & IFF_UP) || ((one->ifa_flags & IFF_LOOPBACK) != 0) != loopback) continue;
      const int family = one->ifa_addr->sa_family;
      char text[INET6_ADDRSTRLEN];
      sockaddr_storage bound{};
      if (family == AF_INET) {
        sockaddr_in address = *reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
        address.sin_port = 0;
        if (!listen_on(family, reinterpret_cast<sockaddr*>(&address), sizeof address, bound)) continue;
        inet_ntop(family, &address.sin_addr, text, sizeof text);
        add_endpoint(text, reinterpret_cast<const sockaddr_in&>(bound).sin_port);
      } else if (family == AF_INET6) {
        sockaddr_in6 address = *reinterpret_cast<const sockaddr_in6*>(one->ifa_addr);
        if (IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr)) continue;
        address.sin6_port = 0;
        if (!listen_on(family, reinterpret_cast<sockaddr*>(&address), sizeof address, bound)) continue;
        inet_ntop(family, &address.sin6_addr, text, sizeof text);
        add_endpoint(text, reinterpret_cast<const sockaddr_in6&>(bound).sin6_port);
      }
    }
    freeifaddrs(all);
  }

  void add_endpoint(const char* address, in_port_t port) {
    const std::string line = std::string("tcp ") + address + " " + std::to_string(ntohs(port)) + "\n";
    if (endpoints_.size() + line.size() < kEndpointsBytes) endpoints_ += line;
  }

  void welcome(int listener) {
    raw::Fd socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket || strangers_ >= kMostStrangers) return;
    const int yes = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    const int fd = socket.get();
    auto client = std::make_unique<Client>();
    client->socket = std::move(socket);
    clients_[fd] = std::move(client);
    ++strangers_;
    watch(fd);
  }

  // False: the client is gone, or none of ours.
  bool serve(Client& client) {
    const ssize_t got = recv(client.socket.get(), client.buffer + client.filled, sizeof client.buffer - client.filled, 0);
    if (got < 0) return errno == EINTR || errno == EAGAIN;
    if (got == 0) return false;
    client.filled += static_cast<size_t>(got);
    size_t used = 0;
    if (!client.known) {
      if (client.filled < sizeof(Hello)) return true;
      Hello hello;
      std::memcpy(&hello, client.buffer, sizeof hello);
      used = sizeof hello;
      if (!is_token(hello)) return false;
      client.known = true;
      --strangers_;
      if (!answer(client, &kWelcome, sizeof kWelcome)) return false;
    }
    for (; client.filled - used >= sizeof(Request); used += sizeof(Request)) {
      Request request;
      std::memcpy(&request, client.buffer + used, sizeof request);
      const Answer reply{operate(request), request.number, 0};
      if (!answer(client, &reply, sizeof reply)) return false;
    }
    client.filled -= used;
    std::memmove(client.buffer, client.buffer + used, client.filled);
    return true;
  }

  // Every byte is looked at, so that the time tells nothing.
  bool is_token(const Hello& hello) const {
    if (hello.magic != Hello().magic) return false;
    std::byte different{};
    for (size_t i = 0; i < token_.size(); ++i) different |= hello.token[i] ^ token_[i];
    return different == std::byte{};
  }

  // A client waits for each answer before it asks again: the socket always has room.
  static bool answer(const Client& client, const void* data, size_t bytes) {
    return send(client.socket.get(), data, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
  }

  int64_t operate(const Request& request) {
    if (request.op == Op::forget) return pointers_.erase(request.file), 0;
    int64_t& pointer = pointers_[request.file];
    const int64_t before = pointer;
    if (request.op == Op::fetch_add) pointer += request.operand;
    if (request.op == Op::store) pointer = request.operand;
    return before;
  }

  raw::Fd control_, poll_;
  Token token_{};
  std::string endpoints_;
  std::vector<raw::Fd> listeners_;
  std::unordered_map<int, std::unique_ptr<Client>> clients_;
  size_t strangers_ = 0;
  std::unordered_map<uint64_t, int64_t> pointers_;
};

}  // namespace

void serve_pointers(int control) { Server(control).run(); }

}  // namespace holdfast::service
