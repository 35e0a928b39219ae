// One rank's connection to a pointer server.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>

#include "base/raw_syscalls.hpp"
#include "base/status.hpp"
#include "service/pointer_protocol.hpp"

namespace holdfast::service {

class PointerLink {
 public:
  PointerLink() = default;
  // Tries the endpoints in turn, each for a moment and then for at most `deadline_ms`. So long an answer is waited for too.
  Status connect(const std::string& endpoints, const Token& token, uint64_t deadline_ms);
  // What the pointer was before; -1: failure() says why, and the link is of no use any more.
  int64_t ask(Op op, uint64_t file, int64_t operand);
  Status failure() const;
  bool connected() const { return static_cast<bool>(socket_); }

 private:
  bool connect_one(const std::string& endpoint, const Token& token, uint64_t deadline_ms);
  bool exchange(const Request& request, Answer& answer);
  mutable std::mutex mutex_;  // one question at a time
  raw::Fd socket_;
  uint32_t number_ = 0;
  uint64_t deadline_ms_ = 0;
  Status failure_;
};

}  // namespace holdfast::service
