// One rank's connection to a pointer server.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>

#include "base/status.hpp"
#include "service/pointer_protocol.hpp"
#include "transport/link.hpp"

namespace holdfast::service {

class PointerLink {
 public:
  PointerLink() = default;
  // At one of the endpoints, within about `deadline_ms`. So long an answer is waited for too.
  Status connect(const std::string& endpoints, const transport::Secret& secret, uint64_t deadline_ms);
  // What the pointer was before; -1: failure() says why, and the link is of no use any more.
  int64_t ask(Op op, uint64_t file, int64_t operand);
  Status failure() const;
  bool connected() const { return link_.connected(); }

 private:
  mutable std::mutex mutex_;  // one question at a time
  transport::Link link_;
  uint32_t number_ = 0;
  Status failure_;
};

}  // namespace holdfast::service
