// A server that runs in a thread of its own.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "transport/server.hpp"

namespace holdfast::transport {

class Running {
 public:
  using Welcome = std::function<std::unique_ptr<Conversation>(raw::Fd&, ByteView)>;
  Running(const Agreement& agreement, Welcome welcome) {
    EXPECT_EQ(pipe(ends_), 0);
    server_.watch(ends_[0], [] { return false; });
    server_.welcome = std::move(welcome);
    endpoints = server_.listen(Reach::loopback, agreement);
    thread_ = std::thread([this] { server_.run(); });
  }
  ~Running() {
    EXPECT_EQ(write(ends_[1], "x", 1), 1);
    thread_.join();
    close(ends_[0]), close(ends_[1]);
  }
  std::string endpoints;

 private:
  int ends_[2];
  Server server_;
  std::thread thread_;
};

}  // namespace holdfast::transport
