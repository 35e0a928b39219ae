// Requests out of the bytes of a connection. Pure: it says where the next bytes go, and is told how many have come there.
#pragma once
#include <string>

#include "target/agent_protocol.hpp"

namespace holdfast::agent {

class RequestReader {
 public:
  // Empty only while it wants memory. No more is taken than a sensible header has announced.
  std::span<std::byte> room();
  enum class State : uint8_t { begun, wants_memory, whole, senseless };
  // At most as many as there was room for. senseless: nothing more is to be read there. wants_memory: for much; `admit` is called before the next
  // bytes. whole: `next` is.
  State came(size_t bytes);
  // There is memory for the request that has been announced.
  void admit();
  // Whether something of a request has come.
  bool in_request() const { return stage_ != Stage::header || done_ > 0; }

  const target::AgentRequest& request() const { return request_; }
  const std::string& name() const { return name_; }
  ByteView bulk() const { return bulk_; }
  // An idle client holds no memory.
  void next();

 private:
  enum class Stage : uint8_t { header, name, door, bulk, whole, senseless };
  std::span<std::byte> whole_stage();
  void go_on();
  Stage stage_ = Stage::header;
  size_t done_ = 0;
  target::AgentRequest request_;
  std::string name_;
  Bytes bulk_;
};

}  // namespace holdfast::agent
