// A server's loop: one thread listens, greets, and serves those whose conversations it holds itself.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/bytes.hpp"
#include "base/raw_syscalls.hpp"
#include "transport/endpoint.hpp"
#include "transport/greeting.hpp"

namespace holdfast::transport {

// What is said with one client after the greeting. Pure: bytes in, bytes out.
class Conversation {
 public:
  virtual ~Conversation() = default;
  // All that came and was not used. How many bytes of it were used; nothing: hang up. Answers are appended to `out`. A client that does
  // not read its answers is hung up on: it waits for each before it asks again.
  virtual std::optional<size_t> take(ByteView came, Bytes& out) = 0;
};

class Server {
 public:
  Server();
  ~Server();

  // Takes connections there from now on, and nowhere else. Returns the endpoints.
  std::string listen(Reach reach, const Agreement& agreement);
  // Why no other node can come here though this one has addresses; empty where some can.
  std::string unheard() const;
  void hush();
  // Calls `ready` whenever the descriptor can be read; false from it ends the loop.
  void watch(int fd, std::function<bool()> ready);
  // No more.
  void forget(int fd);
  // What is done with a client that has been greeted: its conversation, or null where the socket has been taken over (moved from). `early`:
  // what came after the greeting.
  std::function<std::unique_ptr<Conversation>(raw::Fd& socket, ByteView early)> welcome;
  // Until a watcher ends it.
  void run();
  // How many have said something in the place of a greeting, or greeted with another secret or version, and were hung up on. From any thread.
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  struct Client;
  using Clients = std::unordered_map<int, std::unique_ptr<Client>>;
  void add(int fd);
  bool is_listener(int fd) const;
  void accept(int listener);
  raw::Fd take_one(int listener);
  void forget_a_stranger();
  void hang_up(Clients::iterator client);
  bool serve(Client& client);
  bool greet(Client& client, size_t& used);
  static bool send(const Client& client, const void* data, size_t bytes);

  raw::Fd poll_, spare_;  // spare_: given up for who comes when there is no descriptor left
  Agreement agreement_;
  std::optional<Listener> listener_;
  std::unordered_map<int, std::function<bool()>> watched_;
  Clients clients_;
  size_t strangers_ = 0;
  uint64_t accepted_ = 0;
  std::atomic<uint64_t> refused_{0};
};

}  // namespace holdfast::transport
