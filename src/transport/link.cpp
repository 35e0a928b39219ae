#include "transport/link.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#include <algorithm>
#include <sstream>

#include "transport/endpoint.hpp"

namespace holdfast::transport {

namespace {

int64_t now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

bool becomes_writable(int fd, uint64_t deadline_ms) {
  const int64_t end_ms = now_ms() + int64_t(deadline_ms);
  pollfd wait{fd, POLLOUT, 0};
  int ready = -1;
  do ready = poll(&wait, 1, int(std::clamp<int64_t>(end_ms - now_ms(), 0, INT32_MAX)));
  while (ready < 0 && errno == EINTR);
  return ready == 1;
}

// What is left of the vectors after `done` bytes of them.
class Rest {
 public:
  explicit Rest(std::span<const iovec> all) : all_(all) { skip(0); }
  bool empty() const { return next_ == all_.size(); }
  msghdr message() {
    const size_t count = std::min(all_.size() - next_, most);
    for (size_t i = 0; i < count; ++i) vectors_[i] = all_[next_ + i];
    vectors_[0].iov_base = static_cast<std::byte*>(vectors_[0].iov_base) + done_;
    vectors_[0].iov_len -= done_;
    msghdr message{};
    message.msg_iov = vectors_, message.msg_iovlen = count;
    return message;
  }
  void skip(size_t bytes) {
    done_ += bytes;
    for (; next_ < all_.size() && done_ >= all_[next_].iov_len; ++next_) done_ -= all_[next_].iov_len;
  }

 private:
  static constexpr size_t most = 64;
  std::span<const iovec> all_;
  size_t next_ = 0, done_ = 0;
  iovec vectors_[most];
};

// So long a socket waits in one call.
void limit(int fd, uint64_t deadline_ms) {
  const timeval time{time_t(deadline_ms / 1000), suseconds_t(deadline_ms % 1000 * 1000)};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

// 0, or why it is over: EAGAIN is the deadline. The socket has it too (limit), but begins anew after each signal of the program's.
int move_all(int fd, std::span<const iovec> vectors, bool out, uint64_t deadline_ms) {
  int64_t end_ms = 0;
  for (Rest rest(vectors); !rest.empty();) {
    msghdr message = rest.message();
    const ssize_t moved = out ? sendmsg(fd, &message, MSG_NOSIGNAL) : recvmsg(fd, &message, 0);
    if (moved > 0) {
      rest.skip(size_t(moved));
      end_ms = 0;
      continue;
    }
    if (moved == 0) return ECONNRESET;
    if (errno != EINTR) return errno == EWOULDBLOCK ? EAGAIN : errno;
    if (end_ms == 0) end_ms = now_ms() + int64_t(deadline_ms);
    else if (now_ms() >= end_ms) return EAGAIN;
  }
  return 0;
}

raw::Fd connect_to(const Endpoint& endpoint, uint64_t deadline_ms) {
  raw::Fd fd(raw::with_room([&] { return ::socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }));
  if (!fd) return fd;
  int error = ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.bytes) == 0 ? 0 : errno;
  if (error == EINPROGRESS || error == EAGAIN) {
    socklen_t size = sizeof error;
    if (!becomes_writable(fd.get(), deadline_ms)) return raw::Fd();
    getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error != 0) return raw::Fd();
  const int yes = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  raw::fcntl(fd.get(), F_SETFL, raw::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
  limit(fd.get(), deadline_ms);
  return fd;
}

template <class T>
int move(int fd, T& message, bool out, uint64_t deadline_ms) {
  const iovec vector{const_cast<std::remove_const_t<T>*>(&message), sizeof message};
  return move_all(fd, std::span(&vector, 1), out, deadline_ms);
}

Status nobody() { return Status(Kind::io, "nobody answers"); }

Status greet(int fd, const Agreement& agreement, uint64_t deadline_ms) {
  Nonce nonce;
  if (!draw(nonce)) return Status(Kind::io, "the kernel gives no random numbers");
  const ClientGreeting greeting(agreement, nonce);
  const Hello hello = greeting.hello();
  Reply reply;
  if (move(fd, hello, true, deadline_ms) != 0 || move(fd, reply, false, deadline_ms) != 0) return nobody();
  const auto closing = greeting.answer(reply);
  if (!closing.ok()) return closing.status();
  uint64_t welcome = 0;
  if (move(fd, *closing, true, deadline_ms) != 0 || move(fd, welcome, false, deadline_ms) != 0 || welcome != welcome_word) return nobody();
  return Status();
}

}  // namespace

// A node has addresses that others cannot reach, and some of those never answer: only when none has answered quickly does each get
// all the time there is. One address may be another node's own, too: the next one is tried, and what it said is the answer if no other does better.
Status Link::connect(const std::string& endpoints, const Agreement& agreement, uint64_t deadline_ms) {
  constexpr uint64_t quickly_ms = 300;
  Status refused = nobody();
  deadline_ms_ = deadline_ms;
  for (const uint64_t patience_ms : {std::min(quickly_ms, deadline_ms), deadline_ms}) {
    std::istringstream lines(endpoints);
    for (std::string line; std::getline(lines, line);) {
      const auto endpoint = parse_endpoint(line);
      if (!endpoint) continue;
      raw::Fd fd = connect_to(*endpoint, patience_ms);
      if (!fd) continue;
      Status greeted = greet(fd.get(), agreement, patience_ms);
      if (greeted.ok()) {
        limit(fd.get(), deadline_ms);
        socket_ = std::move(fd);
        return Status();
      }
      if (greeted.kind() != Kind::io) refused = std::move(greeted);
    }
  }
  return refused;
}

void Link::wait_up_to(uint64_t deadline_ms) {
  deadline_ms_ = deadline_ms;
  limit(socket_.get(), deadline_ms);
  notice_a_dead_peer(socket_.get());
}

Status Link::broken(int reason) {
  socket_.reset();
  if (reason == EAGAIN) return Status(Kind::timed_out, "no answer in time");
  return Status(Kind::io, "the connection has gone", reason);
}

Status Link::send(std::span<const iovec> from) {
  if (!socket_) return Status(Kind::io, "there is no connection any more");
  const int reason = move_all(socket_.get(), from, true, deadline_ms_);
  return reason == 0 ? Status() : broken(reason);
}

Status Link::receive(std::span<const iovec> into) {
  if (!socket_) return Status(Kind::io, "there is no connection any more");
  const int reason = move_all(socket_.get(), into, false, deadline_ms_);
  return reason == 0 ? Status() : broken(reason);
}

}  // namespace holdfast::transport
