// A way to an agent that breaks: bytes go through it in both directions until it is told to reset the connections, on both sides.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/raw_syscalls.hpp"
#include "transport/endpoint.hpp"

namespace holdfast::agent {

class Relay {
 public:
  // To the first TCP endpoint of those. `here`: an address of this node.
  explicit Relay(const std::string& endpoints, in_addr_t here = INADDR_LOOPBACK)
      : to_(*transport::parse_endpoint(endpoints.substr(0, endpoints.find('\n')))), told_(eventfd(0, EFD_CLOEXEC)) {
    here_.sin_family = AF_INET, here_.sin_addr.s_addr = htonl(here);
    take_connections();
    char name[INET_ADDRSTRLEN];
    endpoint_ = std::string("tcp ") + inet_ntop(AF_INET, &here_.sin_addr, name, sizeof name) + " " + std::to_string(ntohs(here_.sin_port)) + "\n";
    thread_ = std::thread([this] { run(); });
  }
  ~Relay() {
    over_ = true;
    eventfd_write(told_.get(), 1);  // not waited for: the thread may see first that it is over
    thread_.join();
    for (Pair& pair : pairs_) reset(pair);
  }
  const std::string& endpoint() const { return endpoint_; }
  // Resets all connections, at once.
  void reset_all() {
    const uint64_t before = resets_;
    eventfd_write(told_.get(), 1);
    while (resets_ == before) std::this_thread::yield();
  }
  // As well, and refuses new ones until it is told not to.
  void refuse(bool refuses) {
    refuses_ = refuses;
    reset_all();
  }
  // Resets a connection when so many bytes of it have gone to the agent from now on. From the test's thread while nothing is on its way.
  void reset_after(int64_t bytes) { left_ = bytes; }
  uint64_t connections() const { return connections_; }

 private:
  struct Pair {
    raw::Fd client, agent;
  };
  void take_connections() {
    const int yes = 1;
    socklen_t size = sizeof here_;
    auto* address = reinterpret_cast<sockaddr*>(&here_);
    listener_.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener_.get(), address, size) != 0 || listen(listener_.get(), 64) != 0 || getsockname(listener_.get(), address, &size) != 0) abort();
  }
  static void reset(const raw::Fd& fd) {
    const linger now{1, 0};
    setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }
  static void reset(Pair& pair) { reset(pair.client), reset(pair.agent), pair.client.reset(), pair.agent.reset(); }
  void run() {
    while (!over_) {
      std::vector<pollfd> wait{{told_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const Pair& pair : pairs_) wait.push_back({pair.client.get(), POLLIN, 0}), wait.push_back({pair.agent.get(), POLLIN, 0});
      poll(wait.data(), wait.size(), -1);
      const size_t count = pairs_.size();
      for (size_t i = 0; i < count; ++i)
        if (!move(pairs_[i], wait[2 + 2 * i].revents != 0, wait[3 + 2 * i].revents != 0)) pairs_[i].client.reset(), pairs_[i].agent.reset();
      if (wait[0].revents) {
        eventfd_t times;
        eventfd_read(told_.get(), &times);
        for (Pair& pair : pairs_) reset(pair);
        if (refuses_) listener_.reset();
        else if (!listener_) take_connections();
        ++resets_;
      }
      std::erase_if(pairs_, [](const Pair& pair) { return !pair.client; });
      if (wait[1].revents && listener_) accept();
    }
  }
  void accept() {
    Pair pair{raw::Fd(::accept(listener_.get(), nullptr, nullptr)), raw::Fd(socket(to_.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0))};
    if (connect(pair.agent.get(), reinterpret_cast<const sockaddr*>(&to_.address), to_.bytes) != 0) return;
    ++connections_;
    pairs_.push_back(std::move(pair));
  }
  // False: one side has ended, and so does the other.
  bool move(Pair& pair, bool from_client, bool from_agent) {
    char bytes[65536];
    for (const bool up : {true, false}) {
      if (up ? !from_client : !from_agent) continue;
      ssize_t got = recv((up ? pair.client : pair.agent).get(), bytes, sizeof bytes, 0);
      if (got <= 0) return false;
      const int64_t left = up ? left_.load() : -1;
      if (left >= 0 && left <= got) {  // this much comes still
        left_ = -1;
        if (left > 0 && send(pair.agent.get(), bytes, size_t(left), MSG_NOSIGNAL) != left) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // else the reset overtakes it
        return reset(pair), true;
      }
      if (left >= 0) left_ = left - got;
      if (send((up ? pair.agent : pair.client).get(), bytes, size_t(got), MSG_NOSIGNAL) != got) return false;
    }
    return true;
  }

  const transport::Endpoint to_;
  const raw::Fd told_;
  raw::Fd listener_;
  sockaddr_in here_{};
  std::string endpoint_;
  std::vector<Pair> pairs_;
  std::atomic<bool> over_{false}, refuses_{false};
  std::atomic<int64_t> left_{-1};
  std::atomic<uint64_t> resets_{0}, connections_{0};
  std::thread thread_;
};

}  // namespace holdfast::agent
