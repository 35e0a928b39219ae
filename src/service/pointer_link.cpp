#include "service/pointer_link.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <sstream>

namespace holdfast::service {

namespace {

int64_t now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

// The socket has the deadline too, but begins anew after each signal of the program's.
bool receive(int fd, void* into, size_t bytes, uint64_t deadline_ms) {
  auto* at = static_cast<std::byte*>(into);
  const int64_t end_ms = now_ms() + static_cast<int64_t>(deadline_ms);
  while (bytes != 0) {
    const ssize_t got = recv(fd, at, bytes, 0);
    if (got < 0 && errno == EINTR) {
      if (now_ms() < end_ms) continue;
      errno = EAGAIN;
      return false;
    }
    if (got <= 0) {
      if (got == 0) errno = ECONNRESET;
      return false;
    }
    at += got, bytes -= static_cast<size_t>(got);
  }
  return true;
}

bool transmit(int fd, const void* from, size_t bytes) {
  auto* at = static_cast<const std::byte*>(from);
  while (bytes != 0) {
    const ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent, bytes -= static_cast<size_t>(sent);
  }
  return true;
}

// "unix NAME" or "tcp ADDRESS PORT" as an address; its length, 0 for what is neither.
socklen_t parse(const std::string& line, sockaddr_storage& address) {
  std::istringstream words(line);
  std::string kind, name;
  unsigned port = 0;
  words >> kind >> name >> port;
  auto& local = reinterpret_cast<sockaddr_un&>(address);
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  address = {};
  if (kind == "unix" && name.size() < sizeof local.sun_path - 1) {
    local.sun_family = AF_UNIX;
    std::memcpy(local.sun_path + 1, name.data(), name.size());
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  if (kind == "tcp" && inet_pton(AF_INET, name.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<in_port_t>(port));
    return sizeof v4;
  }
  if (kind == "tcp" && inet_pton(AF_INET6, name.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(static_cast<in_port_t>(port));
    return sizeof v6;
  }
  return 0;
}

bool becomes_writable(int fd, uint64_t deadline_ms) {
  const int64_t end_ms = now_ms() + static_cast<int64_t>(deadline_ms);
  pollfd wait{fd, POLLOUT, 0};
  int ready = -1;
  do ready = poll(&wait, 1, static_cast<int>(std::max<int64_t>(end_ms - now_ms(), 0)));
  while (ready < 0 && errno == EINTR);
  return ready == 1;
}

void limit(int fd, uint64_t deadline_ms) {
  const timeval time{static_cast<time_t>(deadline_ms / 1000), static_cast<suseconds_t>(deadline_ms % 1000 * 1000)};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

raw::Fd connect_to(const sockaddr_storage& address, socklen_t bytes, uint64_t deadline_ms) {
  raw::Fd fd(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fd;
  int error = ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), bytes) == 0 ? 0 : errno;
  if (error == EINPROGRESS || error == EAGAIN) {
    socklen_t size = sizeof error;
    if (!becomes_writable(fd.get(), deadline_ms)) return raw::Fd();
    getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error != 0) return raw::Fd();
  raw::fcntl(fd.get(), F_SETFL, raw::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
  const int yes = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  limit(fd.get(), deadline_ms);
  return fd;
}

}  // namespace

bool PointerLink::connect_one(const std::string& endpoint, const Token& token, uint64_t deadline_ms) {
  sockaddr_storage address;
  const socklen_t bytes = parse(endpoint, address);
  if (bytes == 0) return false;
  raw::Fd fd = connect_to(address, bytes, deadline_ms);
  Hello hello;
  hello.token = token;
  uint64_t welcome = 0;
  if (!fd || !transmit(fd.get(), &hello, sizeof hello) || !receive(fd.get(), &welcome, sizeof welcome, deadline_ms) || welcome != kWelcome)
    return false;
  socket_ = std::move(fd);
  return true;
}

// A node has addresses that others cannot reach, and some of those never answer: only when none has answered quickly does each get
// all the time there is.
Status PointerLink::connect(const std::string& endpoints, const Token& token, uint64_t deadline_ms) {
  constexpr uint64_t kQuicklyMs = 300;
  std::lock_guard lock(mutex_);
  deadline_ms_ = deadline_ms;
  for (const uint64_t patience_ms : {std::min(kQuicklyMs, deadline_ms), deadline_ms}) {
    std::istringstream lines(endpoints);
    for (std::string line; std::getline(lines, line);) {
      if (!connect_one(line, token, patience_ms)) continue;
      limit(socket_.get(), deadline_ms);
      return Status();
    }
  }
  return Status(Kind::io, "the process that keeps the shared file pointer cannot be reached");
}

bool PointerLink::exchange(const Request& request, Answer& answer) {
  return transmit(socket_.get(), &request, sizeof request) && receive(socket_.get(), &answer, sizeof answer, deadline_ms_) &&
         answer.number == request.number;
}

int64_t PointerLink::ask(Op op, uint64_t file, int64_t operand) {
  std::lock_guard lock(mutex_);
  if (!socket_) return -1;
  Request request;
  request.file = file, request.operand = operand, request.op = op, request.number = ++number_;
  Answer answer;
  if (exchange(request, answer)) return answer.before;
  const bool late = errno == EAGAIN || errno == EWOULDBLOCK;
  failure_ = Status(late ? Kind::timed_out : Kind::io,
                    late ? "the process that keeps the shared file pointer did not answer in time; close the file and open it again"
                         : "the process that keeps the shared file pointer has gone; close the file and open it again");
  socket_.reset();
  return -1;
}

Status PointerLink::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace holdfast::service
