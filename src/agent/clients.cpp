#include "agent/clients.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>

#include "target/agent_near.hpp"
#include "transport/endpoint.hpp"

namespace holdfast::agent {

using target::AgentOp;

namespace {

constexpr int stalled_ms = 30000;  // a client that has begun a request, or gets an answer, goes on within so long
// So long a session waits for its client to come back. Others wait for its locks.
constexpr std::chrono::seconds kept_with_locks(5), kept_without(600);

bool again(int reason) { return reason == EINTR || reason == EAGAIN; }
bool was_reset(int reason) { return reason == ECONNRESET || reason == EPIPE || reason == ENOTCONN; }

// A client that ends closes its connection in order, whatever else happens to it then.
bool has_closed(int fd) {
  char byte;
  return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

}  // namespace

Clients::Clients(std::shared_ptr<const Served> served, uint64_t incarnation, Aside aside, OpenForNode open, std::function<void()> end)
    : incarnation_(incarnation),
      aside_(std::move(aside)),
      open_(std::move(open)),
      end_(std::move(end)),
      no_memory_(std::make_shared<const Session::Reply>(Session::reply_of(Status(Kind::io, "the agent has no memory for that", ENOMEM)))),
      seats_(std::move(served)) {}

void Clients::serve(int fd) {
  transport::notice_a_dead_peer(fd);  // its locks go with it
  Connection connection;
  {
    std::lock_guard lock(mutex_);
    sockets_[connection = ++last_connection_] = fd;
  }
  Ending ending = Ending::hung_up;
  try {
    ending = converse(connection, fd);
  } catch (const std::bad_alloc&) {  // whoever asks for more than there is memory is hung up on
  }
  leave(connection, ending);
}

Clients::Ending Clients::converse(Connection connection, int fd) {
  RequestReader reader;
  for (;;) {
    pollfd wait{fd, POLLIN, 0};
    const int ready = poll(&wait, 1, reader.in_request() ? stalled_ms : -1);
    if (ready < 0 && again(errno)) continue;
    if (ready <= 0) return Ending::hung_up;
    const auto room = reader.room();
    const ssize_t got = recv(fd, room.data(), room.size(), 0);
    if (got < 0 && again(errno)) continue;
    if (got <= 0) return got == 0 ? Ending::gone : was_reset(errno) ? Ending::reset : Ending::hung_up;
    const auto state = reader.came(size_t(got));
    if (state == RequestReader::State::senseless) return ++senseless_, Ending::hung_up;
    if (state == RequestReader::State::begun) continue;
    Ending ending;
    if (const auto op = AgentOp(reader.request().op); op == AgentOp::begin) ending = begin(connection, fd, reader.request(), reader.bulk());
    else ending = op == AgentOp::directory ? hand_over(fd, reader) : carry_out(connection, fd, reader);
    if (ending != Ending::none) return ending;
    reader.next();
  }
}

Clients::Ending Clients::begin(Connection connection, int fd, const target::AgentRequest& request, ByteView bulk) {
  std::vector<target::SessionId> ids(bulk.size() / sizeof(target::SessionId));
  if (ids.empty() || bulk.size() % sizeof ids[0] != 0 || request.number != 0) return ++senseless_, Ending::hung_up;
  std::memcpy(ids.data(), bulk.data(), bulk.size());
  Session::Reply reply;
  std::vector<Seats::SeatPtr> over;
  auto turn = Seats::Turn::now;
  {
    std::unique_lock lock(mutex_);
    const Seats::Begun begun = seats_.begin(connection, ids[0], request.flags & 1, std::span(ids).subspan(1));
    for (const Connection fenced : begun.fenced)
      if (const auto other = sockets_.find(fenced); other != sockets_.end()) shutdown(other->second, SHUT_RDWR);
    changed_.notify_all();
    reply = Session::reply_of(begun.status);
    if (begun.status.ok()) {
      changed_.wait(lock, [&] { return (turn = seats_.turn(connection, over)) != Seats::Turn::later; });
      reply.answer.value = seats_.last(connection);
    }
  }
  for (const auto& seat : over) seat->session.end();
  if (turn == Seats::Turn::fenced) return Ending::hung_up;
  if (request.quiet) return reply.answer.kind == 0 ? Ending::none : Ending::hung_up;
  return send(fd, 0, reply);
}

// To the same user's processes of this node, who need nothing else of the agent.
Clients::Ending Clients::hand_over(int fd, const RequestReader& reader) const {
  sockaddr_storage here{};
  socklen_t bytes = sizeof here;
  const bool near = getsockname(fd, reinterpret_cast<sockaddr*>(&here), &bytes) == 0 && here.ss_family == AF_UNIX && target::is_own_user(fd);
  auto opened = near ? open_(reader.name()) : Result<raw::Fd>(Status(Kind::access, "that is for processes of this node", EACCES));
  Session::Reply reply = Session::reply_of(opened.ok() ? Status() : opened.status());
  if (!opened.ok()) return send(fd, 0, reply);
  reply.answer.incarnation = incarnation_;
  const ByteView header = std::as_bytes(std::span(&reply.answer, 1));
  return target::send_with_descriptor(fd, header, opened->get()) ? Ending::none : Ending::hung_up;
}

// What a client asked for that has ended is not carried out: others may have written there since. Nor what came before a reset: it comes again.
Clients::Ending Clients::carry_out(Connection connection, int fd, const RequestReader& reader) {
  char byte;
  const ssize_t peeked = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (peeked == 0) return Ending::gone;
  if (peeked < 0 && !again(errno)) return Ending::reset;
  const target::AgentRequest& request = reader.request();
  Seats::SeatPtr seat;
  Seats::Verdict verdict;
  std::shared_ptr<const Session::Reply> reply;
  {
    std::lock_guard lock(mutex_);
    verdict = seats_.take(connection, request, seat);
    if (verdict == Seats::Verdict::again) reply = seat->answer;
  }
  if (verdict == Seats::Verdict::quiet) return Ending::none;
  if (verdict == Seats::Verdict::fenced) return Ending::hung_up;
  if (verdict == Seats::Verdict::senseless) return ++senseless_, Ending::hung_up;
  bool send_it = true;
  if (verdict == Seats::Verdict::fresh) {
    ++requests_;
    reply = answer_to(*seat, reader);
    std::lock_guard lock(mutex_);
    send_it = seats_.answered(connection, request, reply);
    changed_.notify_all();
  }
  if (reply == no_memory_ && request.quiet) return Ending::hung_up;  // the client would never hear of it
  const Ending ending = send_it ? send(fd, request.number, *reply) : Ending::none;
  if (AgentOp(request.op) == AgentOp::end) end_();
  return ending;
}

// Whatever becomes of it, the request has ended then: others wait for that.
std::shared_ptr<const Session::Reply> Clients::answer_to(Seats::Seat& seat, const RequestReader& reader) const {
  try {
    auto aside = aside_(reader.request());
    return std::make_shared<const Session::Reply>(aside ? std::move(*aside) : seat.session.answer(reader.request(), reader.name(), reader.bulk()));
  } catch (const std::bad_alloc&) {
    return no_memory_;
  }
}

Clients::Ending Clients::send(int fd, uint32_t number, const Session::Reply& reply) const {
  target::AgentAnswer head = reply.answer;
  head.number = number, head.incarnation = incarnation_;
  iovec parts[3] = {{&head, sizeof head},
                    {const_cast<char*>(reply.sentence.data()), reply.sentence.size()},
                    {const_cast<std::byte*>(reply.bulk.data()), reply.bulk.size()}};
  msghdr message{};
  for (size_t next = 0; next < std::size(parts);) {
    if (parts[next].iov_len == 0) {
      ++next;
      continue;
    }
    message.msg_iov = parts + next, message.msg_iovlen = std::size(parts) - next;
    pollfd wait{fd, POLLOUT, 0};
    const int ready = poll(&wait, 1, stalled_ms);
    if (ready < 0 && again(errno)) continue;
    if (ready <= 0) return Ending::hung_up;
    ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    if (sent < 0 && again(errno)) continue;
    if (sent <= 0) {
      const int reason = errno;
      return has_closed(fd) ? Ending::gone : was_reset(reason) ? Ending::reset : Ending::hung_up;
    }
    for (; sent > 0; ++next) {
      const size_t part = std::min(size_t(sent), parts[next].iov_len);
      parts[next].iov_base = static_cast<std::byte*>(parts[next].iov_base) + part;
      parts[next].iov_len -= part, sent -= ssize_t(part);
      if (parts[next].iov_len > 0) break;
    }
  }
  return Ending::none;
}

void Clients::leave(Connection connection, Ending ending) {
  Seats::Left left;
  {
    std::unique_lock lock(mutex_);
    sockets_.erase(connection);
    left = seats_.leave(connection, ending != Ending::reset);
    changed_.notify_all();
    if (left.seat && ending == Ending::reset) {
      const auto kept = left.seat->session.holds_locks() ? kept_with_locks : kept_without;
      changed_.wait_for(lock, kept, [&] { return left.seat->speaker != 0 || left.seat->over; });
      if (!seats_.give_up(left.seat)) return;
    }
  }
  if (left.seat) left.seat->session.end();
}

}  // namespace holdfast::agent
