#include "transport/server.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace holdfast::transport {

namespace {
constexpr size_t most_strangers = 256;  // connections that have not shown yet that they know the secret
constexpr size_t buffer_bytes = 4096;
}  // namespace

struct Server::Client {
  explicit Client(raw::Fd&& connected) : socket(std::move(connected)) {}
  raw::Fd socket;
  std::optional<ServerGreeting> greeting;      // until it is accepted
  std::unique_ptr<Conversation> conversation;  // from then on
  bool replied = false;
  uint64_t number = 0;
  size_t filled = 0;
  std::byte buffer[buffer_bytes];
};

namespace {
raw::Fd a_spare() { return raw::Fd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }
}  // namespace

Server::Server() : poll_(epoll_create1(EPOLL_CLOEXEC)), spare_(a_spare()) {}

Server::~Server() = default;

void Server::add(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void Server::watch(int fd, std::function<bool()> ready) {
  watched_[fd] = std::move(ready);
  add(fd);
}

void Server::forget(int fd) {
  epoll_ctl(poll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  watched_.erase(fd);
}

std::string Server::listen(Reach reach, const Agreement& agreement) {
  agreement_ = agreement;
  listener_.emplace(reach);
  for (const raw::Fd& socket : listener_->sockets()) add(socket.get());
  return listener_->endpoints();
}

std::string Server::unheard() const {
  const bool has_address = !listener_ || listener_->endpoints().find("tcp ") != std::string::npos;
  return has_address ? "" : listener_->missed();
}

void Server::hush() {
  if (listener_)
    for (const raw::Fd& socket : listener_->sockets()) epoll_ctl(poll_.get(), EPOLL_CTL_DEL, socket.get(), nullptr);
  listener_.reset();
}

// Taken off the poll first. Whoever has a copy of the socket keeps it open, and under a number that is closed here it could not be taken off any
// more. It would wake this server for ever.
void Server::hang_up(Clients::iterator client) {
  if (client->second->socket) epoll_ctl(poll_.get(), EPOLL_CTL_DEL, client->first, nullptr);
  if (client->second->greeting) --strangers_;
  clients_.erase(client);
}

bool Server::is_listener(int fd) const {
  if (!listener_) return false;
  const auto& sockets = listener_->sockets();
  return std::any_of(sockets.begin(), sockets.end(), [&](const raw::Fd& socket) { return socket.get() == fd; });
}

void Server::run() {
  for (;;) {
    epoll_event events[64];
    const int count = epoll_wait(poll_.get(), events, 64, -1);
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (const auto watcher = watched_.find(fd); watcher != watched_.end()) {
        const auto ready = watcher->second;  // which may forget itself
        if (!ready()) return;
      } else if (is_listener(fd)) {
        accept(fd);
      } else if (const auto client = clients_.find(fd); client != clients_.end() && !serve(*client->second)) {
        hang_up(client);
      }
    }
  }
}

// Out of descriptors, whoever has not shown yet that he knows the secret goes first. Where all have, the one who comes is hung up on. A connection
// that stays in the queue would wake this server for ever, and hang there.
raw::Fd Server::take_one(int listener) {
  const auto accepted = [&] { return raw::Fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)); };
  raw::Fd socket = accepted();
  const auto is_full = [&] { return !socket && (errno == EMFILE || errno == ENFILE); };
  if (is_full() && strangers_ > 0) {
    forget_a_stranger();
    socket = accepted();
  }
  if (!is_full()) return socket;
  spare_.reset();
  if (accepted()) refused_.fetch_add(1, std::memory_order_relaxed);
  spare_ = a_spare();
  return {};
}

void Server::accept(int listener) {
  raw::Fd socket = take_one(listener);
  Nonce nonce;
  if (!socket || !draw(nonce)) return;
  if (strangers_ >= most_strangers) forget_a_stranger();
  const int yes = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  const int fd = socket.get();
  auto client = std::make_unique<Client>(std::move(socket));
  client->greeting.emplace(agreement_, nonce);
  client->number = ++accepted_;
  clients_[fd] = std::move(client);
  ++strangers_;
  add(fd);
}

// Whoever has kept silent longest: those who know the secret say so at once.
void Server::forget_a_stranger() {
  auto oldest = clients_.end();
  for (auto client = clients_.begin(); client != clients_.end(); ++client)
    if (client->second->greeting && (oldest == clients_.end() || client->second->number < oldest->second->number)) oldest = client;
  hang_up(oldest);
}

bool Server::send(const Client& client, const void* data, size_t bytes) {
  return bytes == 0 || ::send(client.socket.get(), data, bytes, MSG_NOSIGNAL) == ssize_t(bytes);
}

// The next step of a greeting, where all of it has come. False: hang up.
bool Server::greet(Client& client, size_t& used) {
  if (!client.replied) {
    if (client.filled < sizeof(Hello)) return true;
    Hello hello;
    std::memcpy(static_cast<void*>(&hello), client.buffer, sizeof hello);
    used = sizeof hello;
    const auto reply = client.greeting->answer(hello);
    client.replied = reply && send(client, &*reply, sizeof *reply);
    if (!client.replied) return false;
  }
  if (client.filled - used < sizeof(Closing)) return true;
  Closing closing;
  std::memcpy(static_cast<void*>(&closing), client.buffer + used, sizeof closing);
  used += sizeof closing;
  if (!client.greeting->accepts(closing) || !send(client, &welcome_word, sizeof welcome_word)) return false;
  client.greeting.reset();
  --strangers_;
  const int fd = client.socket.get();
  epoll_ctl(poll_.get(), EPOLL_CTL_DEL, fd, nullptr);  // who takes the socket over may close it at once
  client.conversation = welcome(client.socket, ByteView(client.buffer + used, client.filled - used));
  if (client.conversation) add(fd);
  return client.conversation != nullptr;
}

// False: the client is gone, was taken over, or is none of ours.
bool Server::serve(Client& client) {
  const ssize_t got = recv(client.socket.get(), client.buffer + client.filled, sizeof client.buffer - client.filled, 0);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  client.filled += size_t(got);
  size_t used = 0;
  if (client.greeting && !greet(client, used)) {
    if (client.greeting) refused_.fetch_add(1, std::memory_order_relaxed);  // else it has been taken over
    return false;
  }
  if (client.conversation) {
    Bytes out;
    const auto taken = client.conversation->take(ByteView(client.buffer + used, client.filled - used), out);
    if (!taken || !send(client, out.data(), out.size())) return false;
    used += *taken;
  }
  client.filled -= used;
  std::memmove(client.buffer, client.buffer + used, client.filled);
  return client.filled < sizeof client.buffer;
}

}  // namespace holdfast::transport
