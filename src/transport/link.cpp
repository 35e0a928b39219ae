#include "transport/link.hpp"

#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <list>
#include <optional>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "transport/endpoint.hpp"

namespace holdfast::transport {

namespace {

int64_t now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
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

// A connection that has been begun, or none. Full: so many have come to a socket of this node at once that the next one is not taken yet.
raw::Fd begin_to(const Endpoint& endpoint, bool& is_full) {
  raw::Fd fd(raw::with_room([&] { return ::socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }));
  if (!fd) return fd;
  const int error = ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.bytes) == 0 ? 0 : errno;
  is_full = error == EAGAIN;
  return error == 0 || error == EINPROGRESS ? std::move(fd) : raw::Fd();
}

std::atomic<bool> gives_way = false;

void be_of_lower_effort(int fd) {
  constexpr int effort = IPTOS_CLASS_CS1, last_band = 2;  // TC_PRIO_BULK of linux/pkt_sched.h
  setsockopt(fd, IPPROTO_IP, IP_TOS, &effort, sizeof effort);
  setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &effort, sizeof effort);
  setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &last_band, sizeof last_band);  // last: a class sets it, too
}

// False, and errno.
bool was_accepted(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  errno = error;
  if (error != 0) return false;
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (gives_way) be_of_lower_effort(fd);
  return true;
}

