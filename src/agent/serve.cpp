#include "agent/serve.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <memory>
#include <new>
#include <sstream>

#include <fmt/format.h>

#include "agent/session.hpp"
#include "base/quiet_thread.hpp"
#include "target/agent_registry.hpp"
#include "target/directory.hpp"
#include "transport/server.hpp"

namespace holdfast::agent {

namespace {

constexpr int stalled_ms = 30000;  // a client that has begun a request, or gets an answer, goes on within so long

// The whole of what was promised, or false: the client is gone or stalls.
bool receive(int fd, void* into, size_t bytes, bool begun) {
  for (auto* at = static_cast<std::byte*>(into); bytes > 0;) {
    pollfd wait{fd, POLLIN, 0};
    const int ready = poll(&wait, 1, begun ? stalled_ms : -1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t got = recv(fd, at, bytes, 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return false;
    at += got, bytes -= size_t(got), begun = true;
  }
  return true;
}

bool transmit(int fd, const void* from, size_t bytes) {
  for (const auto* at = static_cast<const std::byte*>(from); bytes > 0;) {
    pollfd wait{fd, POLLOUT, 0};
    const int ready = poll(&wait, 1, stalled_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent <= 0) return false;
    at += sent, bytes -= size_t(sent);
  }
  return true;
}

// Whether the client has ended: what it asked for before that is not carried out any more, for others may have written there since.
bool has_gone(int fd) {
  char byte;
  return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

class Agent {
 public:
  explicit Agent(const Orders& orders) : orders_(orders), ended_(eventfd(0, EFD_CLOEXEC)), idle_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) {}

  Status begin() {
    auto served = std::make_shared<Served>();
    for (const std::string& directory : orders_.directories) {
      HF_TRY(target::open_directory(directory).status());
      (*served)[directory] = [directory](uint32_t mode) {
        target::DirectoryOptions options;
        options.mode = mode;
        return target::open_directory(directory, options);
      };
    }
    served_ = std::move(served);
    auto secret = target::make_secret(orders_.registry);
    if (!secret.ok()) return secret.status();
    HF_TRY(be_the_only_one());
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    target::AgentNote note{orders_.node, host, {}, int(getpid()), orders_.directories, {}};
    if (!transport::draw(note.id)) return Status(Kind::io, "the kernel gives no random numbers");
    note.endpoints = server_.listen(orders_.reach, target::agent_agreement(*secret, note.id));
    if (note.endpoints.empty()) return Status(Kind::io, "this node has no address to listen on");
    id_ = note.id;
    return target::write_note(orders_.registry, note);
  }

  void run() {
    server_.watch(ended_.get(), [] { return false; });
    server_.watch(idle_.get(), [this] { return still_needed(); });
    server_.welcome = [this](raw::Fd& socket, ByteView early) {
      if (early.empty()) take_over(socket);
      return nullptr;
    };
    arm();
    server_.run();
    if (const auto note = target::read_note(orders_.registry, orders_.node); note.ok() && note->id == id_)
      target::remove_note(orders_.registry, orders_.node);
  }

 private:
  // For as long as this process lives. The one before may be on its way out.
  Status be_the_only_one() {
    constexpr int tries = 250, between_us = 20000;
    target::DirectoryOptions options;
    options.mode = 0600;
    auto registry = target::open_directory(orders_.registry, options);
    if (!registry.ok()) return registry.status();
    for (int i = 0; i < tries; ++i) {
      auto lock = (*registry)->try_lock("lock." + orders_.node);
      if (lock.ok()) {
        only_ = std::move(*lock);
        return {};
      }
      if (lock.status().kind() != Kind::busy) return lock.status();
      usleep(between_us);
    }
    return Status(Kind::busy, runs_already(orders_.node), EBUSY);
  }
  // A thread for each client: a disk that hangs holds up those alone who asked for it, a client that stalls nobody but itself.
  void take_over(raw::Fd& socket) {
    auto shared = std::make_shared<raw::Fd>(std::move(socket));
    ++clients_;
    if (!start_quiet_thread([this, shared] { serve(shared->get()), shared->reset(), leave(); })) leave();
  }
  void leave() {
    if (--clients_ == 0) arm();
  }
  // After a while without clients it is asked whether the agent is still needed.
  void arm() {
    if (orders_.linger_s == 0) return;
    itimerspec time{};
    time.it_value.tv_sec = time_t(orders_.linger_s);
    timerfd_settime(idle_.get(), 0, &time, nullptr);
  }
  bool still_needed() {
    eventfd_t times = 0;
    (void)eventfd_read(idle_.get(), &times);  // a timer's descriptor is read in the same way
    return clients_ > 0;
  }

  // Whoever asks for more than there is memory is hung up on.
  void serve(int fd) {
    try {
      converse(fd);
    } catch (const std::bad_alloc&) {
    }
  }
  void converse(int fd) {
    transport::notice_a_dead_peer(fd);  // its locks go with it
    Session session(served_);
    target::AgentRequest request;
    std::string name;
    Bytes bulk;
    while (receive(fd, &request, sizeof request, false)) {
      if (!sensible(request)) return void(++senseless_);
      name.resize(request.name_bytes), bulk.resize(request.bulk_bytes);
      if (!receive(fd, name.data(), name.size(), true) || !receive(fd, bulk.data(), bulk.size(), true) || has_gone(fd)) return;
      ++requests_;
      Session::Reply reply = respond(session, request, name, bulk);
      Bytes head(sizeof reply.answer + reply.sentence.size());
      std::copy_n(reinterpret_cast<const std::byte*>(&reply.answer), sizeof reply.answer, head.begin());
      std::copy_n(reinterpret_cast<const std::byte*>(reply.sentence.data()), reply.sentence.size(), head.begin() + sizeof reply.answer);
      if (!transmit(fd, head.data(), head.size()) || !transmit(fd, reply.bulk.data(), reply.bulk.size())) return;
      if (bulk.capacity() > 0 && bulk.size() == 0) bulk = {};  // an idle client holds no memory
      if (request.op == uint16_t(target::AgentOp::end)) return end();
    }
  }
  void end() { (void)eventfd_write(ended_.get(), 1); }
  Session::Reply respond(Session& session, const target::AgentRequest& request, const std::string& name, ByteView bulk) {
    const bool about = request.op == uint16_t(target::AgentOp::about);
    if (!about && request.op != uint16_t(target::AgentOp::end)) return session.answer(request, name, bulk);
    Session::Reply reply;
    reply.answer.number = request.number;
    if (!about) return reply;
    const std::string text = fmt::format("clients {}\nrequests {}\nrefused {}\nlinger {}\n", clients_ - 1, requests_.load(),
                                         server_.refused() + senseless_, orders_.linger_s);
    const auto* from = reinterpret_cast<const std::byte*>(text.data());
    reply.bulk.assign(from, from + text.size());
    reply.answer.bulk_bytes = uint32_t(text.size());
    return reply;
  }

  const Orders orders_;
  const raw::Fd ended_, idle_;
  std::unique_ptr<target::Lock> only_;
  std::shared_ptr<const Served> served_;
  transport::Identity id_{};
  transport::Server server_;
  std::atomic<int> clients_{0};
  std::atomic<uint64_t> requests_{0}, senseless_{0};
};

void say(const raw::Fd& control, const std::string& text) { (void)!send(control.get(), text.data(), text.size(), MSG_NOSIGNAL); }

void use_all_descriptors() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

std::string encode(const Orders& orders) {
  std::string text = fmt::format("node {}\nregistry {}\nreach {}\nlinger {}\nrestart {}\n", orders.node, orders.registry, int(orders.reach),
                                 orders.linger_s, int(orders.restart));
  for (const std::string& directory : orders.directories) text += fmt::format("directory {}\n", directory);
  return text;
}

Result<Orders> decode_orders(const std::string& text) {
  Orders orders;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.find(' ');
    const std::string key = line.substr(0, space), value = space == std::string::npos ? "" : line.substr(space + 1);
    int reach = 0;
    if (key == "node") orders.node = value;
    else if (key == "registry") orders.registry = value;
    else if (key == "directory") orders.directories.push_back(value);
    else if (key == "restart") orders.restart = value == "1";
    else if (key == "linger") std::from_chars(value.data(), value.data() + value.size(), orders.linger_s);
    else if (key == "reach" && std::from_chars(value.data(), value.data() + value.size(), reach).ec == std::errc() && reach >= 0 && reach <= 2)
      orders.reach = transport::Reach(reach);
  }
  if (orders.node.empty() || orders.registry.empty() || orders.directories.empty())
    return Status(Kind::invalid, "an agent needs a node, a registry and a directory");
  return orders;
}

std::string runs_already(const std::string& node) { return fmt::format("another agent of node {} runs", node); }

bool serve_agent(const Orders& orders, int control, const std::function<void()>& spoke) {
  raw::Fd starter(control);
  use_all_descriptors();
  umask(0);                         // clients say which permissions their objects get
  auto* agent = new Agent(orders);  // never destroyed: a client's thread may be in a call that does not end
  const Status begun = agent->begin();
  say(starter, begun.ok() ? "ok\n" : begun.sentence() + "\n");
  starter.reset();
  if (spoke) spoke();
  if (begun.ok()) agent->run();
  return begun.ok();
}

}  // namespace holdfast::agent
