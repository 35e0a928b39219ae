// What the hub says to the `holdfast run` that has started it. That may be stopped, or be busy with something else, while ranks wait for the hub. So a thread of
// its own sends it, in its order.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/raw_syscalls.hpp"
#include "redundant/frame.hpp"
#include "redundant/membership/outlet.hpp"

namespace holdfast::redundant {

// Never destroyed once it is started: the thread is in it.
class Control {
 public:
  explicit Control(int socket) : socket_(socket) {}
  int descriptor() const { return socket_.get(); }
  // False: the thread cannot be started.
  bool start() { return sender_->start(); }
  void tell(const Frame& frame);
  // The job's state, in the place of one that is still to be sent.
  void show(std::string state);
  // All is sent, or nobody hears it.
  void wait() { sender_->wait(); }

 private:
  const raw::Fd socket_;
  const std::shared_ptr<Outlet> sender_ = std::make_shared<Outlet>();
  std::mutex mutex_;
  std::optional<std::string> state_;  // that is to be sent
};

}  // namespace holdfast::redundant