void block(int fd, uint64_t deadline_ms) {
  raw::fcntl(fd, F_SETFL, raw::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  limit(fd, deadline_ms);
}

template <class T>
int move(int fd, T& message, bool out, uint64_t deadline_ms) {
  const iovec vector{const_cast<std::remove_const_t<T>*>(&message), sizeof message};
  return move_all(fd, std::span(&vector, 1), out, deadline_ms);
}

Status nobody(const std::string& endpoints = "") {
  const std::string ways = ways_to(endpoints);
  return Status(Kind::io, ways.empty() ? "nobody answers" : fmt::format("nobody answers ({})", ways));
}

// From the server's reply on.
Status finish(int fd, const ClientGreeting& greeting, uint64_t deadline_ms) {
  Reply reply;
  if (move(fd, reply, false, deadline_ms) != 0) return nobody();
  const auto closing = greeting.answer(reply);
  if (!closing.ok()) return closing.status();
  uint64_t welcome = 0;
  if (move(fd, *closing, true, deadline_ms) != 0 || move(fd, welcome, false, deadline_ms) != 0 || welcome != welcome_word) return nobody();
  return Status();
}

// Connections to all addresses, as RFC 8305 has them. Each is begun a moment after the one before, or at once where that has failed. The first that
// greets is taken. So an address that never answers costs the moment, and one that answers at once has no company. Where one is hung up on in its
// greeting it is begun anew a moment later: a server in a crowd makes room that way.
class SideBySide {
 public:
  SideBySide(const std::vector<Endpoint>& endpoints, const Agreement& agreement) : agreement_(agreement) {
    for (const Endpoint& one : endpoints) waiting_.push_back({one, 0});
  }
  // The next one that says something until then is greeted. Nothing where none does.
  std::optional<Status> next(int64_t end_ms, raw::Fd& socket) {
    for (int64_t now = now_ms(); now < end_ms; now = now_ms()) {
      if (!waiting_.empty() && now >= due_ms()) begin_one(now);
      if (begun_.empty() && waiting_.empty()) return std::nullopt;
      std::vector<pollfd> wait;
      for (const Begun& one : begun_) wait.push_back({one.socket.get(), short(one.asked ? POLLIN : POLLOUT), 0});
      const int64_t until = waiting_.empty() ? end_ms : std::min(end_ms, due_ms());
      if (poll(wait.data(), wait.size(), int(std::max<int64_t>(until - now, 0))) < 0 && errno != EINTR) return std::nullopt;
      if (const auto said = go_on(wait, end_ms, socket)) return said;
    }
    return std::nullopt;
  }

 private:
  static constexpr int64_t moment_ms = 50;
  struct Waiting {
    Endpoint endpoint;
    int64_t from_ms;  // not before that
  };
  struct Begun {
    Endpoint endpoint;
    raw::Fd socket;
    ClientGreeting greeting;
    bool asked = false;
  };
  void again_later(const Endpoint& endpoint) { waiting_.push_back({endpoint, now_ms() + moment_ms}); }
  int64_t due_ms() const { return std::max(due_ms_, waiting_.front().from_ms); }
  void begin_one(int64_t now) {
    due_ms_ = now + moment_ms;
    Nonce nonce;
    bool is_full = false;
    const Endpoint endpoint = waiting_.front().endpoint;
    waiting_.pop_front();
    raw::Fd fd = begin_to(endpoint, is_full);
    if (is_full) waiting_.push_back({endpoint, due_ms_});
    if (fd && draw(nonce)) begun_.push_back({endpoint, std::move(fd), ClientGreeting(agreement_, nonce)});
    else if (!is_full) due_ms_ = now;
  }
  std::optional<Status> go_on(const std::vector<pollfd>& waited, int64_t end_ms, raw::Fd& socket) {
    auto one = begun_.begin();
    for (const pollfd& each : waited) {
      const auto this_one = one++;
      if (each.revents == 0) continue;
      if (this_one->asked) return answered(this_one, end_ms - now_ms(), socket);
      if (ask(*this_one)) continue;
      if (errno == ECONNRESET || errno == EPIPE) again_later(this_one->endpoint);
      begun_.erase(this_one);
      due_ms_ = 0;
    }
    return std::nullopt;
  }
  // False, and errno.
  static bool ask(Begun& one) {
    const Hello hello = one.greeting.hello();
    one.asked = was_accepted(one.socket.get()) && ::send(one.socket.get(), &hello, sizeof hello, MSG_NOSIGNAL) == ssize_t(sizeof hello);
    return one.asked;
  }
  Status answered(std::list<Begun>::iterator one, int64_t left_ms, raw::Fd& socket) {
    const auto patience_ms = uint64_t(std::max<int64_t>(left_ms / int64_t(begun_.size() + waiting_.size()), 1));
    block(one->socket.get(), patience_ms);
    const Status greeted = finish(one->socket.get(), one->greeting, patience_ms);
    if (greeted.ok()) socket = std::move(one->socket);
    else if (greeted.kind() == Kind::io) again_later(one->endpoint);
    begun_.erase(one);
    due_ms_ = 0;
    return greeted;
  }
  const Agreement& agreement_;
  std::deque<Waiting> waiting_;
  std::list<Begun> begun_;
  int64_t due_ms_ = 0;  // when the next one that waits is begun
};

}  // namespace

void give_way() { gives_way = true; }

// A node has addresses that others cannot reach, and some of those never answer. One address may be another node's own, too: the others are waited for,
// and what it said is the answer if no other does better.
Status Link::connect(const std::string& endpoints, const Agreement& agreement, uint64_t deadline_ms) {
  Status refused;
  deadline_ms_ = deadline_ms;
  std::vector<Endpoint> all;
  std::istringstream lines(endpoints);
  for (std::string line; std::getline(lines, line);)
    if (const auto endpoint = parse_endpoint(line)) all.push_back(*endpoint);
  SideBySide side_by_side(all, agreement);
  for (const int64_t end_ms = now_ms() + int64_t(deadline_ms);;) {
    const auto greeted = side_by_side.next(end_ms, socket_);
    if (!greeted) return refused.ok() ? nobody(endpoints) : refused;
    if (greeted->ok()) {
      limit(socket_.get(), deadline_ms);
      return Status();
    }
    if (greeted->kind() != Kind::io) refused = *greeted;
  }
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

bool Link::has_ended() const {
  pollfd look{socket_.get(), POLLIN | POLLRDHUP, 0};
  return !socket_ || poll(&look, 1, 0) != 0;
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
