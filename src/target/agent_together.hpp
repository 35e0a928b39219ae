// Requests that go to an agent as one (AgentOp::several): one wait, and one thing to send again where a connection breaks.
#pragma once
#include <sys/uio.h>

#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "target/agent_meter.hpp"
#include "target/agent_protocol.hpp"

namespace holdfast::target {

class AgentTogether {
 public:
  // `bulk` is the caller's until the answer is there.
  void add(AgentRequest request, std::string name, std::span<const iovec> bulk = {});
  size_t count() const { return parts_.size(); }
  // Whether an agent takes them as one.
  bool fits() const { return parts_.size() <= most_together && bytes_ <= most_bulk_bytes; }
  const AgentWork& work() const { return work_; }
  // The bytes of the request that they go in.
  std::vector<iovec> bytes() const;

  struct Reply {
    AgentAnswer answer;
    std::string sentence;
    Bytes bytes;
    Status status() const { return status_of(answer, sentence); }
  };
  // In the order of the requests, up to the first that failed. Nothing where they are no answers to these.
  std::optional<std::vector<Reply>> answers(ByteView bytes) const;

 private:
  struct One {
    AgentRequest request;
    std::string name;
    std::vector<iovec> bulk;
  };
  std::list<One> parts_;  // they stay where they are
  uint64_t bytes_ = 0;
  AgentWork work_;
};

}  // namespace holdfast::target
