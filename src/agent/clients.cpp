#include "agent/clients.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "target/agent_near.hpp"
#include "transport/endpoint.hpp"

namespace holdfast::agent {

using target::AgentOp;

namespace {

// So long a session waits for its client to come back. Others wait for its locks. A client that was hung up on has not noticed it yet.
constexpr std::chrono::seconds kept_with_locks(5), kept_stalled(25), kept_without(600);
constexpr Limits::Time look_again(200), look_at_process(1000);
constexpr uint64_t least_memory = 4 << 20;  // of a directory
constexpr Credits::Holder of_a_session = uint64_t{1} << 63;

bool again(int reason) { return reason == EINTR || reason == EAGAIN; }
bool was_reset(int reason) { return reason == ECONNRESET || reason == EPIPE || reason == ENOTCONN; }

// A client that ends closes its connection in order, whatever else happens to it then.
bool has_closed(int fd) {
  char byte;
  return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

// Whatever of its request may still be there to be read: POLLRDHUP, and POLLERR where the connection broke. 0: it is there.
short has_left(int fd) {
  pollfd look{fd, POLLRDHUP, 0};
  return poll(&look, 1, 0) > 0 ? look.revents : short{0};
}

// Whether another connection goes on with it, or nobody will.
bool is_decided(const Seats::Seat& seat) { return seat.speaker != 0 || seat.over; }

uint64_t share(uint64_t all, size_t directories) { return std::max(all / std::max<size_t>(directories, 1), least_memory); }

}  // namespace

Clients::Clients(std::shared_ptr<const Served> served, uint64_t incarnation, Aside aside, OpenForNode open, std::function<void()> end, Limits limits,
                 OpenPeer open_peer)
    : incarnation_(incarnation),
      aside_(std::move(aside)),
      open_(std::move(open)),
      end_(std::move(end)),
      no_memory_(std::make_shared<const Session::Reply>(Session::reply_of(Status(Kind::io, "the agent has no memory for that", ENOMEM)))),
      limits_(limits),
      seats_(served, std::move(open_peer)) {
  for (const auto& [directory, how] : *served)
    memory_.try_emplace(directory, Credits(share(limits.moving_bytes, served->size())), Credits(share(limits.begun_bytes, served->size())));
}

void Clients::serve(raw::Fd fd) {
  transport::notice_a_dead_peer(fd.get());  // its locks go with it
  Client client{0, std::move(fd), {}};
  {
    std::lock_guard lock(mutex_);
    sockets_[client.connection = ++last_connection_] = client.fd.get();
  }
  Ending ending = Ending::hung_up;
  try {
    ending = converse(client);
  } catch (const std::bad_alloc&) {  // whoever asks for more than there is memory is hung up on
  }
  rest(client, false);
  leave(client, ending);
}

Clients::Ending Clients::converse(Client& client) {
  RequestReader& reader = client.reader;
  for (;;) {
    if (const Ending ending = wait_for_bytes(client); ending != Ending::none) return ending;
    const auto room = reader.room();
    const ssize_t got = recv(client.fd.get(), room.data(), room.size(), 0);
    if (got < 0 && again(errno)) continue;
    if (got <= 0) return got == 0 ? Ending::gone : was_reset(errno) ? Ending::reset : Ending::hung_up;
    const auto state = reader.came(size_t(got));
    if (state == RequestReader::State::senseless) return ++senseless_, Ending::hung_up;
    Ending ending = Ending::none;
    if (state == RequestReader::State::wants_memory) {
      ending = take_memory(client);
      if (ending == Ending::none) reader.admit();
    } else if (state == RequestReader::State::whole) {
      ending = whole(client);
      reader.next();
      give_back_moving(client);
    }
    if (ending != Ending::none) return ending;
  }
}

Clients::Ending Clients::whole(Client& client) {
  const auto op = AgentOp(client.reader.request().op);
  if (op == AgentOp::begin) return begin(client);
  if (op == AgentOp::directory) return hand_over(client);
  const Ending ending = take_memory(client);
  return ending == Ending::none ? carry_out(client) : ending;
}

// Between two requests it may take all the time there is, but for what it has begun.
Clients::Ending Clients::wait_for_bytes(Client& client) {
  if (client.reader.in_request()) return wait_for(client, POLLIN);
  for (;;) {
    pollfd wait{client.fd.get(), POLLIN, 0};
    const int ready = poll(&wait, 1, client.keeps ? int(limits_.stalled.count()) : -1);
    if (ready > 0) return Ending::none;
    if (ready == 0) forget(client);
    else if (!again(errno)) return Ending::hung_up;
  }
}

// Who does not go on in time holds memory no longer. It may have been stopped, as by a batch system, and comes back to its session when it is awake.
Clients::Ending Clients::wait_for(const Client& client, short event) {
  const auto slice = std::min(limits_.stalled_before_others, limits_.stalled);
  for (auto waited = slice;; waited += slice) {
    pollfd wait{client.fd.get(), event, 0};
    const int ready = poll(&wait, 1, int(slice.count()));
    if (ready > 0) return Ending::none;
    if (ready < 0 && again(errno)) continue;
    if (ready < 0) return Ending::hung_up;
    if (waited >= limits_.stalled) return Ending::stalled;
    std::lock_guard lock(mutex_);
    if (client.memory && client.memory->moving.is_waited_for()) return Ending::stalled;
  }
}

// What the request takes up, in turn with other clients' requests.
Clients::Ending Clients::take_memory(Client& client) {
  const Session::Memory wanted = Session::memory_for(client.reader.request());
  if (std::exchange(client.asked, true) || wanted.moving + wanted.begun == 0) return Ending::none;
  std::unique_lock lock(mutex_);
  const Seats::SeatPtr seat = seats_.seat_of(client.connection);
  if (!seat) return Ending::hung_up;
  const auto memory = memory_.find(seat->session.directory());
  if (memory == memory_.end())  // nothing is done for it, and it is told so
    return client.reader.request().bulk_bytes > target::most_free_bytes ? (++senseless_, Ending::hung_up) : Ending::none;
  if (wanted.begun) {
    Credits& begun = memory->second.begun;
    const Credits::Holder holder = of_a_session | seat->number;
    keepers_[holder] = {seat, &begun};
    client.keeps = true;
    if (begun.has(holder)) wake(begun.hold(holder, Seats::kept_bytes(*seat) + wanted.begun));  // who holds some must not wait for more
    else if (const Ending ending = take(lock, begun, holder, wanted.begun, client.fd.get()); ending != Ending::none) return ending;
  }
  if (wanted.moving == 0) return Ending::none;
  client.memory = &memory->second;
  return take(lock, memory->second.moving, client.connection, wanted.moving, client.fd.get());
}

Clients::Ending Clients::take(std::unique_lock<std::mutex>& lock, Credits& credits, Credits::Holder holder, uint64_t bytes, int fd) {
  if (credits.take(holder, bytes)) return Ending::none;
  std::condition_variable mine;
  waiting_[holder] = &mine;
  Ending ending = Ending::none;
  while (!credits.has(holder)) {
    mine.wait_for(lock, look_again);
    sweep();
    const short left = has_left(fd);
    if (credits.has(holder) || left == 0) continue;
    ending = left & POLLERR ? Ending::reset : Ending::gone;
    break;
  }
  waiting_.erase(holder);
  if (ending != Ending::none) wake(credits.give_back(holder));
  return ending;
}

// Those who have got what they waited for. Under the mutex.
void Clients::wake(const std::vector<Credits::Holder>& next) {
  for (const Credits::Holder holder : next)
    if (const auto waits = waiting_.find(holder); waits != waiting_.end()) waits->second->notify_one();
}

// Of sessions that are over.
void Clients::sweep() {
  for (auto one = keepers_.begin(); one != keepers_.end();) {
    const auto& [seat, credits] = one->second;
    const bool is_gone = seat.expired();
    if (is_gone) wake(credits->give_back(one->first));
    one = is_gone ? keepers_.erase(one) : std::next(one);
  }
}

void Clients::give_back_moving(Client& client) {
  client.asked = false;
  if (!client.memory) return;
  std::lock_guard lock(mutex_);
  wake(std::exchange(client.memory, nullptr)->moving.give_back(client.connection));
}

// After a request, under the mutex: what its session keeps.
void Clients::keep(Client& client, const Seats::SeatPtr& seat) {
  const uint64_t bytes = Seats::kept_bytes(*seat);
  if (bytes == 0 && keepers_.empty()) return;
  const Credits::Holder holder = of_a_session | seat->number;
  client.keeps = bytes > 0;
  if (bytes > 0) {
    Credits& begun = memory_.at(seat->session.directory()).begun;
    keepers_[holder] = {seat, &begun};
    wake(begun.hold(holder, bytes));
  } else if (const auto keeper = keepers_.find(holder); keeper != keepers_.end()) {
    wake(keeper->second.second->give_back(holder));
    keepers_.erase(keeper);
  }
}

// It does not go on with what it has begun.
void Clients::forget(Client& client) {
  std::lock_guard lock(mutex_);
  client.keeps = false;
  const Seats::SeatPtr seat = seats_.seat_of(client.connection);
  if (!seat) return;
  Seats::forget(*seat);
  keep(client, seat);
}

Clients::Ending Clients::begin(Client& client) {
  const Connection connection = client.connection;
  const target::AgentRequest& request = client.reader.request();
  const ByteView bulk = client.reader.bulk();
  std::vector<target::SessionId> ids(bulk.size() / sizeof(target::SessionId));
  if (ids.empty() || bulk.size() % sizeof ids[0] != 0 || request.number != 0) return ++senseless_, Ending::hung_up;
  std::memcpy(ids.data(), bulk.data(), bulk.size());
  Session::Reply reply;
  std::vector<Seats::SeatPtr> over;
  auto when = Seats::When::now;
  {
    std::unique_lock lock(mutex_);
    const Seats::Begun begun = seats_.begin(connection, ids[0], request.flags & 1, std::span(ids).subspan(1));
    for (const Connection fenced : begun.fenced)
      if (const auto other = sockets_.find(fenced); other != sockets_.end()) shutdown(other->second, SHUT_RDWR);
    changed_.notify_all();
    reply = Session::reply_of(begun.status);
    if (begun.status.ok()) {
      changed_.wait(lock, [&] { return (when = seats_.when(connection, over)) != Seats::When::later; });
      reply.answer.value = seats_.last(connection);
      const Seats::SeatPtr seat = seats_.seat_of(connection);
      client.keeps = seat && Seats::kept_bytes(*seat) > 0;
    }
  }
  for (const auto& seat : over) seat->session.end();
  if (when == Seats::When::fenced) return Ending::hung_up;
  if (request.quiet) return reply.answer.kind == 0 ? Ending::none : Ending::hung_up;
  return send(client, 0, reply);
}

// To the same user's processes of this node, who need nothing else of the agent.
Clients::Ending Clients::hand_over(const Client& client) {
  const int fd = client.fd.get();
  sockaddr_storage here{};
  socklen_t bytes = sizeof here;
  const bool near = getsockname(fd, reinterpret_cast<sockaddr*>(&here), &bytes) == 0 && here.ss_family == AF_UNIX && target::is_own_user(fd);
  auto opened = near ? open_(client.reader.name()) : Result<raw::Fd>(Status(Kind::access, "that is for processes of this node", EACCES));
  Session::Reply reply = Session::reply_of(opened.ok() ? Status() : opened.status());
  if (!opened.ok()) return send(client, 0, reply);
  reply.answer.incarnation = incarnation_;
  const ByteView header = std::as_bytes(std::span(&reply.answer, 1));
  return target::send_with_descriptor(fd, header, opened->get()) ? Ending::none : Ending::hung_up;
}

// What a client asked for that has ended is not carried out: others may have written there since. Nor what came before a reset: it comes again.
Clients::Ending Clients::carry_out(Client& client) {
  const Connection connection = client.connection;
  const RequestReader& reader = client.reader;
  char byte;
  const ssize_t peeked = recv(client.fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
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
    if (send_it || request.quiet) keep(client, seat);
    changed_.notify_all();
  }
  if (reply == no_memory_ && request.quiet) return Ending::hung_up;  // the client would never hear of it
  rest(client, AgentOp(request.op) == AgentOp::nothing && request.quiet);
  const Ending ending = send_it ? send(client, request.number, *reply) : Ending::none;
  if (AgentOp(request.op) == AgentOp::end) end_();
  return ending;
}

void Clients::rest(Client& client, bool rests) {
  if (std::exchange(client.rests, rests) == rests) return;
  resting_ += rests ? 1 : -1;
  if (rests && when_resting) when_resting();
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

Clients::Ending Clients::send(const Client& client, uint32_t number, const Session::Reply& reply) {
  target::AgentAnswer head = reply.answer;
  head.number = number, head.incarnation = incarnation_;
  iovec parts[3] = {{&head, sizeof head},
                    {const_cast<char*>(reply.sentence.data()), reply.sentence.size()},
                    {const_cast<std::byte*>(reply.bulk.data()), reply.bulk.size()}};
  const Ending ending = send_all(client, parts);
  return ending == Ending::none && reply.sum ? send_sum(client, *reply.sum) : ending;
}

// Small pieces: what the next node does is seen here soon, and one after another they are on all links at once. Where one fails the client may come
// back, and hears why when it asks once more.
Clients::Ending Clients::send_sum(const Client& client, Sum& sum) {
  constexpr uint64_t piece_bytes = 64 << 10;
  Bytes piece(std::min(piece_bytes, sum.bytes()));
  for (uint64_t left = sum.bytes(); left > 0; left -= piece.size()) {
    piece.resize(std::min(piece_bytes, left));
    if (!sum.next(piece).ok()) return Ending::reset;
    iovec part{piece.data(), piece.size()};
    if (const Ending ending = send_all(client, {&part, 1}); ending != Ending::none) return ending;
  }
  return Ending::none;
}

// A kernel says ECONNRESET once, and then answers as if the client had closed. Where it had, before the reset, a send hears EPIPE.
Clients::Ending Clients::ending_of_send(int fd, int reason) {
  if (reason == ECONNRESET) return Ending::reset;
  return has_closed(fd) ? Ending::gone : was_reset(reason) ? Ending::reset : Ending::hung_up;
}

Clients::Ending Clients::send_all(const Client& client, std::span<iovec> parts) {
  const int fd = client.fd.get();
  msghdr message{};
  for (size_t next = 0; next < parts.size();) {
    if (parts[next].iov_len == 0) {
      ++next;
      continue;
    }
    message.msg_iov = parts.data() + next, message.msg_iovlen = parts.size() - next;
    if (const Ending ending = wait_for(client, POLLOUT); ending != Ending::none) return ending;
    ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && again(errno)) continue;
    if (sent <= 0) {
      return ending_of_send(fd, errno);
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

void Clients::leave(Client& client, Ending ending) {
  client.reader.next();
  give_back_moving(client);
  const bool may_return = ending == Ending::reset || ending == Ending::stalled;
  const ClientProcess process(client.fd.get());
  Seats::Left left;
  {
    std::unique_lock lock(mutex_);
    sockets_.erase(client.connection);
    client.fd.reset();  // a client that does not know of it yet hears it now
    left = seats_.leave(client.connection, !may_return);
    changed_.notify_all();
    if (left.seat && may_return) {
      wait_for_return(lock, client, left.seat, process, ending);
      if (!seats_.give_up(left.seat)) return;
    }
  }
  if (left.seat) left.seat->session.end();
}

// What it has begun is kept as long as that of a client that is connected and stalls. A connection breaks, too, where a client is killed that has an
// answer to read.
void Clients::wait_for_return(std::unique_lock<std::mutex>& lock, Client& client, const Seats::SeatPtr& seat, const ClientProcess& process,
                              Ending ending) {
  const Limits::Time kept = !seat->session.holds_locks() ? kept_without : ending == Ending::stalled ? kept_stalled : kept_with_locks;
  const ClientProcess* const known = ending == Ending::reset ? &process : nullptr;  // who stalls was hung up on, and may be another one's companion
  wait_until_decided(lock, client, *seat, known, std::min(kept, limits_.stalled));
  if (!is_decided(*seat) && kept > limits_.stalled) {
    Seats::forget(*seat);
    keep(client, seat);
    wait_until_decided(lock, client, *seat, known, kept - limits_.stalled);
  }
  rest(client, false);
}

// One that has nothing open may be no more, and does not keep the agent from ending. Nor does one whose process has ended. Where that was a companion,
// and the connection another one's, the client comes back at once: on a socket of this node it has hung up itself.
void Clients::wait_until_decided(std::unique_lock<std::mutex>& lock, Client& client, const Seats::Seat& seat, const ClientProcess* process,
                                 Limits::Time patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  do rest(client, !seat.session.has_open() || (process && process->has_ended()));
  while (!changed_.wait_until(lock, std::min(end, std::chrono::steady_clock::now() + look_at_process), [&] { return is_decided(seat); }) &&
         std::chrono::steady_clock::now() < end);
}

}  // namespace holdfast::agent
